//! The arguments of an attribute: `crate = path`, `run`, `timeout = "5s"`, `seeds = 200`, and any
//! option of `phaseloop::Builder`.

use proc_macro::{Ident, Literal, Span, TokenStream, TokenTree};

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
        let mut tokens = arguments.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let TokenTree::Ident(name) = token else {
                let text = "expected an option, such as `lane_budget = …`";
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
                        let text = format!("the option `{name}` has no value after `=`");
                        return Err(Mistake::new(equals.span(), text));
                    }
                    Some(value)
                }
                Some(comma) if is_comma(&comma) => None,
                Some(other) => {
                    return Err(Mistake::new(
                        other.span(),
                        "expected `=` or `,` after an option",
                    ));
                }
                None => None,
            };
            options.set(name, value, kind)?;
        }
        options.check(kind)?;
        Ok(options)
    }

    /// Refuses options that have no effect beside `seeds`, or without `loops`.
    fn check(&self, kind: Kind) -> Result<(), Mistake> {
        if self.loops.is_some() && self.run {
            let text = "`loops` does not go with `run`: a cluster ends when its main future does";
            return Err(Mistake::new(Span::call_site(), text));
        }
        if kind == Kind::Test && self.loops.is_some() && self.seeds.is_none() {
            let text = "the `loops` of a test go with `seeds`, which run them on one thread; \
                        `phaseloop::cluster::Builder` runs them on threads";
            return Err(Mistake::new(Span::call_site(), text));
        }
        if self.pin && self.loops.is_none() {
            let text = "`pin` goes with `loops`";
            return Err(Mistake::new(Span::call_site(), text));
        }
        let other = self.builder.first().map(|(name, _)| name.span());
        let other = other.or(self.timeout.map(|_| Span::call_site()));
        match (&self.seeds, other) {
            (Some(_), Some(span)) => {
                let text = "`seeds` goes with no other option: use `phaseloop::shuffle::Explore`";
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
        match (name.to_string().as_str(), value) {
            ("crate", Some(value)) if !matches!(value[..], [TokenTree::Literal(_)]) => {
                self.crate_path = Some(value.into_iter().collect());
            }
            ("crate", _) => {
                let text = "expected `crate = path`, without quotation marks";
                return Err(Mistake::new(name.span(), text));
            }
            ("run", None) if kind == Kind::Main => self.run = true,
            ("loops", Some(value)) => {
                self.loops = Some(loops_of(value)?);
            }
            ("loops", None) => {
                let text = "expected `loops = 4` or `loops = \"cores\"`";
                return Err(Mistake::new(name.span(), text));
            }
            ("pin", None) if kind == Kind::Main => self.pin = true,
            ("seeds", Some(value)) if kind == Kind::Test => {
                self.seeds = Some(value.into_iter().collect());
            }
            ("timeout", value) if kind == Kind::Test => {
                self.timeout = Some(timeout_of(&name, value)?);
            }
            ("seeds", None) if kind == Kind::Test => {
                return Err(Mistake::new(name.span(), "expected `seeds = 200`"));
            }
            ("timeout" | "seeds", _) => {
                let text = format!("`{name}` is an option of `#[phaseloop::test]`");
                return Err(Mistake::new(name.span(), text));
            }
            ("run", _) if kind == Kind::Test => {
                let text = "`run` is an option of `#[phaseloop::main]`";
                return Err(Mistake::new(name.span(), text));
            }
            ("flavor" | "worker_threads", _) => {
                let text = format!(
                    "there is no option `{name}`, since a loop runs on one thread; `loops = 4` runs \
                     four of them, and the other options are the methods of `phaseloop::Builder`"
                );
                return Err(Mistake::new(name.span(), text));
            }
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
            if let Some(gate) = gate_of(&name.to_string()) {
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

/// The macro of the crate for the methods of `Builder` that need a feature.
fn gate_of(option: &str) -> Option<&'static str> {
    Some(match option {
        "auto_advance" | "network" | "outside_timeout" | "shuffle" | "start_paused" => {
            "__with_test_util"
        }
        "ignore_environment" | "observer" | "record" | "watchdog" => "__with_probe",
        "tracing" => "__with_tracing",
        "report_on" => "__with_signal",
        "tokio" => "__with_tokio_rt",
        _ => return None,
    })
}

/// Returns the number of loops, and nothing for `"cores"`.
fn loops_of(value: Vec<TokenTree>) -> Result<TokenStream, Mistake> {
    if let [TokenTree::Literal(literal)] = value.as_slice() {
        let text = literal.to_string();
        if text == "\"cores\"" {
            return Ok(TokenStream::new());
        }
        if text.starts_with('"') {
            let text = format!("{text} is not a number of loops: write a number or \"cores\"");
            return Err(Mistake::new(literal.span(), text));
        }
    }
    Ok(value.into_iter().collect())
}

fn is_comma(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')
}

fn timeout_of(name: &Ident, value: Option<Vec<TokenTree>>) -> Result<u64, Mistake> {
    let value = value.unwrap_or_default();
    let [TokenTree::Literal(literal)] = value.as_slice() else {
        return Err(Mistake::new(name.span(), "expected `timeout = \"5s\"`"));
    };
    let text = literal.to_string();
    duration::parse(text.trim_matches('"')).ok_or_else(|| {
        let text = format!(
            "{text} is not a duration: write a whole number with ms, s or m, such as \"5s\""
        );
        Mistake::new(literal.span(), text)
    })
}
