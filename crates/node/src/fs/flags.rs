//! Open flags of files.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::Error;
use crate::reason::throw;
use phaseloop::extension::files;

/// The open flags of a file, parsed from Node's strings: `"r"`, `"r+"`, `"w"`, `"wx"`, `"w+"`,
/// `"wx+"`, `"a"`, `"ax"`, `"a+"`, `"ax+"`, and with an `s` for synchronous writes: `"rs"`,
/// `"rs+"`, `"as"`, `"as+"`.
///
/// `x` fails if the file exists; `+` opens for reading and writing. JavaScript: the argument
/// `flags` of `fs.open`, the option `flag` of `fs.writeFile`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::fs::Flags;
///
/// fn main() {
///     assert_eq!(Flags::from("wx"), "xw".parse().unwrap());
///     assert_eq!("z".parse::<Flags>().unwrap_err().code(), Some("ERR_INVALID_ARG_VALUE"));
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    reads: bool,
    writes: bool,
    appends: bool,
    truncates: bool,
    creates: bool,
    is_exclusive: bool,
    is_synchronous: bool,
}

impl Flags {
    const READ: Self = Self {
        reads: true,
        writes: false,
        appends: false,
        truncates: false,
        creates: false,
        is_exclusive: false,
        is_synchronous: false,
    };

    const WRITE: Self = Self {
        reads: false,
        writes: true,
        truncates: true,
        creates: true,
        ..Self::READ
    };

    const APPEND: Self = Self {
        appends: true,
        truncates: false,
        ..Self::WRITE
    };

    /// Opens the file on the pool.
    pub(super) async fn open(self, path: &Path, mode: u32) -> io::Result<Opened> {
        let file = files::on_path("open", path, move |path| {
            files::open(&self.to_options(mode), path)
        })
        .await?;
        Ok(Arc::new(file))
    }

    fn to_options(self, mode: u32) -> OpenOptions {
        let mut options = OpenOptions::new();
        options
            .read(self.reads)
            .write(self.writes && !self.appends)
            .append(self.appends)
            .truncate(self.truncates && !self.is_exclusive)
            .create(self.creates && !self.is_exclusive)
            .create_new(self.is_exclusive);
        files::set_mode(&mut options, mode, self.is_synchronous);
        options
    }
}

/// An open file, shared with the jobs of the pool.
pub(super) type Opened = Arc<std::fs::File>;

impl FromStr for Flags {
    type Err = Error;

    /// # Errors
    ///
    /// `ERR_INVALID_ARG_VALUE` for any other string.
    fn from_str(flags: &str) -> Result<Self, Error> {
        let synchronous = |flags: Self| Self {
            is_synchronous: true,
            ..flags
        };
        let exclusive = |flags: Self| Self {
            is_exclusive: true,
            ..flags
        };
        let both = |flags: Self| Self {
            reads: true,
            writes: true,
            ..flags
        };
        Ok(match flags {
            "r" => Self::READ,
            "rs" | "sr" => synchronous(Self::READ),
            "r+" => both(Self::READ),
            "rs+" | "sr+" => synchronous(both(Self::READ)),
            "w" => Self::WRITE,
            "wx" | "xw" => exclusive(Self::WRITE),
            "w+" => both(Self::WRITE),
            "wx+" | "xw+" => exclusive(both(Self::WRITE)),
            "a" => Self::APPEND,
            "ax" | "xa" => exclusive(Self::APPEND),
            "as" | "sa" => synchronous(Self::APPEND),
            "a+" => both(Self::APPEND),
            "ax+" | "xa+" => exclusive(both(Self::APPEND)),
            "as+" | "sa+" => synchronous(both(Self::APPEND)),
            _ => {
                let text = format!("The argument 'flags' is invalid. Received '{flags}'");
                return Err(Error::named("TypeError", text).coded("ERR_INVALID_ARG_VALUE"));
            }
        })
    }
}

impl From<&str> for Flags {
    /// # Panics
    ///
    /// [Throws](crate::throw) `ERR_INVALID_ARG_VALUE` for any other string, as Node does.
    /// [`parse`](str::parse) returns the error.
    fn from(flags: &str) -> Self {
        match flags.parse() {
            Ok(flags) => flags,
            Err(error) => throw(error),
        }
    }
}
