//! Texts and bytes: encodings, and decoders of chunks.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_node::string_decoder::{Encoding, StringDecoder};

use super::{arg, text};
use crate::engine::{Closure, Native, Res, Scope, Val};

pub(super) const TABLE: &[(&str, Native)] = &[
    ("encodeWith", encode_with),
    ("encodingName", encoding_name),
    ("decoder", decoder),
];

/// Returns the encoding of an argument.
pub(super) fn encoding<'js>(
    scope: &Scope<'js>,
    args: &[Val<'js>],
    index: usize,
) -> Res<'js, Encoding> {
    let name = text(scope, args, index)?;
    let parsed = name.parse::<Encoding>();
    parsed.map_err(|error| scope.throw_reason(&error.into()))
}

/// Returns the bytes of a text.
fn encode_with<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let encoding = encoding(scope, args, 1)?;
    let text = text(scope, args, 0)?;
    let units = || text.encode_utf16();
    scope.bytes(&match encoding {
        Encoding::Utf8 => text.into_bytes(),
        Encoding::Utf16le => units().flat_map(u16::to_le_bytes).collect(),
        Encoding::Latin1 | Encoding::Ascii => units().map(|unit| unit as u8).collect(),
        Encoding::Hex => hex(&text),
        Encoding::Base64 | Encoding::Base64url => base64(&text),
        _ => text.into_bytes(),
    })
}

/// Decodes pairs of digits, up to the first that is none.
fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks_exact(2);
    let bytes = pairs.map_while(|pair| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8));
    bytes.collect()
}

/// Decodes both alphabets, up to the padding. Other characters are ignored.
fn base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    };
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text.bytes().take_while(|byte| *byte != b'=') {
        let Some(value) = value(byte) else { continue };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

/// Returns Node's name of an encoding, or `undefined`.
fn encoding_name<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    match text(scope, args, 0)?.parse::<Encoding>() {
        Ok(encoding) => scope.string(encoding.name()),
        Err(_) => Ok(scope.undefined()),
    }
}

/// Returns the functions of a decoder of chunks: `write`, and `end`.
fn decoder<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let decoder = Rc::new(RefCell::new(StringDecoder::new(encoding(scope, args, 0)?)));
    let it = decoder.clone();
    let write: Closure = Rc::new(move |scope, args| {
        let bytes = arg(scope, args, 0).to_bytes().unwrap_or_default();
        let text = it.borrow_mut().write(&bytes);
        scope.string(&text)
    });
    let end: Closure = Rc::new(move |scope, _| {
        let text = decoder.borrow_mut().end();
        scope.string(&text)
    });
    let functions = [scope.closure("write", write)?, scope.closure("end", end)?];
    scope.array(&functions)
}
