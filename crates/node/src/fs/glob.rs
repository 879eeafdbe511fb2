//! Paths that match patterns.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use crate::error::Error;
use phaseloop::fs;

/// How many alternatives the braces of one pattern may have in all.
const MOST_ALTERNATIVES: usize = 10_000;

/// Returns whether an entry is left out.
type Exclude = Rc<dyn Fn(&Path) -> bool>;

/// Options of [`glob_with`](super::glob_with). JavaScript: `{ cwd, exclude }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::fs::GlobOptions;
///
/// fn main() {
///     let sources = GlobOptions::default().cwd("src").exclude(|path| path.ends_with("tests"));
///     println!("{sources:?}");
/// }
/// ```
#[derive(Clone, Default)]
pub struct GlobOptions {
    pub(super) cwd: PathBuf,
    pub(super) exclude: Option<Exclude>,
}

impl GlobOptions {
    /// Sets the directory that the patterns are relative to. The default is that of this process.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cwd = directory.into();
        self
    }

    /// Sets a function that leaves paths out: it gets the name of an entry, and `true` excludes the
    /// entry and all below it.
    #[must_use]
    pub fn exclude(mut self, exclude: impl Fn(&Path) -> bool + 'static) -> Self {
        self.exclude = Some(Rc::new(exclude));
        self
    }
}

impl std::fmt::Debug for GlobOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GlobOptions")
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// Returns the paths that match one of the patterns, sorted by the patterns and then by name.
pub(super) async fn find(
    patterns: Vec<String>,
    options: GlobOptions,
) -> Result<Vec<PathBuf>, Error> {
    let mut search = Search {
        options,
        found: Vec::new(),
        known: HashSet::new(),
    };
    for pattern in &patterns {
        for pattern in alternatives(pattern)? {
            let parts: Vec<_> = parse(&pattern);
            search.walk(PathBuf::new(), &parts).await?;
        }
    }
    Ok(search.found)
}

struct Search {
    options: GlobOptions,
    found: Vec<PathBuf>,
    known: HashSet<PathBuf>,
}

/// What one component of a path must be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// This name, also `..` and the root.
    Name(PathBuf),
    /// A name that matches.
    Pattern(Vec<Token>),
    /// Any number of directories.
    Any,
    /// Nothing more, behind a last `/`.
    Directory,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Text(char),
    One,
    Many,
    /// The ranges of characters, and whether it is none of them.
    Class(Vec<(char, char)>, bool),
}

fn parse(pattern: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = pattern;
    if let Some(below) = pattern.strip_prefix('/') {
        parts.push(Part::Name("/".into()));
        rest = below;
    }
    for text in rest.split('/') {
        match text {
            "" | "." => {}
            "**" if parts.last() == Some(&Part::Any) => {}
            "**" => parts.push(Part::Any),
            _ => parts.push(match tokens(text) {
                Some(tokens) => Part::Pattern(tokens),
                None => Part::Name(text.into()),
            }),
        }
    }
    if pattern.ends_with('/') && !parts.is_empty() {
        parts.push(Part::Directory);
    }
    parts
}

/// Splits a component. `None`: it has nothing special.
fn tokens(text: &str) -> Option<Vec<Token>> {
    let characters: Vec<_> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let (token, length) = match characters[at] {
            '*' if tokens.last() == Some(&Token::Many) => {
                at += 1;
                continue;
            }
            '*' => (Token::Many, 1),
            '?' => (Token::One, 1),
            '[' => class(&characters[at..]).unwrap_or((Token::Text('['), 1)),
            other => (Token::Text(other), 1),
        };
        tokens.push(token);
        at += length;
    }
    let is_plain = tokens.iter().all(|token| matches!(token, Token::Text(_)));
    (!is_plain).then_some(tokens)
}

/// Reads `[a-z]` or `[!a-z]`. `None`: it is not closed.
fn class(characters: &[char]) -> Option<(Token, usize)> {
    let is_negated = matches!(characters.get(1), Some('!' | '^'));
    let first = if is_negated { 2 } else { 1 };
    // A `]` at the beginning stands for itself.
    let end = (first + 1..characters.len()).find(|at| characters[*at] == ']')?;
    let (mut ranges, mut at) = (Vec::new(), first);
    while at < end {
        if at + 2 < end && characters[at + 1] == '-' {
            ranges.push((characters[at], characters[at + 2]));
            at += 3;
        } else {
            ranges.push((characters[at], characters[at]));
            at += 1;
        }
    }
    Some((Token::Class(ranges, is_negated), end + 1))
}

