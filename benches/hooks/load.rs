//! What each step of a load takes, and how it grows with the session.

use std::time::Duration;

use crate::RESULT_BYTES;
use crate::long::{Lane, Long, Steps};

const LENGTHS: [usize; 3] = [2_000, 20_000, 40_000];

/// A chain has 32 messages.
const TURNS_PER_CHAIN: usize = 15;

/// The median is shown.
const LOADS: usize = 7;

/// Prints a column for each length, in milliseconds.
pub(crate) fn table<L: Lane>(name: &str) {
    table_of::<L, 3>(name, LENGTHS);
}

pub(crate) fn table_of<L: Lane, const N: usize>(name: &str, lengths: [usize; N]) {
    let columns = lengths.map(loads::<L>);
    print!("{name:24}");
    lengths.iter().for_each(|n| print!("{n:>10}"));
    println!();
    for row in 0..columns[0][0].0.len() {
        print!("  {:22}", columns[0][0].0[row].0);
        let row = |loads: &Vec<Steps>| median(loads.iter().map(|steps| steps.0[row].1));
        columns.iter().for_each(|loads| cell(row(loads)));
        println!();
    }
    print!("  {:22}", "all");
    let all = |steps: &Steps| steps.0.iter().map(|(_, took)| *took).sum();
    let all = |loads: &Vec<Steps>| median(loads.iter().map(all));
    columns.iter().for_each(|loads| cell(all(loads)));
    println!();
}

fn loads<L: Lane>(n_messages: usize) -> Vec<Steps> {
    let mut long = Long::<L>::new("{}", RESULT_BYTES);
    long.turns_per_chain = TURNS_PER_CHAIN;
    long.grow_to(n_messages);
    let now_ms = long.tick();
    (0..LOADS).map(|_| long.lane.load(now_ms)).collect()
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    times[times.len() / 2]
}

fn cell(took: Duration) {
    print!("{:>10.2}", took.as_secs_f64() * 1_000.0);
}
