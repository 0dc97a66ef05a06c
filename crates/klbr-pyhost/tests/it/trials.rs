//! A required hook whose worker dies in mid-call decides nothing, however often: `KLBR_TRIALS` kills, 25 by default.

use klbr_core::ids::Epoch;
use std::sync::Arc;
use std::time::Duration;

use klbr_core::policy::{HookFailure, Slot};
use klbr_core::runtime::policy::Policy as _;
use klbr_pyhost::*;

use crate::support::*;

/// The worker is killed from outside after a random part of a millisecond or so: before, in, or after the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_kill_makes_an_answer() {
    let trials: u64 = std::env::var("KLBR_TRIALS").ok().and_then(|text| text.parse().ok()).unwrap_or(25);
    let Some(world) = World::new() else { return };
    // It never allows: whatever is allowed, nobody decided.
    let code = "from klbr import hooks\nimport time\ndef f(review):\n    time.sleep(0.0005)\n    return hooks.deny('never')\n";
    let policy = world.owner_with(Slot::DeliveryReview, code, Duration::from_secs(20), |spec| {
        // The pauses are another test's.
        spec.patience.back_off = Duration::ZERO;
    });
    let policy = Arc::new(policy);
    let (mut denied, mut failed) = (0, 0);
    let mut seed: u64 = 0x9E37_79B9_7F4A_7C15;
    for trial in 0..trials {
        let loaded = ready(&policy).await;
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let after = Duration::from_micros((seed >> 33) % 1500);
        let killing = tokio::task::spawn_blocking(move || {
            std::thread::sleep(after);
            let pid = rustix::process::Pid::from_raw(loaded.pid as i32).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            loaded.pid
        });
        match policy.decide(Epoch(1), delivery()).await {
            Ok(answer) => {
                let text = format!("{answer:?}");
                assert!(text.contains("Deny"), "trial {trial}: {text}");
                denied += 1;
            }
            Err(HookFailure::Unavailable { .. }) => failed += 1,
            Err(failure) => panic!("trial {trial}: {failure:?}"),
        }
        let pid = killing.await.unwrap();
        observed(|| match policy.worker().state() {
            State::Ready(loaded) => (loaded.pid != pid).then_some(()),
            State::Starting | State::BackingOff { .. } | State::Stopped => Some(()),
        })
        .await;
    }
    assert_eq!(world.records.lock().unwrap().len() as u64, trials, "each trial left one record");
    println!("{trials} kills: {denied} answered before, {failed} failed, 0 were allowed");
}
