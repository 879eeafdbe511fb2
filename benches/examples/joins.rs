//! What a spawn and a join cost on plain tokio, by where the joiner stands and by the drivers of the runtime:
//! `joins main|task plain|drivers COUNT`, under callgrind with two counts.

use tokio::runtime::Builder;

async fn joins(count: u64) {
    for _ in 0..count {
        tokio::spawn(async {}).await.expect("it does not panic");
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [place, kind, count] = arguments.as_slice() else {
        panic!("joins main|task plain|drivers COUNT");
    };
    let count = count.parse().expect("a number");
    let mut builder = Builder::new_current_thread();
    if kind == "drivers" {
        builder.enable_all();
    }
    let runtime = builder.build().expect("the runtime starts");
    match place.as_str() {
        "main" => runtime.block_on(joins(count)),
        _ => runtime.block_on(async move {
            let joiner = tokio::spawn(joins(count));
            joiner.await.expect("it does not panic");
        }),
    }
}