/// Returns whether a name matches. A dot at its beginning matches a written dot only.
fn matches(tokens: &[Token], name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    if name.starts_with('.') && tokens.first() != Some(&Token::Text('.')) {
        return false;
    }
    let name: Vec<_> = name.chars().collect();
    let (mut token, mut at) = (0, 0);
    // Where the last `*` was, and how much of the name it has taken: only it needs another try.
    let mut retry: Option<(usize, usize)> = None;
    while at < name.len() {
        let fits = match tokens.get(token) {
            Some(Token::Many) => {
                retry = Some((token + 1, at));
                token += 1;
                continue;
            }
            Some(Token::One) => true,
            Some(Token::Text(text)) => *text == name[at],
            Some(Token::Class(ranges, is_negated)) => {
                let is_in = |range: &(char, char)| (range.0..=range.1).contains(&name[at]);
                ranges.iter().any(is_in) != *is_negated
            }
            None => false,
        };
        match (fits, &mut retry) {
            (true, _) => (token, at) = (token + 1, at + 1),
            (false, Some((after, taken))) => {
                *taken += 1;
                (token, at) = (*after, *taken);
            }
            (false, None) => return false,
        }
    }
    tokens[token..].iter().all(|token| *token == Token::Many)
}

/// Expands `{a,b}`.
///
/// # Errors
///
/// `ERR_INVALID_ARG_VALUE` if there are too many alternatives.
fn alternatives(pattern: &str) -> Result<Vec<String>, Error> {
    let (mut open, mut done) = (vec![pattern.to_owned()], Vec::new());
    while let Some(text) = open.pop() {
        match first_braces(&text) {
            Some((before, choices, after)) => {
                let choices = choices.iter().rev();
                open.extend(choices.map(|choice| format!("{before}{choice}{after}")));
            }
            None => done.push(text),
        }
        if open.len() + done.len() > MOST_ALTERNATIVES {
            let text = "The argument 'pattern' has too many alternatives in braces";
            return Err(Error::type_error(text).coded("ERR_INVALID_ARG_VALUE"));
        }
    }
    Ok(done)
}

/// Splits a text at its first braces that have a comma.
fn first_braces(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    for (start, _) in text.match_indices('{') {
        let (mut depth, mut from, mut choices) = (0, start + 1, Vec::new());
        for (at, character) in text[start..].char_indices() {
            let at = start + at;
            match character {
                '{' => depth += 1,
                '}' if depth == 1 => {
                    choices.push(&text[from..at]);
                    if choices.len() > 1 {
                        return Some((&text[..start], choices, &text[at + 1..]));
                    }
                    break;
                }
                '}' => depth -= 1,
                ',' if depth == 1 => {
                    choices.push(&text[from..at]);
                    from = at + 1;
                }
                _ => {}
            }
        }
    }
    None
}

impl Search {
    fn place(&self, path: &Path) -> PathBuf {
        let place = self.options.cwd.join(path);
        match place.as_os_str().is_empty() {
            true => ".".into(),
            false => place,
        }
    }

    fn add(&mut self, path: PathBuf) {
        let path = if path.as_os_str().is_empty() {
            ".".into()
        } else {
            path
        };
        if self.known.insert(path.clone()) {
            self.found.push(path);
        }
    }

    fn is_excluded(&self, name: &OsStr) -> bool {
        let exclude = self.options.exclude.as_ref();
        exclude.is_some_and(|exclude| exclude(Path::new(name)))
    }

    async fn walk(&mut self, path: PathBuf, parts: &[Part]) -> Result<(), Error> {
        let Some((part, rest)) = parts.split_first() else {
            self.add(path);
            return Ok(());
        };
        match part {
            Part::Directory => {
                if self.is_directory(&path).await {
                    self.add(path);
                }
                Ok(())
            }
            Part::Name(name) => {
                let next = join(&path, name);
                let is_there = match rest {
                    [] => fs::symlink_metadata(self.place(&next)).await.is_ok(),
                    _ => self.is_directory(&next).await,
                };
                let is_excluded = next.file_name().is_some_and(|name| self.is_excluded(name));
                if is_there && !is_excluded {
                    Box::pin(self.walk(next, rest)).await?;
                }
                Ok(())
            }
            Part::Pattern(tokens) => self.walk_entries(path, tokens, rest).await,
            Part::Any => self.walk_all(path, parts, rest).await,
        }
    }

