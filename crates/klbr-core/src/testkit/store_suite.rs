//! The conformance suite of the store port: what every store has to do, whatever it keeps agents in.
//!
//! A case panics when the store does not do it. Each gets a store of its own that is empty.

mod adapter;
mod commits;
pub mod fixtures;
mod ledger;
pub mod load;
mod memory;
mod reads;
mod search;

use crate::runtime::store::{Store, StoreError};

macro_rules! suite {
    ($($family:ident::$case:ident,)*) => {
        /// The names of all cases, in the order in which [`check_all`] runs them.
        pub const CASES: &[&str] = &[$(concat!(stringify!($family), "::", stringify!($case))),*];

        /// Runs one case on an empty store.
        ///
        /// # Panics
        ///
        /// Panics when the store fails the case, and when there is no case of this name.
        pub async fn check(case: &str, store: &dyn Store) {
            $(if case == concat!(stringify!($family), "::", stringify!($case)) {
                return Box::pin($family::$case(store)).await;
            })*
            panic!("there is no case {case:?}");
        }
    };
}

suite! {
    commits::a_new_agent_is_empty,
    commits::what_is_committed_comes_back_exactly,
    commits::records_that_do_not_follow_are_a_conflict,
    commits::nothing_of_a_refused_commit_stays,
    commits::an_event_is_admitted_once,
    commits::admissions_and_bodies_pair_up,
    commits::two_agents_share_nothing,
    commits::many_writers_at_once_keep_every_order,
    commits::one_of_two_writers_wins,
    commits::a_dropped_future_undoes_nothing,
    reads::records_come_in_pages,
    reads::checkpoints_shorten_the_restore,
    reads::happenings_and_bodies_are_found_in_order,
    reads::results_are_read_back,
    reads::repeated_texts_come_back_exactly,
    ledger::every_move_is_counted,
    ledger::a_move_of_an_unknown_event_is_refused,
    memory::memories_are_made_changed_and_forgotten,
    memory::a_repeated_change_changes_nothing_more,
    memory::memories_are_found_by_tags_and_text,
    adapter::entries_are_kept_replaced_and_removed_together,
    adapter::adapters_and_agents_share_nothing,
    search::english_is_found_best_first,
    search::chinese_japanese_and_korean_are_found,
    search::identifiers_and_their_parts_are_found,
    search::query_text_is_never_syntax,
    search::filters_narrow,
    search::pages_follow_one_another,
    search::what_the_agent_said_and_was_told_is_found,
    search::a_long_text_is_found_to_its_end,
    search::blank_text_lists_the_newest,
}

/// Runs every case, each on a store that `make` gives.
///
/// # Panics
///
/// Panics when a store fails a case.
pub async fn check_all<S: Store>(mut make: impl AsyncFnMut() -> S) {
    for case in CASES {
        check(case, &make().await).await;
    }
}

#[track_caller]
fn ok<T>(result: Result<T, StoreError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("the store refused: {error}"),
    }
}
