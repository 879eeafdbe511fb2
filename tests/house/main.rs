//! What the sources must keep to: layers, the words of their comments, and the list of differences
//! to libuv.

mod differences;
mod layers;
mod windows;
mod words;
