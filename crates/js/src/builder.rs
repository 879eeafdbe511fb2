//! The settings of an engine.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::api::Engine;
use crate::data::{Data, Settings};
use crate::error::Error;

/// The modules that a program may ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Modules {
    /// Those of Rust and files only.
    None,
    /// Those that touch nothing outside of the engine: `assert`, `async_hooks`, `buffer`, `console`,
    /// `crypto`, `diagnostics_channel`, `events`, `module`, `path`, `process`, `stream`,
    /// `string_decoder`, `timers`, `tty`, `url`, `util`, `zlib`.
    Core,
    /// All.
    #[default]
    Node,
}

/// The files that a program may read and write, modules included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Files {
    /// None.
    None,
    /// Those in a folder. Symbolic links in it are followed.
    Under(PathBuf),
    /// All that the process may.
    #[default]
    All,
}

impl Files {
    pub(crate) fn allows(&self, path: &Path) -> bool {
        let goes_up = || path.components().any(|part| part.as_os_str() == "..");
        match self {
            Self::None => false,
            Self::Under(folder) => path.starts_with(folder) && !goes_up(),
            Self::All => true,
        }
    }
}

/// Receives what `console` and the standard streams write.
pub trait Console: 'static {
    /// Writes a text; `is_error` for standard error. Bytes that are no UTF-8 arrive as U+FFFD.
    fn write(&mut self, is_error: bool, text: &str);
}

impl<F: FnMut(bool, &str) + 'static> Console for F {
    fn write(&mut self, is_error: bool, text: &str) {
        self(is_error, text);
    }
}

/// The settings of an [`Engine`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// fn main() -> phaseloop_node::Exit<()> {
///     phaseloop_node::run(async {
///         let engine = phaseloop_js::Engine::builder()
///             .time_limit(Duration::from_millis(20))
///             .build()
///             .unwrap();
///         assert!(engine.run("a.js", "for (;;);").unwrap_err().is_interrupted());
///         assert!(engine.run("b.js", "1 + 1").is_ok());
///     })
/// }
/// ```
pub struct Builder {
    settings: Settings,
    console: Option<Box<dyn Console>>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Builder");
        text.field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            settings: Settings {
                argv: std::env::args().take(1).collect(),
                ..Settings::default()
            },
            console: None,
        }
    }

    /// The settings of an engine like another one.
    pub(crate) fn of(settings: Settings) -> Self {
        Self {
            settings,
            console: None,
        }
    }

    /// Sets the most bytes of the heap. A script that needs more gets `InternalError: out of
    /// memory`, which it may catch; 64 KiB beyond the limit are kept for the error. Without it there
    /// is no limit.
    #[must_use]
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.settings.limits.memory = bytes;
        self
    }

    /// Sets the most bytes of the stack; 512 KiB otherwise. A script that needs more gets a
    /// `RangeError`, which it may catch.
    #[must_use]
    pub fn stack_limit(mut self, bytes: usize) -> Self {
        self.settings.limits.stack = bytes;
        self
    }

    /// Sets the longest time of one callback, and of one run of jobs. A script that takes longer is
    /// ended; it cannot catch the error.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.settings.limits.time = Some(limit);
        self
    }

    /// Sets the modules that the program may ask for.
    #[must_use]
    pub fn modules(mut self, modules: Modules) -> Self {
        self.settings.modules = modules;
        self
    }

    /// Sets the files that the program may read and write.
    #[must_use]
    pub fn files(mut self, files: Files) -> Self {
        self.settings.files = files;
        self
    }

    /// Sets the folder from which scripts that are no files ask for modules; the current folder
    /// otherwise.
    #[must_use]
    pub fn root(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.root = folder.into();
        self
    }

    /// Sets whether reports of the loop ([`LoopHandle::report`](phaseloop::LoopHandle::report)) name
    /// the line of the script that has set a timer or called an async function of Rust, such as
    /// `app.js:12:7`. Each of them then takes a stack, so the default is `false`.
    #[must_use]
    pub fn positions(mut self, positions: bool) -> Self {
        self.settings.positions = positions;
        self
    }

    /// Sets `process.argv`.
    #[must_use]
    pub fn argv<T: Into<String>>(mut self, argv: impl IntoIterator<Item = T>) -> Self {
        self.settings.argv = argv.into_iter().map(Into::into).collect();
        self
    }

    /// Sets `process.env`; the environment of the process otherwise.
    #[must_use]
    pub fn env(mut self, pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        self.settings.env = Some(pairs.into_iter().collect());
        self
    }

    /// Sets what receives the output of `console` and of the standard streams.
    #[must_use]
    pub fn console(mut self, console: impl Console) -> Self {
        self.console = Some(Box::new(console));
        self
    }

    /// Creates the engine, on the current loop.
    ///
    /// # Errors
    ///
    /// If the limits leave no room for the engine itself.
    pub fn build(self) -> Result<Engine, Error> {
        let limits = self.settings.limits;
        let data = Data::new(self.settings);
        *data.console.borrow_mut() = self.console;
        Engine::start(limits, data)
    }
}
