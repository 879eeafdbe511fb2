//! The guide for ports from Node: [how a program is ported](porting), [what is here and what is
//! elsewhere](elsewhere), and [what older versions of Node do](versions).

#[doc = include_str!("guide/elsewhere.md")]
pub mod elsewhere {}
#[doc = include_str!("guide/porting.md")]
pub mod porting {}
#[doc = include_str!("guide/versions.md")]
pub mod versions {}
