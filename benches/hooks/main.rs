//! What the hooks cost, in the engine and through the component, at three lengths of the session.
//!
//! Hooks make a session longer, so none is timed over and over on the same one: each sample takes a
//! few hooks, and the session is made anew once it has grown by a tenth.
//!
//! `cargo bench --bench hooks -- load` shows instead what each step of a load takes.

mod component_lane;
mod engine_lane;
mod load;
mod long;

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, SamplingMode, criterion_group};

use component_lane::Component;
use engine_lane::Native;
use long::{Lane, Long};

/// The defaults.
const SETTINGS: &str = "{}";

/// Messages in the session.
const LENGTHS: [usize; 3] = [200, 2_000, 20_000];

/// Bytes of a tool result.
const RESULT_BYTES: usize = 4096;

/// How many calls one flush takes up.
const CALLS: usize = 20;

/// A hook: makes ready, then takes the time of the hook alone.
type Hook<L> = fn(&mut Long<L>) -> Duration;

fn plan_unchanged<L: Lane>(long: &mut Long<L>) -> Duration {
    long.plan();
    timed(|| long.plan())
}

/// A tool result of 4 KB, with the plan of the model call that follows it.
fn sync<L: Lane>(long: &mut Long<L>) -> Duration {
    long.call();
    long.plan();
    long.result();
    timed(|| long.plan())
}

fn flush<L: Lane>(long: &mut Long<L>) -> Duration {
    wait_for_flush(long);
    let took = timed(|| long.flush());
    long.plan();
    took
}

fn plan_after_flush<L: Lane>(long: &mut Long<L>) -> Duration {
    wait_for_flush(long);
    long.flush();
    timed(|| long.plan())
}

fn restore<L: Lane>(long: &mut Long<L>) -> Duration {
    let now_ms = long.tick();
    let steps = long.lane.load(now_ms).0;
    steps.into_iter().map(|(_, took)| took).sum()
}

fn wait_for_flush<L: Lane>(long: &mut Long<L>) {
    long.user();
    long.turns(CALLS);
    long.plan();
}

#[expect(clippy::disallowed_methods, reason = "a benchmark takes the time")]
fn timed<T>(hook: impl FnOnce() -> T) -> Duration {
    let began = Instant::now();
    std::hint::black_box(hook());
    began.elapsed()
}

fn lane<L: Lane>(criterion: &mut Criterion, name: &str) {
    // How many hooks a sample takes.
    let hooks: [(&str, Hook<L>, u32); 5] = [
        ("plan unchanged", plan_unchanged, 1_000),
        ("plan after flush", plan_after_flush, 2),
        ("flush 20 calls", flush, 2),
        ("restore", restore, 1),
        // Last, because what it leaves is not flushed.
        ("sync 4 KB", sync, 50),
    ];
    for n_messages in LENGTHS {
        let mut long = Long::<L>::new(SETTINGS, RESULT_BYTES);
        for (hook, run, n) in hooks {
            let mut group = criterion.benchmark_group(format!("{name}/{hook}"));
            group.sampling_mode(SamplingMode::Flat);
            group.bench_function(BenchmarkId::from_parameter(n_messages), |bencher| {
                bencher.iter_custom(|iterations| {
                    let mut took = Duration::ZERO;
                    for _ in 0..n {
                        if long.n_messages > n_messages + n_messages / 10 {
                            long = Long::new(SETTINGS, RESULT_BYTES);
                        }
                        long.grow_to(n_messages);
                        took += run(&mut long);
                    }
                    took.mul_f64(iterations as f64 / f64::from(n))
                });
            });
            group.finish();
        }
    }
}

fn hooks(criterion: &mut Criterion) {
    lane::<Native>(criterion, "engine");
    lane::<Component>(criterion, "component");
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(500));
    targets = hooks
}

fn main() {
    if std::env::args().any(|argument| argument == "load") {
        load::table::<Native>("engine");
        load::table::<Component>("component");
        return;
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
