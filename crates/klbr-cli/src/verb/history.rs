//! `klbr history`: searches, lists and verifies what happened.

use std::io::{self, Write as _};
use std::sync::Arc;

use klbr_core::config::Config;
use klbr_core::ids::{AgentName, Seq};
use klbr_core::record::Stamped;
use klbr_core::runtime::store::{Hit, Store as _};
use klbr_core::state::{Archive, Covered};
use klbr_core::time::Timestamp;
use klbr_server::api::{self, path};
use klbr_server::home::Home;
use klbr_store::{Access, Options, SqliteStore, upkeep};
use serde_json::{Value, json};

use crate::args::{History, HistoryVerb, Search};
use crate::context::{Context, Reach};
use crate::error::{CommandError, Outcome};
use crate::offline::refold;
use crate::text::{clean_line, fit};

/// How many records are read at once.
const PAGE: usize = 500;

/// Searches, or does what the verb says.
pub(super) async fn run(context: &Context, history: &History) -> Outcome {
    match &history.verb {
        None => search(context, &history.search).await,
        Some(HistoryVerb::List { after, limit }) => list(context, Seq(*after), *limit as usize).await,
        Some(HistoryVerb::Verify) => verify(context).await,
    }
}

async fn search(context: &Context, search: &Search) -> Outcome {
    let text = search.text.join(" ");
    if text.trim().is_empty() {
        return Err(CommandError::user(
            "there is nothing to look for",
            "klbr history WORDS searches; klbr history list lists",
        ));
    }
    let since = search.since.as_deref().map(|time| instant("--since", time)).transpose()?;
    let until = search.until.as_deref().map(|time| instant("--until", time)).transpose()?;
    let (limit, offset) = (search.limit as usize, search.offset as usize);
    let (source, conversation) = (search.source.clone(), search.conversation.clone());
    let hits = match context.reach().await? {
        Reach::Daemon(client) => {
            let query = api::HistoryQuery {
                text,
                source,
                conversation,
                since: since.map(|time| time.0),
                until: until.map(|time| time.0),
                limit: Some(limit),
                offset: Some(offset),
            };
            client.get::<api::Hits>(path::HISTORY, &query).await?.hits
        }
        Reach::Kept(offline) => {
            let search =
                klbr_core::runtime::store::Search { text, since, until, source, conversation, limit, offset };
            offline.store.search(&offline.name, search).await?
        }
    };
    context.print(&json!({ "hits": hits }), || {
        if hits.is_empty() { "nothing was found".to_owned() } else { hits.iter().map(found).collect() }
    })
}

fn instant(flag: &str, text: &str) -> Outcome<Timestamp> {
    let time = text.parse::<jiff::Timestamp>().map_err(|error| {
        CommandError::user(
            format!("{flag} is {text:?}, which is no time"),
            "write it like 2026-11-05T00:00:00Z",
        )
        .because(error)
    })?;
    Ok(Timestamp(time.as_millisecond()))
}

fn found(hit: &Hit) -> String {
    let place = hit.conversation.as_ref().map(|place| format!(" in {place}")).unwrap_or_default();
    let head = clean_line(&format!("{} {}{place}", hit.at, hit.source));
    format!("{:>7} {head}: {}\n", hit.seq.to_string(), clean_line(hit.excerpt.trim()))
}

async fn list(context: &Context, mut after: Seq, limit: usize) -> Outcome {
    let reach = context.reach().await?;
    let mut left = limit;
    while left > 0 {
        let size = left.min(PAGE);
        let page: Vec<Value> = match &reach {
            Reach::Daemon(client) => {
                let query = api::RecordsQuery { after: Some(after.0), limit: Some(size) };
                client.get::<api::Records>(path::RECORDS, &query).await?.records
            }
            Reach::Kept(offline) => {
                let records = offline.store.records(&offline.name, after, size).await?;
                records.iter().map(as_json).collect()
            }
        };
        let mut stdout = io::stdout().lock();
        for record in &page {
            match context.json {
                true => writeln!(stdout, "{record}")?,
                false => writeln!(stdout, "{}", row(record))?,
            }
            after = Seq(record["seq"].as_u64().unwrap_or(after.0));
        }
        if page.len() < size {
            break;
        }
        left -= page.len();
    }
    Ok(())
}

fn as_json(stamped: &Stamped) -> Value {
    serde_json::to_value(stamped).expect("a record is plain data")
}

/// A record in one line: its number, when, its kind, and what it holds.
fn row(record: &Value) -> String {
    let mut rest = record.clone();
    let mut take =
        |name: &str| rest.as_object_mut().and_then(|fields| fields.remove(name)).unwrap_or_default();
    let (seq, at, kind) = (take("seq"), take("at"), take("kind"));
    let at = Timestamp(at.as_i64().unwrap_or(0));
    let rest = fit(&clean_line(&rest.to_string()), 200);
    format!("{seq:>7} {at} {:<20} {rest}", kind.as_str().unwrap_or_default())
}

/// Recomputes what each summary stands for: how many there are, and what does not hold.
async fn coverage(store: &SqliteStore, name: &AgentName) -> Outcome<(u64, Vec<String>)> {
    let (mut archive, mut after) = (Archive::new(), Seq(0));
    let (mut count, mut faults) = (0, Vec::new());
    loop {
        let records = store.records(name, after, PAGE).await?;
        for stamped in &records {
            match archive.read(stamped) {
                Ok(Some(covered)) => {
                    count += 1;
                    if !covered.is_intact {
                        let Covered { number, seq, .. } = covered;
                        faults.push(format!(
                            "summary {number} (record {seq}) stands for other messages than it says"
                        ));
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    faults.push(error.to_string());
                    return Ok((count, faults));
                }
            }
        }
        match records.last() {
            Some(last) => after = last.seq,
            None => return Ok((count, faults)),
        }
    }
}

/// Folds every record again, compares the ledger that comes of it with the one that the tables count, and recomputes
/// what each summary covers.
async fn verify(context: &Context) -> Outcome {
    crate::home::require(&context.home)?;
    let database = Home::new(&context.home).database();
    let name = context.agent()?;
    let report = upkeep::check(&database)?;
    let store = SqliteStore::open(&database, Options { access: Access::Read, ..Options::default() })?;
    let agent = refold(&store, &name, Arc::new(Config::new(name.clone(), "auto"))).await?;
    let (summaries, broken) = coverage(&store, &name).await?;
    let (folded, counted) = (agent.ledger(), store.ledger(&name).await?);
    let mut faults = report.faults;
    faults.extend(broken);
    // A daemon may write between the two readings; then neither is compared with the other.
    if store.last(&name).await? == agent.seq() && folded != counted {
        faults.push(format!("the records come to {folded}, the tables count {counted}"));
    }
    let answer = json!({ "agent": name, "records": agent.seq(), "ledger": folded, "summaries": summaries, "faults": faults });
    context.print(&answer, || {
        let faults: String = faults.iter().map(|fault| format!("fault: {fault}\n")).collect();
        let summaries = match summaries {
            0 => "no summary was made".to_owned(),
            1 => "1 summary stands for what its record says".to_owned(),
            count => format!("{count} summaries stand for what their records say"),
        };
        format!("{} records follow from one another\nledger: {folded}\n{summaries}\n{faults}", agent.seq())
    })?;
    if faults.is_empty() && folded.balances() {
        return Ok(());
    }
    Err(CommandError::config(
        "the history does not hold",
        "keep a copy of it, then klbr store restore BACKUP",
    ))
}
