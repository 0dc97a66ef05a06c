//! `history_search` and `recall`: nothing that ever happened is out of reach, and `history_expand` beside them.

use std::fmt::Write as _;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::action::{Class, End, FailureKind, Outcome};
use crate::block::escape;
use crate::context;
use crate::runtime::store::{Search, StoreError};
use crate::runtime::tool::{CallContext, Tool};

/// Searches everything that was said, heard and answered.
#[derive(Clone, Copy, Debug)]
pub struct HistorySearch;

/// Arguments of [`HistorySearch`].
#[derive(Debug, Deserialize, JsonSchema)]
pub struct HistoryQuery {
    /// Words, parts of words or identifiers to look for, in any language.
    text: String,
    /// Only from this source, such as "discord"; "local" is your operator, "agent" is you.
    source: Option<String>,
    /// Only from this conversation, by its channel's own id.
    conversation: Option<String>,
    /// Only at or after this time, RFC 3339 such as "2026-11-05T00:00:00Z".
    since: Option<String>,
    /// Only before this time, RFC 3339.
    until: Option<String>,
    /// How many finds to show, 1 to 50; 10 when absent.
    limit: Option<usize>,
    /// How many of the best finds to pass over, to see further ones.
    offset: Option<usize>,
}

#[async_trait]
impl Tool for HistorySearch {
    type Arguments = HistoryQuery;
    const NAME: &'static str = "history_search";
    const DESCRIPTION: &'static str = "Searches your whole history: what people and you said, and what actions answered, \
                                       also from before the conversation was summarised.";
    const CLASS: Class = Class::Pure;

    async fn call(&self, context: CallContext, query: HistoryQuery) -> Outcome {
        let search = match to_search(query) {
            Ok(search) => search,
            Err(why) => return Outcome::failed(FailureKind::Invalid, format!("Not searched: {why}.")),
        };
        let offset = search.offset;
        match context.store.search(&context.agent, search).await {
            Ok(hits) if hits.is_empty() => Outcome::confirmed("Nothing was found."),
            Ok(hits) => {
                let mut text = String::new();
                for (n, hit) in hits.iter().enumerate() {
                    let place = hit.conversation.as_ref().map(|id| format!(" in {id}")).unwrap_or_default();
                    let excerpt = escape(hit.excerpt.trim());
                    // Writing to a String never fails.
                    let _ = writeln!(
                        text,
                        "{}. {} {}{} (record {}): {excerpt}",
                        offset + n + 1,
                        hit.at,
                        hit.source,
                        place,
                        hit.seq
                    );
                }
                Outcome::confirmed(text.trim_end())
            }
            Err(error) => store_failed(&error),
        }
    }
}

fn to_search(query: HistoryQuery) -> Result<Search, String> {
    if query.text.trim().is_empty() {
        return Err("the text to look for is empty".to_owned());
    }
    let instant = |name: &str, text: Option<String>| match text {
        Some(text) => text
            .parse::<jiff::Timestamp>()
            .map(|time| Some(crate::time::Timestamp(time.as_millisecond())))
            .map_err(|_| format!("{name} is {text:?}, not a time like \"2026-11-05T00:00:00Z\"")),
        None => Ok(None),
    };
    Ok(Search {
        text: query.text,
        since: instant("since", query.since)?,
        until: instant("until", query.until)?,
        source: query.source,
        conversation: query.conversation,
        limit: query.limit.unwrap_or(10).clamp(1, 50),
        offset: query.offset.unwrap_or(0),
    })
}

/// Shows a stored result again, in full.
#[derive(Clone, Copy, Debug)]
pub struct Recall;

/// Arguments of [`Recall`].
#[derive(Debug, Deserialize, JsonSchema)]
pub struct RecallQuery {
    /// The result's id, such as "#00a3".
    id: String,
    /// The first line to show, from 1.
    offset: Option<u64>,
    /// How many lines to show; 2000 when absent.
    limit: Option<u64>,
}

#[async_trait]
impl Tool for Recall {
    type Arguments = RecallQuery;
    const NAME: &'static str = "recall";
    const DESCRIPTION: &'static str = "Shows a result again, in full, by its id: the lines that a shortened one left out, or \
                                       a result from before the conversation was summarised.";
    const CLASS: Class = Class::Pure;

    async fn call(&self, context: CallContext, query: RecallQuery) -> Outcome {
        let stored = match query.id.parse::<context::ResultId>() {
            Ok(id) => context.store.result(&context.agent, id.number()).await,
            Err(_) => Ok(None),
        };
        match stored {
            Ok(stored) => {
                let end = if stored.is_some() { End::Confirmed } else { End::failed(FailureKind::Invalid) };
                let RecallQuery { id: target, offset, limit } = query;
                let stored = stored.map(|text| text.to_string());
                let recall = context::Recall { target, stored, offset, limit };
                Outcome { end, ..Outcome::answered(context::Answer::Recall(recall)) }
            }
            Err(error) => store_failed(&error),
        }
    }
}

pub(super) fn store_failed(error: &StoreError) -> Outcome {
    Outcome::failed(FailureKind::Refused, format!("The history could not be read: {error}."))
}
