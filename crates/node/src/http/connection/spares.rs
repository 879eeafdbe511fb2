//! What connections use again: parsers between two reads, and messages that the program has not
//! kept.
//!
//! An idle connection holds neither. All connections of a server share a few of them.

use std::cell::RefCell;

use crate::http::incoming::SpareBody;
use crate::http::parser::{Head, Kind, Limits, Parser};
use crate::http::response::{ServerResponse, SpareResponse};

/// So many parsers and messages are kept. More are in use at once only if responses wait.
const MOST: usize = 16;

/// The spare parts of a server.
#[derive(Default)]
pub(in crate::http) struct Spares {
    #[expect(clippy::vec_box, reason = "a connection takes and returns the box")]
    parsers: RefCell<Vec<Box<Parser>>>,
    messages: RefCell<Vec<SpareMessages>>,
}

/// A request and its response, which the program cannot see.
#[derive(Default)]
pub(super) struct SpareMessages {
    pub(super) head: Option<Head>,
    pub(super) body: Option<SpareBody>,
    pub(super) response: Option<SpareResponse>,
}

impl Spares {
    pub(super) fn parser(&self, limits: Limits) -> Box<Parser> {
        match self.parsers.borrow_mut().pop() {
            Some(mut parser) => {
                parser.set_limits(limits);
                parser
            }
            None => Box::new(Parser::new(Kind::Request, limits)),
        }
    }

    /// Takes back a parser that is at rest.
    pub(super) fn keep_parser(&self, parser: Box<Parser>) {
        let mut parsers = self.parsers.borrow_mut();
        if parsers.len() < MOST {
            parsers.push(parser);
        }
    }

    pub(super) fn messages(&self) -> SpareMessages {
        self.messages.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back an unseen response and its request.
    pub(super) fn keep_messages(&self, response: ServerResponse) {
        let (response, request) = response.into_spares();
        let (body, head) = request.into_spares();
        let mut messages = self.messages.borrow_mut();
        if messages.len() < MOST {
            messages.push(SpareMessages {
                head: head.map(Head::cleared),
                body: Some(body),
                response: Some(response),
            });
        }
    }
}
