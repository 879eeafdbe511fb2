//! The arguments of an attribute: `crate = path`, `run`, `timeout = "5s"`, `seeds = 200`, and any
//! option of `phaseloop::Builder`.

use proc_macro::{Ident, Literal, Span, TokenStream, TokenTree};

use crate::known::{self, Known};
use crate::{Kind, Mistake, duration, empty_call, parenthesized, path, punct, tail};

#[derive(Default)]
pub(crate) struct Options {
    /// Another path to the crate than `::phaseloop`.
    crate_path: Option<TokenStream>,
    /// Run until nothing keeps the loop alive.
    run: bool,
    /// The limit of a test, in nanoseconds.
    timeout: Option<u64>,
    /// The number of seeds that a test runs under.
    seeds: Option<TokenStream>,
    /// The number of loops: `None` for one, an empty stream for one a processor.
    loops: Option<TokenStream>,
    /// Whether each loop stays on a processor.
    pin: bool,
    /// Options of the builder: a method, and its argument.
    builder: Vec<(Ident, Option<TokenStream>)>,
}

impl Options {
    pub(crate) fn parse(arguments: TokenStream, kind: Kind) -> Result<Self, Mistake> {
        let mut options = Self::default();
        let mut seen = Vec::new();
        let mut tokens = arguments.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let TokenTree::Ident(name) = token else {
                let text = format!("write the name of an option here: {}", known::list(kind));
                return Err(Mistake::new(token.span(), text));
            };
            let value = match tokens.next() {
                Some(TokenTree::Punct(equals)) if equals.as_char() == '=' => {
                    let mut value = Vec::new();
                    while let Some(token) = tokens.next_if(|token| !is_comma(token)) {
                        value.push(token);
                    }
                    tokens.next();
                    if value.is_empty() {
                        let text = match known::find(&name.to_string()) {
                            Some(known) if !known.has_value() => no_value(known),
                            known => no_equals(&name, known),
                        };
                        return Err(Mistake::new(equals.span(), text));
                    }
                    Some(value)
                }
                Some(comma) if is_comma(&comma) => None,
                Some(other) => {
                    let text =
                        format!("write `=` and a value after `{name}`, or `,` and the next option");
                    return Err(Mistake::new(other.span(), text));
                }
                None => None,
            };
            if seen.contains(&name.to_string()) {
                let text = format!("`{name}` is set twice: remove one of them");
                return Err(Mistake::new(name.span(), text));
            }
            // A loop may have several observers, and report on several signals.
            if name.to_string() != "observer" && name.to_string() != "report_on" {
                seen.push(name.to_string());
            }
            options.set(name, value, kind)?;
        }
        options.check(kind)?;
        Ok(options)
    }

    /// Refuses options that have no effect beside `seeds`, or without `loops`.
    fn check(&self, kind: Kind) -> Result<(), Mistake> {
        if self.loops.is_some() && self.run {
            let text = "remove `run`, or `loops`: several loops end when their main future does";
            return Err(Mistake::new(Span::call_site(), text));
        }
        if kind == Kind::Test && self.loops.is_some() && self.seeds.is_none() {
            let text = "add `seeds = 200`: a test runs its loops on one thread, by seed; \
                        `phaseloop::cluster::Builder` runs loops on threads";
            return Err(Mistake::new(Span::call_site(), text));
        }
        if self.pin && self.loops.is_none() {
            let text = "add `loops = \"cores\"`, or remove `pin`: it keeps each of several loops on a \
                        processor";
            return Err(Mistake::new(Span::call_site(), text));
        }
        let other = self.builder.first().map(|(name, _)| name.span());
        let other = other.or(self.timeout.map(|_| Span::call_site()));
        match (&self.seeds, other) {
            (Some(_), Some(span)) => {
                let text = "remove this option: beside `seeds` stand `loops` and `crate` only; \
                            `phaseloop::shuffle::Explore` has more options";
                Err(Mistake::new(span, text))
            }
            _ => Ok(()),
        }
    }

    /// Returns the macro of the crate that `call`, which needs a feature, goes through: without the
    /// feature, it is an error that names it.
    pub(crate) fn with_feature(&self, gate: &str, call: TokenStream, span: Span) -> TokenStream {
        let mut tokens = self.crate_path(span);
        tokens.extend(tail(&[gate], span));
        tokens.extend([punct('!', span), parenthesized(call, span)]);
        tokens
    }

    /// Returns the number of seeds that a test runs under, after that of its loops if it has
    /// several.
    pub(crate) fn seeds(&self, span: Span) -> Option<TokenStream> {
        let seeds = self.seeds.clone()?;
        let Some(mut tokens) = self.loops.clone() else {
            return Some(seeds);
        };
        tokens.extend([punct(',', span)]);
        tokens.extend(seeds);
        Some(tokens)
    }

    fn set(
        &mut self,
        name: Ident,
        value: Option<Vec<TokenTree>>,
        kind: Kind,
    ) -> Result<(), Mistake> {
        let Some(known) = known::find(&name.to_string()) else {
            return Err(Mistake::new(name.span(), unknown(&name.to_string(), kind)));
        };
        if !known.is_for(kind) {
            let other = match kind {
                Kind::Main => Kind::Test,
                Kind::Test => Kind::Main,
            };
            let text = format!(
                "remove `{name}`, an option of {}: {}",
                other.attribute(),
                known::list(kind)
            );
            return Err(Mistake::new(name.span(), text));
        }
        match (known.name, value) {
            (_, None) if known.has_value() => {
                return Err(Mistake::new(name.span(), no_equals(&name, Some(known))));
            }
            (_, Some(_)) if !known.has_value() => {
                return Err(Mistake::new(name.span(), no_value(known)));
            }
            ("crate", Some(value)) => {
                if matches!(value[..], [TokenTree::Literal(_)]) {
                    let text = "remove the quotation marks: write `crate = ::phaseloop`";
                    return Err(Mistake::new(value[0].span(), text));
                }
                self.crate_path = Some(value.into_iter().collect());
            }
            ("run", _) => self.run = true,
            ("pin", _) => self.pin = true,
            ("loops", Some(value)) => self.loops = Some(loops_of(value)?),
            ("seeds", Some(value)) => {
                let text = "a test under 0 seeds does not run: write `seeds = 200`";
                self.seeds = Some(not_zero(value, text)?.into_iter().collect());
            }
            ("timeout", Some(value)) => self.timeout = Some(timeout_of(&name, value)?),
            (_, value) => {
                let value = value.map(|value| value.into_iter().collect());
                self.builder.push((name, value));
            }
        }
        Ok(())
    }

    /// Returns the path of the crate.
    pub(crate) fn crate_path(&self, span: Span) -> TokenStream {
        match &self.crate_path {
            Some(path) => path.clone(),
            None => path(&["phaseloop"], span),
        }
    }

    /// Returns the name of the function that runs the future.
    pub(crate) fn runner(&self, kind: Kind) -> &'static str {
        match kind {
            Kind::Test if self.loops.is_some() => "explore_loops",
            Kind::Test if self.seeds.is_some() => "explore",
            Kind::Test => "test",
            Kind::Main if self.loops.is_some() => "cluster",
            Kind::Main if self.run => "run",
            Kind::Main => "main",
        }
    }

    /// Returns `::phaseloop::Builder::new().option(value)`.
    pub(crate) fn builder(&self, span: Span) -> TokenStream {
        let mut tokens = self.crate_path(span);
        tokens.extend(tail(&["Builder", "new"], span));
        tokens.extend([empty_call(span)]);
        for (name, value) in &self.builder {
            // With the span of the name, an unknown option is an error there.
            let at = name.span();
            tokens.extend([
                punct('.', at),
                name.clone().into(),
                parenthesized(value.clone().unwrap_or_default(), at),
            ]);
            if let Some(gate) = known::find(&name.to_string()).and_then(|known| known.gate) {
                tokens = self.with_feature(gate, tokens, at.resolved_at(span));
            }
        }
        tokens
    }

    /// Returns `Some(loops), pin, move ||`, the arguments of a cluster before its builder.
    pub(crate) fn loops(&self, span: Span) -> Option<TokenStream> {
        let loops = self.loops.clone()?;
        let mut tokens = if loops.is_empty() {
            path(&["core", "option", "Option", "None"], span)
        } else {
            let mut some = path(&["core", "option", "Option", "Some"], span);
            some.extend([parenthesized(loops, span)]);
            some
        };
        let pin = if self.pin { "true" } else { "false" };
        tokens.extend([
            punct(',', span),
            Ident::new(pin, span).into(),
            punct(',', span),
            Ident::new("move", span).into(),
            punct('|', span),
            punct('|', span),
        ]);
        Some(tokens)
    }

    /// Returns `Some(Duration::from_nanos(…))` or `None`.
    pub(crate) fn timeout(&self, span: Span) -> TokenStream {
        let Some(nanoseconds) = self.timeout else {
            return path(&["core", "option", "Option", "None"], span);
        };
        let mut duration = path(&["core", "time", "Duration", "from_nanos"], span);
        let number = TokenTree::from(Literal::u64_suffixed(nanoseconds));
        duration.extend([parenthesized(number.into(), span)]);
        let mut tokens = path(&["core", "option", "Option", "Some"], span);
        tokens.extend([parenthesized(duration, span)]);
        tokens
    }
}

