//! Finding text again, in any script, whatever people type.

use super::fixtures::Script;
use super::ok;
use crate::ids::Seq;
use crate::runtime::store::{Hit, Search, Store};
use crate::time::Timestamp;

fn text(text: &str) -> Search {
    Search { text: text.into(), limit: 20, ..Search::default() }
}

async fn find(store: &dyn Store, ada: &Script, search: Search) -> Vec<Hit> {
    ok(store.search(ada.agent(), search).await)
}

async fn seqs(store: &dyn Store, ada: &Script, search: &str) -> Vec<u64> {
    find(store, ada, text(search)).await.iter().map(|hit| hit.seq.0).collect()
}

async fn told(store: &dyn Store, texts: &[&str]) -> Script {
    let mut ada = Script::new("ada");
    for text in texts {
        ada.admit("discord", "c1", "Grace", text);
    }
    ok(store.commit(ada.take()).await);
    ada
}

pub(super) async fn english_is_found_best_first(store: &dyn Store) {
    let ada = told(
        store,
        &[
            "The deployment to staging failed again tonight.",
            "staging, staging, staging: all green",
            "We talked about the weather.",
            "Redeployments are postponed; staging stays as it is.",
        ],
    )
    .await;
    let found = seqs(store, &ada, "staging deployment").await;
    assert_eq!(found[..2], [1, 4], "all words, then parts, then some: {found:?}");
    assert_eq!(found[2..], [2]);
    assert_eq!(seqs(store, &ada, "WEATHER").await, [3]);
    assert_eq!(seqs(store, &ada, "weather?").await, [3]);
    assert_eq!(seqs(store, &ada, "grace").await.len(), 4, "authors are found");
    assert_eq!(seqs(store, &ada, "hurricane").await, [0_u64; 0]);
    let hits = find(store, &ada, text("staging")).await;
    assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score), "{hits:?}");
    let hit = hits.iter().find(|hit| hit.seq == Seq(1)).expect("it has the word");
    assert!(hit.excerpt.contains("to staging failed"), "{hit:?}");
    assert_eq!(
        (&*hit.source, hit.conversation.as_deref(), hit.at),
        ("discord", Some("c1"), Timestamp(1_000_001))
    );
}

pub(super) async fn chinese_japanese_and_korean_are_found(store: &dyn Store) {
    let ada = told(
        store,
        &[
            "明天下午三点在东京开会，请带上护照。",
            "昨日は東京都の図書館でRustの本を借りました。",
            "データベースのバックアップを忘れないで",
            "내일 서울에서 회의가 있습니다",
            "mixed版本v2和テスト",
        ],
    )
    .await;
    let cases: &[(&str, &[u64])] = &[
        ("东京", &[1]),
        ("护照", &[1]),
        ("京", &[2, 1]),
        ("東京都", &[2]),
        ("図書館", &[2]),
        ("館", &[2]),
        ("rustの本", &[2]),
        ("バックアップ", &[3]),
        ("データ", &[3]),
        ("회의", &[4]),
        ("版本", &[5]),
        ("テスト", &[5]),
        ("版本v2", &[5]),
        ("都東", &[]),
        ("東京 本", &[5, 2]),
    ];
    for (search, expected) in cases {
        let mut found = seqs(store, &ada, search).await;
        found.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(found, *expected, "{search}");
    }
    let hits = find(store, &ada, text("護照 护照")).await;
    assert_eq!(hits.len(), 1, "some of the words are enough");
    assert!(hits[0].excerpt.contains("请带上护照"), "{hits:?}");
}

