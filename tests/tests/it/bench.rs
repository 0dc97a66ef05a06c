//! The benchmarks measure, and say what is missed.

use klbr_tests::bench::{Bar, Figure, Line, Plan, Row};

#[tokio::test(flavor = "multi_thread")]
async fn every_latency_is_measured_on_the_real_daemon() {
    if !super::has_daemon() {
        return;
    }
    let plan = Plan { rows: Vec::new(), runs: 2, trees: 2, folder: None, json: false };
    let mut states = Vec::new();
    for row in [Row::Interrupt, Row::Wake, Row::Tree] {
        for line in plan.measure(row).await.unwrap() {
            assert!(line.n > 0 && line.figures.iter().all(|figure| figure.value.is_finite()), "{line}");
            assert_eq!(line.row, row.as_str());
            states.push(line.what);
        }
    }
    let expected = [
        "streaming",
        "stalled stream",
        "process tool running",
        "waiting",
        "backing off",
        "compacting",
        "a pending decision",
        "a directed event ends a wait",
        "a whole tree of processes gone",
    ];
    assert_eq!(states, expected);
}

#[test]
fn a_missed_bar_is_printed_as_missed() {
    let figures = vec![
        Figure::plain("p50", 1.0, "ms").against(Bar::AtMost(5.0)),
        Figure::plain("p99", 30.0, "ms").against(Bar::AtMost(25.0)),
        Figure::plain("rate", 10.0, "events/s").against(Bar::AtLeast(5_000.0)),
        Figure::plain("max", 31.0, "ms"),
    ];
    let line = Line { row: "wake", what: "a wait".into(), method: "by hand".into(), n: 3, figures };
    assert!(!line.is_met());
    assert_eq!(
        line.to_string(),
        "wake      a wait: p50 1.00 ms (≤ 5: met), p99 30.00 ms (≤ 25: MISSED), rate 10.00 events/s (≥ 5000: MISSED), \
         max 31.00 ms; n 3; by hand"
    );
}

#[test]
fn rows_are_named_and_unknown_ones_refused_with_those_that_there_are() {
    let parse = |line: &str| Plan::parse(line.split(' ').map(str::to_owned));
    assert_eq!(parse("wake tree --json").unwrap().rows, [Row::Wake, Row::Tree]);
    assert_eq!(parse("all").unwrap().rows.len(), Row::ALL.len());
    assert!(parse("wak").unwrap_err().contains("there are interrupt, tree, wake"));
    assert!(parse("--json").unwrap_err().starts_with("usage"));
}
