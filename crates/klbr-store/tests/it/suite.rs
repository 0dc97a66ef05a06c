//! The conformance suite of the store port.

use klbr_core::testkit::store_suite;
use klbr_store::{Options, SqliteStore};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_passes_the_suite() {
    let home = tempfile::tempdir().unwrap();
    for case in store_suite::CASES {
        println!("{case}");
        let path = home.path().join(format!("{}.db", case.replace("::", "-")));
        let store = SqliteStore::open(&path, Options::default()).unwrap();
        store_suite::check(case, &store).await;
        store.close().await.unwrap();
    }
}