pub(super) async fn identifiers_and_their_parts_are_found(store: &dyn Store) {
    let ada = told(
        store,
        &[
            "see `SqliteStore::open_read_only` in src/store.rs",
            "error E0277 at crates/klbr-store/src/lib.rs:42",
            "const MAX_RETRY_COUNT: u32 = 5;",
            "getHTTPResponseCode() returned 503",
        ],
    )
    .await;
    let cases: &[(&str, &[u64])] = &[
        ("SqliteStore::open_read_only", &[1]),
        ("sqlitestore", &[1]),
        ("read_only", &[1]),
        ("qliteSto", &[1]),
        ("E0277", &[2]),
        ("klbr-store/src", &[2]),
        ("lib.rs:42", &[2]),
        ("RETRY_COUNT", &[3]),
        ("HTTPResponse", &[4]),
        ("getHTTPResponseCode()", &[4]),
        ("Response 503", &[4]),
        ("retry_counter", &[]),
    ];
    for (search, expected) in cases {
        assert_eq!(seqs(store, &ada, search).await, *expected, "{search}");
    }
}

pub(super) async fn query_text_is_never_syntax(store: &dyn Store) {
    let ada = told(store, &["a needle in a haystack", "nothing here"]).await;
    let long = "needle ".repeat(5_000);
    let wide = "x".repeat(100_000);
    let hostile = [
        "\"",
        "\"\"\"",
        "needle\"",
        "\"needle",
        "needle AND",
        "OR needle",
        "NOT needle",
        "NEAR(needle haystack)",
        "text:needle",
        "{text}: needle",
        "needle*",
        "^needle",
        "-needle",
        "needle + haystack",
        "(needle",
        "needle)",
        "needle\0haystack",
        "\0",
        "*",
        "%",
        "_",
        "'; DROP TABLE records; --",
        "needle' OR '1'='1",
        "\u{202E}needle\u{FEFF}",
        "\u{D7FF}\u{10FFFF}",
        "(((((((((((((((((((((((((",
        &long,
        &wide,
    ];
    for search in hostile {
        let found = seqs(store, &ada, search).await;
        assert!(found.iter().all(|seq| *seq <= 2), "{search:?}");
    }
    for search in ["needle*", "\"needle\"", "(needle)", "-needle", "needle\0haystack", long.as_str()] {
        assert_eq!(seqs(store, &ada, search).await[0], 1, "{search:?}");
    }
    for search in ["\"", "*", "%", "_", "\0", "()"] {
        assert_eq!(seqs(store, &ada, search).await, [0_u64; 0], "{search:?}");
    }
}

pub(super) async fn filters_narrow(store: &dyn Store) {
    let mut ada = Script::new("ada");
    for (instance, conversation) in [("discord", "c1"), ("discord", "c2"), ("irc", "c1"), ("discord", "c1")] {
        ada.admit(instance, conversation, "Grace", "the same words");
    }
    ada.reply("the same words, in private", "noop", "{}");
    ok(store.commit(ada.take()).await);
    let base = text("same words");
    let since = |seq: i64| Some(Timestamp(1_000_000 + seq));
    let cases: &[(Search, &[u64])] = &[
        (base.clone(), &[1, 2, 3, 4, 5]),
        (Search { source: Some("discord".into()), ..base.clone() }, &[1, 2, 4]),
        (Search { source: Some("agent".into()), ..base.clone() }, &[5]),
        (Search { source: Some("nowhere".into()), ..base.clone() }, &[]),
        (Search { conversation: Some("c1".into()), ..base.clone() }, &[1, 3, 4]),
        (Search { conversation: Some("c1".into()), source: Some("irc".into()), ..base.clone() }, &[3]),
        (Search { since: since(3), ..base.clone() }, &[3, 4, 5]),
        (Search { until: since(3), ..base.clone() }, &[1, 2]),
        (Search { since: since(2), until: since(4), ..base.clone() }, &[2, 3]),
        (Search { since: since(9), ..base.clone() }, &[]),
        (Search { until: since(-9), ..base.clone() }, &[]),
        (Search { since: since(4), until: since(2), ..base.clone() }, &[]),
        (
            Search { since: Some(Timestamp(i64::MIN)), until: Some(Timestamp(i64::MAX)), ..base },
            &[1, 2, 3, 4, 5],
        ),
    ];
    for (search, expected) in cases {
        let mut found: Vec<u64> =
            find(store, &ada, search.clone()).await.iter().map(|hit| hit.seq.0).collect();
        found.sort_unstable();
        assert_eq!(found, *expected, "{search:?}");
    }
    let bob = Script::new("bob");
    assert!(find(store, &bob, text("same words")).await.is_empty());
}

