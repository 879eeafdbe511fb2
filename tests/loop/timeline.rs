//! The page of `PHASELOOP_TRACE=out.html` in a browser. Without Chromium these tests do nothing.

use std::time::Duration;

use phaseloop::task;
use phaseloop::time::sleep;

use crate::util::browser;
use crate::util::child::in_child;
use crate::util::files::Directory;

/// Uses the page as a reader would, in an element that is 420 pixels wide, and leaves what it found
/// in the title. A frame, since a browser may refuse so small a window.
const READER: &str = r##"
"use strict";
const view = () => [from, to].map(Math.round).join();
const key = name => window.dispatchEvent(new KeyboardEvent("keydown", { key: name }));
const pointer = (name, id, left) => canvas.dispatchEvent(
  new PointerEvent(name, { pointerId: id, clientX: left, pointerType: "touch", bubbles: true }));
canvas.setPointerCapture = () => {};
const seen = {};
const whole = view();
key("+"); const zoomed = view();
key("ArrowRight"); const moved = view();
key("0");
seen.keys = zoomed !== whole && moved !== zoomed && view() === whole;
document.getElementById("in").click(); const pressed = view();
document.getElementById("right").click(); const right = view();
document.getElementById("all").click();
seen.buttons = pressed === zoomed && right === moved && view() === whole;
pointer("pointerdown", 1, 200); pointer("pointerdown", 2, 220);
pointer("pointermove", 2, 300); pointer("pointerup", 2, 300); const pinched = view();
pointer("pointermove", 1, 120); pointer("pointerup", 1, 120);
seen.touch = pinched !== whole && view() !== pinched;
key("0");
for (let i = 0; i < 6; i++) key("+");
search.value = "worker-777"; search.dispatchEvent(new Event("input"));
seen.search = found.textContent.includes("worker-777") && stops.length > 0
  && stops[0][0] >= from && stops[0][1] <= to;
const unfiltered = boxes.length;
only.click();
seen.filter = boxes.length < unfiltered && boxes.every(box => matches.has(box[4].subject));
search.value = "absent"; search.dispatchEvent(new Event("input"));
seen.absent = found.textContent === "not found";
search.value = ""; search.dispatchEvent(new Event("input"));
seen.width = window.innerWidth === 420;
seen.uncut = document.documentElement.scrollWidth <= document.documentElement.clientWidth;
seen.folded = !ROWS.includes("closing") && folded.includes("closing");
seen.words = document.body.textContent.includes("timers delayed")
  && !/took from|who made|nothing in/i.test(document.body.innerHTML.split("<script")[0]);
seen.legend = document.getElementById("of-several").hidden
  && document.querySelector("details").textContent.includes("queue_microtask");
seen.requests = performance.getEntriesByType("resource").length === 0;
seen.header = document.querySelector("h1").textContent.length > 0
  && document.getElementById("date").textContent.length > 0;
parent.postMessage(seen, "*");
"##;

#[test]
fn the_page_finds_a_task_among_a_thousand_and_fits_a_phone() {
    let directory = Directory::new("timeline");
    let path = directory.path("out.html");
    let name = "the_page_finds_a_task_among_a_thousand_and_fits_a_phone";
    let variable = format!("PHASELOOP_TRACE={}", path.to_str().unwrap());
    let child = in_child(&["env", &variable], name, || {
        phaseloop::block_on(async {
            let tasks = (0..1_000).map(|i| {
                let name = format!("worker-{i}");
                let task = task::Builder::new().name(&name);
                task.spawn(sleep(Duration::from_millis(1)))
            });
            let tasks: Vec<_> = tasks.collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    });
    let Some(child) = child else { return };
    assert!(child.wait_with_output().unwrap().status.success());
    let Some(seen) = browser::read(&directory, &path, READER) else {
        return;
    };
    let wanted = [
        "keys", "buttons", "touch", "search", "filter", "absent", "width", "uncut", "folded",
        "requests", "header", "words", "legend",
    ];
    for what in wanted {
        assert!(seen.contains(&format!("\"{what}\":true")), "{what}: {seen}");
    }
}
