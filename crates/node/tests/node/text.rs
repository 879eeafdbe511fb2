//! Bytes to text, against what Node's `StringDecoder` made of the same chunks.

use phaseloop_node::Error;
use phaseloop_node::fs::Flags;
use phaseloop_node::string_decoder::{Encoding, StringDecoder};

/// Made by `conformance/decoder/record.js`.
const RECORDED: &str = include_str!("../conformance/decoder/recorded.txt");

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn n146_random_chunks_are_decoded_as_node_decodes_them() {
    let mut lines = 0;
    for line in RECORDED.lines() {
        let [encoding, chunks, texts] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let mut decoder = StringDecoder::new(encoding.parse().unwrap());
        let mut seen: Vec<_> = chunks
            .split(',')
            .map(|chunk| decoder.write(&bytes(chunk)))
            .collect();
        seen.push(decoder.end());
        let expected = texts.split(',').map(|text| String::from_utf8(bytes(text)));
        let expected: Vec<_> = expected.map(Result::unwrap).collect();
        assert_eq!(seen, expected, "{line}");
        lines += 1;
    }
    assert_eq!(lines, 400);
}

#[test]
fn n146_a_cut_surrogate_pair_waits_for_its_second_half() {
    let mut decoder = StringDecoder::new(Encoding::Utf16le);
    assert_eq!(decoder.write(&[0x61, 0, 0x3d, 0xd8, 0x00]), "a");
    assert_eq!(decoder.write(&[0xde]), "😀");
    assert_eq!(decoder.write(&[0x3d]), "");
    assert_eq!(decoder.write(&[0xd8]), "");
    assert_eq!(decoder.write(&[0x00, 0xde, 0x62]), "😀");
    assert_eq!(decoder.end(), "", "half a unit is dropped");
    assert_eq!(decoder.write(&[0x3d, 0xd8]), "");
    assert_eq!(decoder.end_with(&[0x62]), "\u{fffd}");
}

#[test]
fn names_that_node_does_not_know_are_type_errors() {
    let error = "utf7".parse::<Encoding>().unwrap_err();
    assert_eq!(
        (error.name(), error.code()),
        ("TypeError", Some("ERR_UNKNOWN_ENCODING"))
    );
    let thrown = phaseloop_node::catch(|| Flags::from("zz")).unwrap_err();
    let error: &Error = thrown.error().unwrap().downcast_ref().unwrap();
    assert_eq!(
        (error.name(), error.code()),
        ("TypeError", Some("ERR_INVALID_ARG_VALUE"))
    );
    assert_eq!(
        error.message(),
        "The argument 'flags' is invalid. Received 'zz'"
    );
}

#[test]
fn n146_a_decoder_begins_anew_after_its_end() {
    let mut decoder = StringDecoder::new(Encoding::Utf8);
    assert_eq!(decoder.end_with(&[0xe2, 0x82]), "\u{fffd}");
    assert_eq!(decoder.write("€".as_bytes()), "€");
    assert_eq!(decoder.end(), "");
}