pub(super) async fn pages_follow_one_another(store: &dyn Store) {
    let mut ada = Script::new("ada");
    for n in 0..30 {
        let said = match n % 3 {
            0 => format!("alpha beta {n}"),
            1 => format!("alphabet betas {n}"),
            _ => format!("only alpha {n}"),
        };
        ada.admit("discord", "c1", "Grace", &said);
    }
    ok(store.commit(ada.take()).await);
    let whole = find(store, &ada, Search { limit: 100, ..text("alpha beta") }).await;
    assert_eq!(whole.len(), 30);
    let mut paged = Vec::new();
    for page in 0..5 {
        paged.extend(find(store, &ada, Search { limit: 7, offset: page * 7, ..text("alpha beta") }).await);
    }
    assert_eq!(paged, whole);
    assert!(whole[..10].iter().all(|hit| hit.excerpt.contains("alpha beta")));
    assert!(whole[10..20].iter().all(|hit| hit.excerpt.contains("alphabet betas")));
    assert!(find(store, &ada, Search { limit: 0, ..text("alpha") }).await.is_empty());
    assert!(find(store, &ada, Search { offset: usize::MAX, ..text("alpha") }).await.is_empty());
}

pub(super) async fn what_the_agent_said_and_was_told_is_found(store: &dyn Store) {
    let mut ada = Script::new("ada");
    let step = ada.reply("I ponder the kumquat", "discord_send", "{}");
    ada.settle(step, 1, "sent as message 77", Some(r#"{"text":"a line\nabout a mango"}"#));
    ada.settle(step, 2, "the file says papaya", None);
    ok(store.commit(ada.take()).await);
    for (search, seq) in [("kumquat", 1), ("mango", 2), ("77", 2), ("papaya", 3)] {
        let hits = find(store, &ada, text(search)).await;
        assert_eq!(hits.iter().map(|hit| hit.seq.0).collect::<Vec<_>>(), [seq], "{search}");
        assert_eq!((&*hits[0].source, hits[0].conversation.as_deref()), ("agent", None));
    }
    assert!(find(store, &ada, text("discord_send")).await.is_empty());
}

pub(super) async fn a_long_text_is_found_to_its_end(store: &dyn Store) {
    let mut ada = Script::new("ada");
    let step = ada.reply("", "read", "{}");
    let filler = "lorem ipsum dolor sit amet ".repeat(12_000);
    ada.settle(step, 1, &format!("first_needle {filler} 中间的针 {filler} last_needle"), None);
    ada.settle(step, 2, &"line-without-space".repeat(10_000), None);
    ok(store.commit(ada.take()).await);
    for search in ["first_needle", "中间的针", "last_needle", "ast_needl"] {
        let hits = find(store, &ada, text(search)).await;
        assert_eq!(hits.iter().map(|hit| hit.seq.0).collect::<Vec<_>>(), [2], "{search}");
        assert!(hits[0].excerpt.contains(search) && hits[0].excerpt.len() < 1000, "{hits:?}");
    }
    assert_eq!(seqs(store, &ada, "lorem").await, [2], "a record is one hit however often it fits");
    assert_eq!(seqs(store, &ada, "without-space").await, [3]);
}

pub(super) async fn blank_text_lists_the_newest(store: &dyn Store) {
    let ada = told(store, &["one", "two", "three"]).await;
    assert_eq!(seqs(store, &ada, "").await, [3, 2, 1]);
    assert_eq!(seqs(store, &ada, " \n").await, [3, 2, 1]);
    let page = find(store, &ada, Search { offset: 1, limit: 1, ..Search::default() }).await;
    assert_eq!(page[0].seq, Seq(2));
}