    async fn walk_entries(
        &mut self,
        path: PathBuf,
        tokens: &[Token],
        rest: &[Part],
    ) -> Result<(), Error> {
        for entry in self.entries(&path).await {
            let name = entry.file_name();
            // Links are not followed.
            let is_end = rest.is_empty() || entry.file_type().is_dir();
            if !is_end || !matches(tokens, name) || self.is_excluded(name) {
                continue;
            }
            Box::pin(self.walk(path.join(name), rest)).await?;
        }
        Ok(())
    }

    /// Continues here, and in each directory below. Links are not followed below the first level.
    async fn walk_all(
        &mut self,
        path: PathBuf,
        parts: &[Part],
        rest: &[Part],
    ) -> Result<(), Error> {
        if rest.is_empty() && !self.is_directory(&path).await {
            return Ok(());
        }
        Box::pin(self.walk(path.clone(), rest)).await?;
        for entry in self.entries(&path).await {
            let name = entry.file_name();
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            if is_hidden || self.is_excluded(name) {
                continue;
            }
            if entry.file_type().is_dir() {
                Box::pin(self.walk(path.join(name), parts)).await?;
            } else if rest.is_empty() {
                self.add(path.join(name));
            }
        }
        Ok(())
    }

    async fn is_directory(&self, path: &Path) -> bool {
        let metadata = fs::metadata(self.place(path)).await;
        metadata.is_ok_and(|metadata| metadata.is_dir())
    }

    /// Returns the entries of a directory, sorted. What cannot be read has none.
    async fn entries(&self, path: &Path) -> Vec<fs::DirEntry> {
        let entries: io::Result<_> = fs::scan_dir(self.place(path)).await;
        entries.unwrap_or_default()
    }
}

/// Joins a path and a component; `..` removes one that is no `..` itself.
fn join(path: &Path, name: &Path) -> PathBuf {
    let is_up = name.components().next() == Some(Component::ParentDir);
    let last = path.components().next_back();
    match last {
        Some(Component::Normal(_)) if is_up => path.parent().unwrap_or(path).to_owned(),
        _ => path.join(name),
    }
}

#[cfg(test)]
mod tests {
    use super::{alternatives, matches, tokens};

    fn is_match(pattern: &str, name: &str) -> bool {
        match tokens(pattern) {
            Some(tokens) => matches(&tokens, name.as_ref()),
            None => pattern == name,
        }
    }

    #[test]
    fn components_match_names() {
        for (pattern, name, expected) in [
            ("*", "a", true),
            ("*", ".a", false),
            (".*", ".a", true),
            ("*.js", "a.js", true),
            ("*.js", "a.jsx", false),
            ("a*b*c", "axxbyybc", true),
            ("a*b*c", "axxbyyb", false),
            ("?.ts", "b.ts", true),
            ("?.ts", ".ts", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[!a-c]x", "dx", true),
            ("[]x]", "]", true),
            ("[a", "[a", true),
            ("**a", "bba", true),
        ] {
            assert_eq!(is_match(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_with_many_stars_takes_no_exponential_time() {
        let pattern = "a*".repeat(60) + "b";
        assert!(!is_match(&pattern, &"a".repeat(200)));
    }

    #[test]
    fn braces_are_alternatives_up_to_a_limit() {
        assert_eq!(
            alternatives("{a,b}.{c,d}").unwrap(),
            ["a.c", "a.d", "b.c", "b.d"]
        );
        assert_eq!(alternatives("x{a,{b,c}}").unwrap(), ["xa", "xb", "xc"]);
        assert_eq!(alternatives("{a}").unwrap(), ["{a}"]);
        assert_eq!(alternatives("a}{b").unwrap(), ["a}{b"]);
        let error = alternatives(&"{a,b}".repeat(20)).unwrap_err();
        assert_eq!(error.code(), Some("ERR_INVALID_ARG_VALUE"));
    }
}
