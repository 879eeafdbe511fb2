//! What a child starts with: arguments, environment, directory, standard streams.

use std::ffi::OsStr;
use std::path::Path;

use super::Command;
use crate::process::Stdio;

/// Arguments, environment, directory and standard streams.
impl Command {
    /// Adds an argument.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let output = Command::new("echo").arg("one").args(["two", "three"]).output().await?;
    ///     assert_eq!(output.stdout, b"one two three\n");
    ///     Ok(())
    /// }
    /// ```
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.std.arg(arg);
        self
    }

    /// Adds arguments.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let output = Command::new("echo").arg("one").args(["two", "three"]).output().await?;
    ///     assert_eq!(output.stdout, b"one two three\n");
    ///     Ok(())
    /// }
    /// ```
    pub fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        self.std.args(args);
        self
    }

    /// Sets an environment variable.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut command = Command::new("sh");
    ///     command.args(["-c", "echo $GREETING $NAME"]);
    ///     let output = command.env("GREETING", "hello").envs([("NAME", "ann")]).output().await?;
    ///     assert_eq!(output.stdout, b"hello ann\n");
    ///     Ok(())
    /// }
    /// ```
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.std.env(key, value);
        self
    }

    /// Sets environment variables.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut command = Command::new("sh");
    ///     command.args(["-c", "echo $GREETING $NAME"]);
    ///     let output = command.env("GREETING", "hello").envs([("NAME", "ann")]).output().await?;
    ///     assert_eq!(output.stdout, b"hello ann\n");
    ///     Ok(())
    /// }
    /// ```
    pub fn envs(
        &mut self,
        variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> &mut Self {
        self.std.envs(variables);
        self
    }

    /// Removes an environment variable.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut command = Command::new("/usr/bin/env");
    ///     command.env_clear().env("A", "1").env("B", "2").env_remove("B");
    ///     assert_eq!(command.output().await?.stdout, b"A=1\n");
    ///     Ok(())
    /// }
    /// ```
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Self {
        self.std.env_remove(key);
        self
    }

    /// Clears the environment.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut command = Command::new("/usr/bin/env");
    ///     command.env_clear().env("A", "1").env("B", "2").env_remove("B");
    ///     assert_eq!(command.output().await?.stdout, b"A=1\n");
    ///     Ok(())
    /// }
    /// ```
    pub fn env_clear(&mut self) -> &mut Self {
        self.std.env_clear();
        self
    }

    /// Sets the working directory of the child. A relative path of the program is resolved against
    /// it.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Command;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let output = Command::new("pwd").current_dir("/").output().await?;
    ///     assert_eq!(output.stdout, b"/\n");
    ///     Ok(())
    /// }
    /// ```
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Self {
        self.std.current_dir(directory);
        self
    }

    /// Sets the child's standard input: inherited, [`Stdio::null`], a pipe, or any open descriptor.
    ///
    /// Sockets and pipes of this crate are in non-blocking mode, which few programs expect.
    /// `into_std` returns a socket to be set to blocking mode and passed here; on Unix,
    /// `into_owned_fd` of a pipe restores its mode.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::AsyncWriteExt;
    /// use phaseloop::process::{Command, Stdio};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut command = Command::new("cat");
    ///     let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    ///     child.stdin.take().unwrap().write_all(b"hello").await?; // dropped: `cat` gets EOF
    ///     assert_eq!(child.wait_with_output().await?.stdout, b"hello");
    ///     Ok(())
    /// }
    /// ```
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Self {
        self.has_stdin = true;
        let stdin = stdin.into();
        self.pipes[0] = stdin.is_pipe;
        self.std.stdin(stdin.std);
        self
    }

    /// Sets the child's standard output; see [`stdin`](Self::stdin).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::{Command, Stdio};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut command = Command::new("sh");
    ///     command.args(["-c", "echo out; echo err >&2"]);
    ///     let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    ///     let output = child.wait_with_output().await?;
    ///     assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    ///     Ok(())
    /// }
    /// ```
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Self {
        self.has_stdout = true;
        let stdout = stdout.into();
        self.pipes[1] = stdout.is_pipe;
        self.std.stdout(stdout.std);
        self
    }

    /// Sets the child's standard error; see [`stdin`](Self::stdin).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::{Command, Stdio};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut command = Command::new("sh");
    ///     command.args(["-c", "echo out; echo err >&2"]);
    ///     let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    ///     let output = child.wait_with_output().await?;
    ///     assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    ///     Ok(())
    /// }
    /// ```
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Self {
        self.has_stderr = true;
        let stderr = stderr.into();
        self.pipes[2] = stderr.is_pipe;
        self.std.stderr(stderr.std);
        self
    }
}
