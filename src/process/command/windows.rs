//! What a command of Windows offers besides.

use std::ffi::OsStr;
use std::io;
use std::os::windows::process::CommandExt;
use std::process;

use super::super::child::Child;
use super::Command;
use crate::site::Site;

#[derive(Default)]
pub(super) struct Options {}

/// What a start has opened besides the standard streams: nothing.
pub(super) struct Extra;

impl Extra {
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the signature is shared with the platform that has channels"
    )]
    pub(super) fn register(self, _: &mut Child, _: Site) -> io::Result<()> {
        Ok(())
    }
}

impl Options {
    /// Starts a child.
    #[expect(
        clippy::unused_self,
        reason = "the signature is shared with the platform that has options"
    )]
    pub(super) fn start(
        &mut self,
        std: &mut process::Command,
    ) -> io::Result<(process::Child, Extra)> {
        Ok((std.spawn()?, Extra))
    }
}

impl Command {
    /// Sets the flags of `CreateProcess`, such as `CREATE_NEW_PROCESS_GROUP`. Windows only.
    pub fn creation_flags(&mut self, flags: u32) -> &mut Self {
        self.std.creation_flags(flags);
        self
    }

    /// Adds text to the command line as it is, without quotes. Windows only.
    ///
    /// Programs with rules of their own for the command line need it, such as `cmd /c`.
    pub fn raw_arg(&mut self, text: impl AsRef<OsStr>) -> &mut Self {
        self.std.raw_arg(text);
        self
    }
}
