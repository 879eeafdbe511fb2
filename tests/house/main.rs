//! What the sources must keep to: layers, and the list of differences to libuv.

mod differences;
mod layers;
