//! The ledger: every move counted, the sum in balance (`C-LEDGER`).

use super::fixtures::{Script, body, header};
use super::ok;
use crate::event::Priority;
use crate::ids::{EventId, FrameId};
use crate::ledger::Ledger;
use crate::model::Failure;
use crate::record::Record;
use crate::runtime::store::{Commit, Store, StoreError};

pub(super) async fn every_move_is_counted(store: &dyn Store) {
    let mut ada = Script::new("ada");
    let empty = Ledger::default();
    let events: Vec<EventId> = (0..6).map(|n| ada.admit("discord", "c1", "Grace", &format!("{n}"))).collect();
    check(store, &mut ada, Ledger { admitted: 6, waiting: 6, ..empty }).await;

    let held = EventId(7);
    ada.record(Record::Admitted { event: header(held, "discord", "c1", "msg:7", ""), held: true });
    let commit = Commit { bodies: vec![(held, body("Grace", "held"))], ..ada.take() };
    ok(store.commit(commit).await);
    check(store, &mut ada, Ledger { admitted: 7, waiting: 6, held: 1, ..empty }).await;
    ada.record(Record::Reprioritised { event: held, priority: Priority::Ambient });
    check(store, &mut ada, Ledger { admitted: 7, waiting: 7, ..empty }).await;

    ada.frame(&events[0..2], "two");
    check(store, &mut ada, Ledger { admitted: 7, waiting: 5, framed: 2, ..empty }).await;
    ada.frame(&events[2..3], "an addition");
    ada.end_turn(&events[1..2]);
    check(store, &mut ada, Ledger { admitted: 7, waiting: 5, shown: 2, ..empty }).await;

    ada.record(Record::Folded { events: events[3..5].to_vec() });
    ada.record(Record::Consumed { event: events[5] });
    ada.frame(&[held], "refused");
    let dead = |frame| Record::DeadLettered {
        frame,
        messages: 1,
        placeholder: "(not shown)".into(),
        failure: Failure::Stalled(std::time::Duration::from_secs(1)),
    };
    ada.record(dead(None));
    check(
        store,
        &mut ada,
        Ledger { admitted: 7, waiting: 1, framed: 1, shown: 2, folded: 2, consumed: 1, ..empty },
    )
    .await;
    ada.record(dead(Some(FrameId(3))));
    ada.end_turn(&[]);
    let end = Ledger { admitted: 7, waiting: 1, shown: 2, folded: 2, consumed: 1, dead_lettered: 1, ..empty };
    check(store, &mut ada, end).await;
}

async fn check(store: &dyn Store, ada: &mut Script, expected: Ledger) {
    ok(store.commit(ada.take()).await);
    let ledger = ok(store.ledger(ada.agent()).await);
    assert_eq!(ledger, expected, "{ledger}");
    assert!(ledger.balances());
}

pub(super) async fn a_move_of_an_unknown_event_is_refused(store: &dyn Store) {
    let mut ada = Script::new("ada");
    let event = ada.admit("discord", "c1", "Grace", "known");
    ok(store.commit(ada.take()).await);
    let mut wrong = ada.clone();
    wrong.frame(&[event, EventId(2)], "one of them was never admitted");
    let refused = store.commit(wrong.take()).await;
    assert!(matches!(refused, Err(StoreError::Contradiction(_))), "{refused:?}");
    check(store, &mut ada, Ledger { admitted: 1, waiting: 1, ..Ledger::default() }).await;
}
