//! Compiles the recipes of the guide that need other libraries.

#[cfg(doctest)]
#[doc = include_str!("../../../src/guide/cookbook_features.md")]
struct Cookbook;
