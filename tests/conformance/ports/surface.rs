//! 300–349: what stands next to the rest of Node's surface: encodings, file options, programs with options, operators.

use phaseloop::node::stream::{CLOSE, END, READABLE, Readable};
use phaseloop::node::string_decoder::Encoding;
use phaseloop::node::{Emitter, next_tick, set_immediate};

use crate::support::{log, say};

super::ports! {
    Virtual "300-set-encoding" => set_encoding,
    Virtual "301-set-encoding-late" => set_encoding_late,
    Virtual "302-set-encoding-hex" => set_encoding_hex,
}

async fn set_encoding() {
    let r = Readable::bytes().build();
    r.set_encoding(Encoding::Utf8);
    log(format!("encoding-{}", r.encoding().unwrap()));
    r.on_text(|d| {
        log(format!("data-{d}"));
        let token = format!("tick-{d}");
        next_tick(move || log(token));
    });
    r.on(END, |()| log("end"));
    r.on(CLOSE, |()| log("close"));
    set_immediate(move || {
        r.push(vec![0x61, 0xe2]);
        log("pushed");
        r.push(vec![0x82]);
        r.push(vec![0xac, 0x62]);
        next_tick(say("tick"));
        set_immediate(move || {
            r.push(vec![0xf0, 0x9f]);
            r.push_end();
            log("ended");
        });
    });
}

async fn set_encoding_late() {
    let r = Readable::bytes().high_water_mark(8).build();
    let kept = |r: &Readable<Vec<u8>>| log(format!("kept-{}", r.length()));
    log(r.push("€uro ".into()).to_string());
    kept(&r);
    r.set_encoding(Encoding::Utf8);
    kept(&r);
    log(r.push("😀".into()).to_string());
    kept(&r);
    let read = r.read_size(2).unwrap();
    log(format!("read-{}", String::from_utf8(read).unwrap()));
    kept(&r);
    let this = r.clone();
    r.on(READABLE, move |()| {
        log("readable");
        while let Some(d) = this.read_text() {
            log(format!("chunk-{d}"));
        }
    });
    r.on(END, |()| log("end"));
    r.push(vec![0xc3]);
    set_immediate(move || {
        kept(&r);
        r.push(vec![0xa9]);
        r.push_end();
    });
}

async fn set_encoding_hex() {
    for name in ["hex", "base64", "base64url", "latin1", "ascii", "utf16le"] {
        let r = Readable::bytes().build();
        r.set_encoding(name.parse().unwrap());
        r.on_text(move |d| log(format!("{name}-{d}")));
        r.on(END, move |()| log(format!("{name}-end")));
        let chunks: [&[u8]; 6] = [
            &[0xff, 0xfb],
            &[0x41],
            &[0x04],
            &[0x3d, 0xd8],
            &[0x00, 0xde],
            &[0x42],
        ];
        for chunk in chunks {
            r.push(chunk.to_vec());
        }
        r.push_end();
    }
    let error = "utf7".parse::<Encoding>().unwrap_err();
    log(format!("{}-{}", error.code().unwrap(), error.message()));
}
