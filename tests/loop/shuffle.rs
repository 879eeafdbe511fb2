//! Shuffled loops: what seeds change, what they never change, the bugs that they find, and whether
//! they can be repeated.

mod bugs;
mod kinds;
mod order;
mod outside;
mod repeat;
mod reports;
