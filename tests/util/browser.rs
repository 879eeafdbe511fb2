//! A page of a timeline in a browser.

use std::path::Path;
use std::process::{Command, Stdio};

use super::files::Directory;

/// The names under which distributions have it.
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome-headless-shell",
];

fn browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|name| {
        let mut command = Command::new(name);
        command.arg("--version");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

/// Opens a page in a frame that is 420 pixels wide, runs a script behind its own, and returns what the
/// script has posted to the window around it, as JSON. Without a browser there is no result.
pub(crate) fn read(directory: &Directory, page: &Path, script: &str) -> Option<String> {
    let Some(browser) = browser() else {
        eprintln!("SKIPPED: no Chromium is installed");
        return None;
    };
    let page = std::fs::read_to_string(page).unwrap();
    let (before, after) = page.rsplit_once("</script>").unwrap();
    let page = format!("{before}{script}</script>{after}");
    let quoted = page.replace('&', "&amp;").replace('"', "&quot;");
    let outer = directory.path("outer.html");
    let frame = format!(
        "<!doctype html><pre id=\"seen\"></pre><script>addEventListener('message', event => {{ \
         document.getElementById('seen').textContent = JSON.stringify(event.data); }});</script>\
         <iframe width=\"420\" height=\"800\" style=\"border:0\" srcdoc=\"{quoted}\"></iframe>"
    );
    std::fs::write(&outer, frame).unwrap();
    let profile = directory.path("profile");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args(["--disable-dev-shm-usage", "--virtual-time-budget=10000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", outer.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let (_, seen) = dom.split_once("<pre id=\"seen\">").expect("the page");
    let (seen, _) = seen.split_once("</pre>").unwrap();
    Some(seen.to_owned())
}
