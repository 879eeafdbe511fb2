//! `#[phaseloop::main(loops = …)]`.

use std::num::NonZeroU64;

use phaseloop::cluster;

// C2: the body runs on loop 0.
#[test]
fn the_attribute_starts_so_many_loops() {
    #[phaseloop::main(loops = 1 + 2)]
    async fn main() -> (usize, usize) {
        (cluster::current().len(), cluster::index())
    }
    assert_eq!(main(), (3, 0));
}

#[test]
fn the_attribute_starts_a_loop_for_each_processor() {
    #[phaseloop::main(loops = "cores")]
    async fn main() -> usize {
        cluster::current().len()
    }
    assert_eq!(main(), std::thread::available_parallelism().unwrap().get());
}

// The other options are those of every loop's builder.
#[test]
fn options_of_the_builder_apply_to_every_loop() {
    const BUDGET: NonZeroU64 = NonZeroU64::new(4).unwrap();

    #[phaseloop::main(loops = 2, lane_budget = BUDGET)]
    async fn main() -> Vec<u64> {
        let hits = cluster::current().each(|_| async {
            for _ in 0..20 {
                phaseloop::spawn(async {}).detach();
            }
            phaseloop::phase::check().await;
            phaseloop::LoopHandle::current().budget_hits()
        });
        hits.await.into_iter().map(Result::unwrap).collect()
    }
    let hits = main();
    assert!(hits.iter().all(|hits| *hits > 0), "{hits:?}");
}
