//! The attributes `#[phaseloop::main]` and `#[phaseloop::test]`. Use them through the crate
//! `phaseloop`, which documents them.
//!
//! The attributes read the tokens of the function themselves: a parser for all of Rust would cost
//! every user more build time than these two attributes are worth.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

mod duration;
mod function;
mod known;
mod options;

use function::Function;
use options::Options;

/// A mistake of the user, and where it is.
struct Mistake {
    span: Span,
    text: String,
}

impl Mistake {
    fn new(span: Span, text: impl Into<String>) -> Self {
        Self {
            span,
            text: text.into(),
        }
    }

    /// Returns `::core::compile_error! { "…" }`.
    fn into_tokens(self) -> TokenStream {
        let at = |mut token: TokenTree| {
            token.set_span(self.span);
            token
        };
        let text = TokenTree::from(Literal::string(&self.text));
        let braces = Group::new(Delimiter::Brace, at(text).into());
        let mut tokens = path(&["core", "compile_error"], self.span);
        tokens.extend([
            at(Punct::new('!', Spacing::Alone).into()),
            at(braces.into()),
        ]);
        tokens
    }
}

// Its documentation is in `phaseloop`: a page shows the text of a re-export and this one.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let defines_main = function::is_named_main(item.clone());
    expand(arguments, item, Kind::Main).unwrap_or_else(|mistake| {
        let mut tokens = mistake.into_tokens();
        if defines_main {
            // Without it, a second error would say that the program has no main function.
            tokens.extend("fn main() {}".parse::<TokenStream>());
        }
        tokens
    })
}

// Its documentation is in `phaseloop`.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand(arguments, item, Kind::Test).unwrap_or_else(Mistake::into_tokens)
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Main,
    Test,
}

impl Kind {
    /// Returns the attribute as a user writes it.
    fn attribute(self) -> &'static str {
        match self {
            Self::Main => "`#[phaseloop::main]`",
            Self::Test => "`#[phaseloop::test]`",
        }
    }
}

/// Returns the function without `async`, whose body defines the function as it was and runs it:
///
/// ```text
/// fn name() -> T {
///     async fn name() -> T { … }
///     ::phaseloop::attributes::main(::phaseloop::Builder::new().option(value), name())
/// }
/// ```
fn expand(arguments: TokenStream, item: TokenStream, kind: Kind) -> Result<TokenStream, Mistake> {
    let function = Function::parse(item, kind)?;
    let options = Options::parse(arguments, kind)?;
    // Errors about the call, such as an output that is no `Termination`, point at the function.
    let span = function.name.span().resolved_at(Span::call_site());

    let mut runner = options.crate_path(span);
    runner.extend(tail(&["attributes", options.runner(kind)], span));
    let name = TokenTree::from(function.name.clone());
    let call = match options.seeds(span) {
        Some(mut call) => {
            call.extend(comma(span));
            call.extend([name]);
            call
        }
        None => {
            let mut call = options.loops(span).unwrap_or_default();
            call.extend(options.builder(span));
            call.extend(comma(span));
            if kind == Kind::Test {
                call.extend(options.timeout(span));
                call.extend(comma(span));
            }
            call.extend([name, empty_call(span)]);
            call
        }
    };
    runner.extend([parenthesized(call, span)]);
    if options.seeds(span).is_some() {
        runner = options.with_feature("__with_test_util", runner, span);
    }
    if options.loops(span).is_some() {
        runner = options.with_feature("__with_cluster", runner, span);
    }
    let mut body = function.as_written();
    body.extend(runner);

    let mut tokens = TokenStream::new();
    if kind == Kind::Test {
        let attribute = Group::new(
            Delimiter::Bracket,
            path(&["core", "prelude", "v1", "test"], span),
        );
        tokens.extend([punct('#', span), TokenTree::from(attribute)]);
    }
    tokens.extend(function.outer(body));
    Ok(tokens)
}

fn punct(character: char, span: Span) -> TokenTree {
    let mut punct = Punct::new(character, Spacing::Alone);
    punct.set_span(span);
    punct.into()
}

fn comma(span: Span) -> Option<TokenTree> {
    Some(punct(',', span))
}

/// Returns `()`, as in a call without arguments.
fn empty_call(span: Span) -> TokenTree {
    parenthesized(TokenStream::new(), span)
}

fn parenthesized(inside: TokenStream, span: Span) -> TokenTree {
    let mut group = Group::new(Delimiter::Parenthesis, inside);
    group.set_span(span);
    group.into()
}

/// Returns `::a::b`.
fn path(names: &[&str], span: Span) -> TokenStream {
    tail(names, span)
}

/// Returns `::a::b`, to stand after a path or alone.
fn tail(names: &[&str], span: Span) -> TokenStream {
    let mut tokens = TokenStream::new();
    for name in names {
        let mut first = Punct::new(':', Spacing::Joint);
        first.set_span(span);
        tokens.extend([
            first.into(),
            punct(':', span),
            TokenTree::from(Ident::new(name, span)),
        ]);
    }
    tokens
}
