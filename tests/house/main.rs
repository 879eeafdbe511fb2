//! What the sources must keep to: layers, the words of their comments, what the documentation of
//! futures says, and the list of differences to libuv.

mod apis;
mod commands;
mod differences;
mod docs;
mod errors;
mod examples;
mod layers;
mod marks;
mod pages;
mod promises;
mod windows;
mod words;
