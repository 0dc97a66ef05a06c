//! What adapters keep beside the records.

use super::ok;
use crate::ids::AgentName;
use crate::runtime::store::Store;

fn name(name: &str) -> AgentName {
    name.parse().expect("a valid name")
}

pub(super) async fn entries_are_kept_replaced_and_removed_together(store: &dyn Store) {
    let ada = name("ada");
    let keep = async |entries: &[(&str, Option<&[u8]>)]| {
        let owned = entries.iter().map(|(key, value)| ((*key).to_owned(), value.map(<[u8]>::to_vec)));
        ok(store.keep_adapter(&ada, "discord", owned.collect()).await);
    };
    let kept = async |prefix: &str| ok(store.adapter(&ada, "discord", prefix).await);
    assert!(kept("").await.is_empty());
    keep(&[("cursor/2", Some(b"two")), ("cursor/1", Some(b"one")), ("session", Some(&[0, 255]))]).await;
    let of = |key: &str, value: &[u8]| (key.to_owned(), value.to_vec());
    assert_eq!(kept("cursor/").await, [of("cursor/1", b"one"), of("cursor/2", b"two")]);
    keep(&[("cursor/1", None), ("cursor/2", Some(b"")), ("cursor/never", None)]).await;
    assert_eq!(kept("").await, [of("cursor/2", b""), of("session", &[0, 255])]);
    // A prefix is not a pattern.
    assert!(kept("c%").await.is_empty() && kept("c_").await.is_empty() && kept("cursor/22").await.is_empty());
}

pub(super) async fn adapters_and_agents_share_nothing(store: &dyn Store) {
    for (agent, instance) in [("ada", "one"), ("ada", "two"), ("bob", "one")] {
        let value = format!("{agent} {instance}").into_bytes();
        ok(store.keep_adapter(&name(agent), instance, vec![("key".to_owned(), Some(value))]).await);
    }
    let kept = ok(store.adapter(&name("ada"), "two", "").await);
    assert_eq!(kept, [("key".to_owned(), b"ada two".to_vec())]);
    // It is no record: the agent is still new.
    assert!(ok(store.agents().await).is_empty());
}
