//! The JSON of recorders, and the reader of JSON of the other tests, are as `serde_json` has them.

use phaseloop::observe::Recorder;
use phaseloop::{Builder, task};

use crate::util::json::Value;

#[track_caller]
fn assert_same(ours: &Value, theirs: &serde_json::Value) {
    use serde_json::Value as Theirs;
    match (ours, theirs) {
        (Value::Null, Theirs::Null) => {}
        (Value::Bool(ours), Theirs::Bool(theirs)) => assert_eq!(ours, theirs),
        (Value::Number(ours), Theirs::Number(theirs)) => {
            assert_eq!(Some(*ours), theirs.as_f64());
        }
        (Value::Text(ours), Theirs::String(theirs)) => assert_eq!(ours, theirs),
        (Value::Array(ours), Theirs::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter().zip(theirs) {
                assert_same(ours, theirs);
            }
        }
        (Value::Object(ours), Theirs::Object(theirs)) => {
            assert_eq!(ours.len(), theirs.len());
            for (name, ours) in ours {
                assert_same(ours, &theirs[name]);
            }
        }
        _ => panic!("{ours:?} is not {theirs}"),
    }
}

#[track_caller]
fn read_by_both(text: &str) -> serde_json::Value {
    let theirs = serde_json::from_str(text).unwrap();
    assert_same(&Value::read(text), &theirs);
    theirs
}

/// The name of a task may have any character.
#[test]
fn serde_json_reads_what_a_recorder_writes() {
    let all: String = (0..0x3000)
        .filter_map(char::from_u32)
        .chain(['\u{1f600}'])
        .collect();
    let recorder = Recorder::new();
    let event_loop = Builder::new().record(recorder.clone()).build().unwrap();
    event_loop.block_on(async {
        let named = task::Builder::new().name(&all).spawn(async {});
        named.await.unwrap();
    });
    let mut chrome = Vec::new();
    recorder.write_chrome(&mut chrome).unwrap();
    let trace = read_by_both(std::str::from_utf8(&chrome).unwrap());
    let events = trace["traceEvents"].as_array().unwrap();
    let is_named = |event: &serde_json::Value| {
        let name = event["name"].as_str();
        name.is_some_and(|name| name.contains(&format!("{all:?}")))
    };
    assert!(events.iter().any(is_named));
    let mut page = Vec::new();
    recorder.write_html(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    read_by_both(json);
}

#[test]
fn the_reader_of_the_tests_reads_what_serde_json_reads_and_nothing_else() {
    for text in [
        "null",
        " [ ] ",
        "{}",
        "[true, false, null, {\"a\": [1, {\"b\": {}}]}]",
        "[0, -0, 10, 1.5, -2.25e3, 1E+2, 1e-2]",
        r#""\" \\ \/ \b \f \n \r \t \u0041 \ud83d\ude00""#,
        "\"ü\u{2028}\u{7f}\"",
    ] {
        read_by_both(text);
    }
    for text in [
        "",
        "nul",
        "[",
        "[1,]",
        "[,]",
        "[1 2]",
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{\"a\":1,}",
        "01",
        "+1",
        ".5",
        "5.",
        "1.e3",
        "-",
        "1e",
        "1.2.3",
        "NaN",
        "\"",
        "\"\n\"",
        r#""\x""#,
        r#""\u12""#,
        r#""\u+123""#,
        r#""\ud800""#,
        r#""\ud800\u0041""#,
        r#""\udc00""#,
        "1 2",
    ] {
        assert!(
            serde_json::from_str::<serde_json::Value>(text).is_err(),
            "{text}"
        );
        let ours = std::panic::catch_unwind(|| Value::read(text));
        assert!(ours.is_err(), "{text}: {ours:?}");
    }
}
