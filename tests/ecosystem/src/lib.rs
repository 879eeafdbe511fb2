//! The tests are the content; see `tests/all`.