/// An option without `=`, or without a value after it.
fn no_equals(name: &Ident, known: Option<&Known>) -> String {
    match known {
        Some(known) => format!("`{name}` needs a value: write `{}`", known.example),
        None => format!("write a value after `{name} =`"),
    }
}

/// An option that is on when it is named.
fn no_value(known: &Known) -> String {
    let name = known.name;
    format!("write `{name}` alone: it takes no value, and is off unless it is named")
}

/// An option that no attribute has.
fn unknown(name: &str, kind: Kind) -> String {
    let list = known::list(kind);
    match name {
        "flavor" | "worker_threads" => format!(
            "there is no option `{name}`, since a loop runs on one thread: write `loops = 4` for \
             four of them, or remove it; {list}"
        ),
        _ => format!("there is no option `{name}`: {list}"),
    }
}

/// Refuses the literal zero.
fn not_zero(value: Vec<TokenTree>, text: &str) -> Result<Vec<TokenTree>, Mistake> {
    match value.as_slice() {
        [TokenTree::Literal(literal)] if is_zero(&literal.to_string()) => {
            Err(Mistake::new(literal.span(), text))
        }
        _ => Ok(value),
    }
}

/// Returns whether a literal is a zero of any type: `0`, `0_usize`, `00`.
fn is_zero(literal: &str) -> bool {
    let digits = literal.trim_start_matches(['0', '_']);
    literal.starts_with('0') && matches!(digits, "" | "u64" | "u32" | "usize" | "i32")
}

