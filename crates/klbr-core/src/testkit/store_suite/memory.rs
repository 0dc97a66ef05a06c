//! What is remembered (`C-MEM`).

use std::sync::Arc;

use super::fixtures::Script;
use super::ok;
use crate::ids::AgentName;
use crate::runtime::store::{Memory, MemoryChange, Store};
use crate::time::Timestamp;

fn tags(tags: &[&str]) -> Vec<Arc<str>> {
    tags.iter().map(|tag| Arc::from(*tag)).collect()
}

fn add(text: &str, with: &[&str], pinned: bool) -> MemoryChange {
    MemoryChange::Add { text: text.into(), tags: tags(with), pinned }
}

async fn remember(
    store: &dyn Store,
    agent: &AgentName,
    key: &str,
    at: i64,
    change: MemoryChange,
) -> Option<Memory> {
    ok(store.remember(agent, key, Timestamp(at), change).await)
}

pub(super) async fn memories_are_made_changed_and_forgotten(store: &dyn Store) {
    let (ada, bob) = (Script::new("ada").agent().clone(), Script::new("bob").agent().clone());
    let tea = remember(store, &ada, "a", 1, add("likes tea", &["author:grace"], true)).await;
    let made = Memory {
        id: 1,
        text: "likes tea".into(),
        tags: tags(&["author:grace"]),
        pinned: true,
        at: Timestamp(1),
    };
    assert_eq!(tea, Some(made.clone()));
    remember(store, &ada, "b", 2, add("walks to work", &[], false)).await;
    let pin = MemoryChange::Update { id: 2, text: None, tags: None, pinned: Some(true) };
    let pinned = remember(store, &ada, "c", 3, pin).await.expect("it is there");
    assert_eq!((&*pinned.text, pinned.pinned, pinned.at), ("walks to work", true, Timestamp(3)));
    assert_eq!(ok(store.pinned(&ada).await), [made.clone(), pinned.clone()]);
    let text = Some("cycles to work".into());
    let update = MemoryChange::Update { id: 2, text, tags: Some(tags(&["x"])), pinned: None };
    let changed = remember(store, &ada, "d", 4, update).await.expect("it is there");
    assert_eq!((&*changed.text, changed.pinned, changed.tags.len()), ("cycles to work", true, 1));

    assert_eq!(remember(store, &ada, "e", 5, MemoryChange::Forget { id: 1 }).await, Some(made));
    assert_eq!(remember(store, &ada, "f", 6, MemoryChange::Forget { id: 1 }).await, None);
    for absent in [1, 0, u64::MAX] {
        let update = MemoryChange::Update { id: absent, text: None, tags: None, pinned: None };
        assert_eq!(remember(store, &ada, &format!("g{absent}"), 7, update).await, None);
    }
    assert_eq!(ok(store.pinned(&ada).await), [changed]);
    let next = remember(store, &ada, "h", 8, add("new", &[], false)).await;
    assert_eq!(next.map(|memory| memory.id), Some(3), "numbers are never reused");
    assert!(ok(store.pinned(&bob).await).is_empty());
    let other = remember(store, &bob, "a", 9, add("likes coffee", &[], false)).await;
    assert_eq!(other.map(|memory| memory.id), Some(1), "keys and numbers are each agent's own");
}

pub(super) async fn a_repeated_change_changes_nothing_more(store: &dyn Store) {
    let ada = Script::new("ada").agent().clone();
    let first = remember(store, &ada, "4.2.1", 1, add("once", &[], true)).await;
    for at in 2..5 {
        assert_eq!(remember(store, &ada, "4.2.1", at, add("once", &[], true)).await, first);
    }
    assert_eq!(ok(store.pinned(&ada).await).len(), 1);
    let forgotten = remember(store, &ada, "4.2.2", 5, MemoryChange::Forget { id: 1 }).await;
    assert_eq!(remember(store, &ada, "4.2.2", 6, MemoryChange::Forget { id: 1 }).await, forgotten);
    assert_eq!(remember(store, &ada, "4.2.1", 7, add("once", &[], true)).await, first);
    assert!(ok(store.pinned(&ada).await).is_empty());
}

pub(super) async fn memories_are_found_by_tags_and_text(store: &dyn Store) {
    let ada = Script::new("ada").agent().clone();
    let made = [
        ("Grace likes green tea", &["author:grace", "channel:1"][..]),
        ("Linus likes coffee", &["author:linus", "channel:1"]),
        ("the deploy script is deploy_all.sh", &[]),
        ("会议在星期三", &["channel:2"]),
    ];
    for (n, (text, with)) in made.iter().enumerate() {
        remember(store, &ada, &n.to_string(), n as i64, add(text, with, false)).await;
    }
    let found = |text: &'static str, with: &'static [&'static str], limit| {
        let ada = &ada;
        async move {
            let found = ok(store.memories(ada, text, &tags(with), limit).await);
            found.iter().map(|memory| memory.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(found("", &[], 10).await, [4, 3, 2, 1]);
    assert_eq!(found(" ", &["channel:1"], 10).await, [2, 1]);
    assert_eq!(found("", &["channel:1", "author:grace"], 10).await, [1]);
    assert_eq!(found("likes tea", &[], 10).await, [1, 2], "all of the words come before some");
    assert_eq!(found("LIKES", &["author:linus"], 10).await, [2]);
    assert_eq!(found("deploy_all", &[], 10).await, [3]);
    assert_eq!(found("会议", &[], 10).await, [4]);
    assert_eq!(found("absent", &[], 10).await, [0_u64; 0]);
    assert_eq!(found("\" OR *", &[], 10).await, [0_u64; 0]);
    assert_eq!(found("", &[], 2).await, [4, 3]);
    assert_eq!(found("", &[], 0).await, [0_u64; 0]);
}
