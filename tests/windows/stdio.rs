//! Standard streams on the loop.

use std::fs::{self, File};

use phaseloop::io::{AsyncWriteExt, StdioKind};
use phaseloop::process::Stdio;

use crate::child::part;
use crate::run;

#[test]
fn pipes_are_read_and_written_by_the_pool() {
    run(async {
        let mut child = part("loop")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&[b'x'; 200_000]).await.unwrap();
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(text.len(), "Pipe Pipe ".len() + 200_000);
        assert!(text.starts_with("Pipe Pipe xxx"), "{}", &text[..20]);
    });
}

#[test]
fn files_and_devices_are_streams_as_well() {
    run(async {
        let directory = std::env::temp_dir();
        let [from, to] = ["from", "to"]
            .map(|name| directory.join(format!("phaseloop-stdio-{name}-{}", std::process::id())));
        fs::write(&from, "content").unwrap();
        let status = part("loop")
            .stdin(File::open(&from).unwrap())
            .stderr(File::create(&to).unwrap())
            .status()
            .await;
        assert!(status.unwrap().success());
        assert_eq!(fs::read_to_string(&to).unwrap(), "File File content");
        let output = part("loop").stdin(Stdio::null()).output().await.unwrap();
        assert_eq!(output.stderr, b"Device Pipe ");
        for path in [from, to] {
            fs::remove_file(path).unwrap();
        }
    });
}

#[test]
fn the_kind_of_a_handle_is_known() {
    assert_eq!(StdioKind::of(File::open("NUL").unwrap()), StdioKind::Device);
    let program = File::open(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(StdioKind::of(program), StdioKind::File);
    let (reader, _writer) = std::io::pipe().unwrap();
    assert_eq!(StdioKind::of(reader), StdioKind::Pipe);
}