/// Returns the number of loops, and nothing for `"cores"`.
fn loops_of(value: Vec<TokenTree>) -> Result<TokenStream, Mistake> {
    if let [TokenTree::Literal(literal)] = value.as_slice() {
        let text = literal.to_string();
        if text == "\"cores\"" {
            return Ok(TokenStream::new());
        }
        if text.starts_with('"') {
            let text =
                format!("{text} is no number of loops: write `loops = 4` or `loops = \"cores\"`");
            return Err(Mistake::new(literal.span(), text));
        }
    }
    let text = "a program has at least one loop: write `loops = 4` or `loops = \"cores\"`";
    Ok(not_zero(value, text)?.into_iter().collect())
}

fn is_comma(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')
}

fn timeout_of(name: &Ident, value: Vec<TokenTree>) -> Result<u64, Mistake> {
    let [TokenTree::Literal(literal)] = value.as_slice() else {
        let text = "write the time limit as text: `timeout = \"5s\"`";
        return Err(Mistake::new(name.span(), text));
    };
    let text = literal.to_string();
    duration::parse(text.trim_matches('"')).ok_or_else(|| {
        let text =
            format!("{text} is no duration: write a whole number with ms, s or m, such as \"5s\"");
        Mistake::new(literal.span(), text)
    })
}
