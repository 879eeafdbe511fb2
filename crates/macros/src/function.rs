//! The function under an attribute.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use crate::{Kind, Mistake};

/// An `async fn` without arguments, in pieces.
pub(crate) struct Function {
    /// Attributes and visibility.
    before: Vec<TokenTree>,
    async_word: TokenTree,
    fn_word: TokenTree,
    pub(crate) name: Ident,
    arguments: TokenTree,
    /// The return type and a `where` clause.
    result: Vec<TokenTree>,
    body: Group,
}

impl Function {
    pub(crate) fn parse(item: TokenStream, kind: Kind) -> Result<Self, Mistake> {
        let mut tokens: Vec<_> = item.into_iter().collect();
        let body = match tokens.pop() {
            Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => body,
            last => {
                let span = last.map_or_else(Span::call_site, |token| token.span());
                return Err(Mistake::new(span, no_function(kind)));
            }
        };
        let Some(at) = tokens.iter().position(|token| is_word(token, "fn")) else {
            return Err(Mistake::new(Span::call_site(), no_function(kind)));
        };
        let fn_word = tokens[at].clone();
        let async_word = match tokens[..at].last() {
            Some(word) if is_word(word, "async") => word.clone(),
            _ => {
                let attribute = kind.attribute();
                let text = format!(
                    "write `async` before `fn`: {attribute} runs an `async fn` on an event loop"
                );
                return Err(Mistake::new(fn_word.span(), text));
            }
        };
        let Some(TokenTree::Ident(name)) = tokens.get(at + 1).cloned() else {
            return Err(Mistake::new(fn_word.span(), "a function needs a name"));
        };
        let arguments = match tokens.get(at + 2) {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => group,
            Some(other) => {
                let attribute = kind.attribute();
                let text = format!(
                    "remove the generic parameters: {attribute} calls the function, and has no \
                     types for them"
                );
                return Err(Mistake::new(other.span(), text));
            }
            None => {
                return Err(Mistake::new(
                    name.span(),
                    "a function needs a list of arguments",
                ));
            }
        };
        if let Some(first) = arguments.stream().into_iter().next() {
            let text = match kind {
                Kind::Main => {
                    "remove the arguments: a main function takes none; those of the program are in \
                     `std::env::args()`"
                }
                Kind::Test => {
                    "remove the arguments: a test takes none; make the values in its body"
                }
            };
            return Err(Mistake::new(first.span(), text));
        }
        Ok(Self {
            before: tokens[..at - 1].to_vec(),
            async_word,
            fn_word,
            name,
            arguments: arguments.clone().into(),
            result: tokens[at + 3..].to_vec(),
            body,
        })
    }

    /// Returns the function as the user wrote it, without attributes and visibility.
    pub(crate) fn as_written(&self) -> TokenStream {
        let mut tokens = TokenStream::from_iter([self.async_word.clone()]);
        tokens.extend(self.signature());
        tokens.extend([TokenTree::from(self.body.clone())]);
        tokens
    }

    /// Returns the function without `async`, with another body.
    pub(crate) fn outer(&self, body: TokenStream) -> TokenStream {
        let mut group = Group::new(Delimiter::Brace, body);
        group.set_span(self.body.span());
        let mut tokens = TokenStream::from_iter(self.before.iter().cloned());
        tokens.extend(self.signature());
        tokens.extend([TokenTree::from(group)]);
        tokens
    }

    fn signature(&self) -> impl Iterator<Item = TokenTree> {
        let start = [
            self.fn_word.clone(),
            self.name.clone().into(),
            self.arguments.clone(),
        ];
        start.into_iter().chain(self.result.iter().cloned())
    }
}

fn no_function(kind: Kind) -> String {
    let attribute = kind.attribute();
    format!("{attribute} goes on a function with a body: `async fn name() {{ … }}`")
}

/// Returns whether an item is a function with the name `main`.
pub(crate) fn is_named_main(item: TokenStream) -> bool {
    let tokens: Vec<_> = item.into_iter().collect();
    let is_main = |pair: &[TokenTree]| is_word(&pair[0], "fn") && is_word(&pair[1], "main");
    tokens.windows(2).any(is_main)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == word)
}
