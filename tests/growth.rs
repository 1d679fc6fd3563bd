//! What a hook costs must not depend on how long the session is, nor memory on how much tools say.
//!
//! Work is counted, not timed: in instructions of the component, which two runs agree on to the last
//! one. In a session that is a hundred times as long maps are a few levels deeper and the heap has more
//! holes to choose from, which is what the tolerance is for; anything that looks at the whole session
//! is a hundred times as much.

#[path = "../benches/hooks/component_lane.rs"]
mod component_lane;
#[path = "../benches/hooks/long.rs"]
mod long;

use component_lane::Component;
use long::{Lane, Long};

const SHORT: usize = 200;
const LENGTHY: usize = 20_000;

/// What a hook may cost in the lengthy session, in percent of what it costs in the short one.
const TOLERANCE_PERCENT: u64 = 200;

/// Enough for a batch to be summarized, and no more: long results only take longer.
const RESULT_CHARS: usize = 1_200;

/// The settings under which hooks are measured.
const SETTINGS: [(&str, &str); 3] = [
    ("defaults", "{}"),
    ("on demand", r#"{"pruneOn":"on-demand"}"#),
    (
        "open chains",
        r#"{"chainCompression":{"openChain":{"keepTurns":8}},"flushWhenSaves":10000}"#,
    ),
];

/// How many chains are measured: what waits for company, as under `flushWhenSaves`, is not there in
/// each of them.
const ROUNDS: usize = 10;

/// What the hooks cost at one length, in instructions, on average.
fn costs(config: &str, n_messages: usize) -> [(&'static str, u64); 5] {
    let mut long = Long::<Component>::new(config, RESULT_CHARS);
    long.grow_to(n_messages);
    let mut costs = round(&mut long);
    for _ in 1..ROUNDS {
        for ((_, sum), (_, cost)) in costs.iter_mut().zip(round(&mut long)) {
            *sum += cost;
        }
    }
    costs.map(|(hook, sum)| (hook, sum / ROUNDS as u64))
}

/// What the hooks cost in one chain.
fn round(long: &mut Long<Component>) -> [(&'static str, u64); 5] {
    let plan = |long: &mut Long<Component>| {
        long.plan();
    };
    long.plan();
    let unchanged = fuel(long, plan);
    let idle = fuel(long, |long| {
        let now_ms = long.tick();
        long.lane.turn_end(now_ms);
    });
    long.user();
    long.call();
    long.plan();
    long.result();
    let sync = fuel(long, plan);
    long.turns(19);
    long.plan();
    let flush = fuel(long, Long::flush);
    [
        ("plan, unchanged", unchanged),
        ("turn end, nothing to do", idle),
        ("sync of a result", sync),
        ("flush of 20 calls", flush),
        ("plan after it", fuel(long, plan)),
    ]
}

fn fuel(long: &mut Long<Component>, hook: impl FnOnce(&mut Long<Component>)) -> u64 {
    let before = long.lane.session.fuel_spent();
    hook(long);
    long.lane.session.fuel_spent() - before
}

#[test]
fn no_hook_costs_more_in_a_long_session() {
    let mut grown = Vec::new();
    for (name, config) in SETTINGS {
        let (short, lengthy) = (costs(config, SHORT), costs(config, LENGTHY));
        for ((hook, before), (_, after)) in short.into_iter().zip(lengthy) {
            println!("{name}: {hook}: {before} instructions, in the long session {after}");
            if after * 100 > before * TOLERANCE_PERCENT {
                grown.push(format!("{name}: {hook}: {before} -> {after}"));
            }
        }
    }
    assert!(grown.is_empty(), "these grow with the session: {grown:#?}");
}

#[test]
fn all_chains_but_the_last_three_are_blocks() {
    let mut long = Long::<Component>::new("{}", RESULT_CHARS);
    long.grow_to(LENGTHY / 10);
    // One for each chain but those of the rolling window.
    assert_eq!(
        long.lane.session.status().expect("it is there").blocks,
        100 - 3
    );
}

#[test]
fn twice_the_session_is_twice_the_work() {
    for (name, config) in SETTINGS {
        let work = |n_messages| {
            let mut long = Long::<Component>::new(config, RESULT_CHARS);
            long.grow_to(n_messages);
            long.plan();
            let played = long.lane.session.fuel_spent();
            long.lane.load(0);
            long.plan();
            (played, long.lane.session.fuel_spent())
        };
        let (once, twice) = (work(2_500), work(5_000));
        for (what, once, twice) in [("playing", once.0, twice.0), ("loading", once.1, twice.1)] {
            println!("{name}: {what}: {once} instructions, twice as long {twice}");
            assert!(twice * 10 <= once * 22, "{name}: {what}: {once} -> {twice}");
        }
    }
}

/// With the default settings, as all sessions have them.
#[test]
fn the_output_of_tools_does_not_stay_in_memory() {
    const RESULTS: usize = 35_000;
    let mut long = Long::<Component>::new("{}", 10_000);
    long.lane.log.lock().expect("not poisoned").forgets_results = true;
    let messages = RESULTS / long::TURNS_PER_CHAIN * (2 * long::TURNS_PER_CHAIN + 2);
    long.grow_to(messages);
    long.plan();
    let bytes = long.lane.session.memory_bytes();
    println!("{RESULTS} results of 10 kB: {} MiB", bytes >> 20);
    assert!(bytes < 64 << 20, "{bytes} bytes");
}
