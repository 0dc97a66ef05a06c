//! Policy in Python cannot hurt the agent around it.

use klbr_tests::hooks::failures::Figures;
use klbr_tests::hooks::trials::{self, Plan};
use klbr_tests::hooks::{HomeError, changing, failures, observing, python};

/// Whether there is a Python; without one a proof is passed over loudly, and fails where `CI` is set.
fn has_python() -> bool {
    let found = python().is_some();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "Python 3.11 or later is needed; name it in KLBR_PYTHON");
        println!("SKIPPED: there is no Python 3.11 or later; name one in KLBR_PYTHON");
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_a_hook_fails_the_agent_lives_on() {
    if !has_python() {
        return;
    }
    let only = std::env::var("KLBR_ROW").unwrap_or_default();
    let mut faults = Vec::new();
    for row in failures::ROWS.iter().filter(|row| row.name.contains(&only)) {
        match failures::measure(row).await {
            Ok(figures) => {
                println!("{figures}");
                faults.extend(figures.missed());
                faults.extend(figures.faults.iter().map(|fault| format!("{}: {fault}", row.name)));
            }
            Err(error) => faults.push(format!("{}: {error}", row.name)),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

async fn is_without_fault(figures: impl Future<Output = Result<Figures, HomeError>>) {
    if !has_python() {
        return;
    }
    let figures = figures.await.unwrap();
    println!("{figures}");
    let faults: Vec<String> = figures.missed().into_iter().chain(figures.faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_that_fails_fifty_times_is_given_up_and_nobody_waits_for_it() {
    is_without_fault(observing::fails_fifty_times()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_whose_host_ends_before_its_cursor_moves_is_told_again_and_acts_once() {
    is_without_fault(observing::ends_before_its_cursor_moves()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_activation_during_a_turn_leaves_its_question_to_the_epoch_that_was_asked() {
    is_without_fault(changing::during_a_turn()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_activations_at_once_one_is_refused_and_nobody_waits_for_either() {
    is_without_fault(changing::two_at_once()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_dies_in_mid_call_decides_nothing() {
    if !has_python() {
        return;
    }
    let plan = Plan { trials: 60, kills: 20, seed: 1, lanes: 2, folder: None };
    let report = trials::run(&plan).await.unwrap();
    println!("{report}");
    assert!(report.violations.is_empty(), "{plan}");
    assert_eq!(report.deaths(), plan.trials);
    assert!(report.held > 0 && report.ran > 0 && report.denied > 0, "{report}");
}

#[test]
fn trials_are_planned_on_the_command_line() {
    let parse = |line: &str| Plan::parse(line.split_whitespace().map(str::to_owned));
    assert_eq!(parse("").unwrap().to_string(), "--trials 10000 --kills 500 --seed 1 --lanes 2");
    assert_eq!(parse("--trials 7 --seed 3").unwrap().to_string(), "--trials 7 --kills 7 --seed 3 --lanes 2");
    assert!(parse("--trails 7").unwrap_err().contains("known: --trials"));
    assert!(parse("--trials many").unwrap_err().contains("no number"));
}
