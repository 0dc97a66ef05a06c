//! `klbr events`: follows what happens.

use std::io::{self, Write as _};

use futures_util::StreamExt as _;
use klbr_core::ids::Seq;
use klbr_core::runtime::store::Store as _;
use klbr_core::update::Update;
use klbr_server::api::{AgentStatus, path};

use crate::args::Events;
use crate::client::Client;
use crate::client::follow::{News, follow};
use crate::context::{Context, Reach};
use crate::error::{CommandError, Outcome};
use crate::offline::Offline;
use crate::view::View;

/// How many records are read at once.
const PAGE: usize = 500;

/// Prints what happens, until there is nothing more to follow.
pub(super) async fn run(context: &Context, events: &Events) -> Outcome {
    let mut printer = Printer { json: context.json, view: View::default(), printed: 0 };
    match context.reach().await? {
        Reach::Daemon(client) => followed(&client, events, &mut printer).await,
        Reach::Kept(offline) => kept(context, &offline, events, &mut printer).await,
    }
}

async fn followed(client: &Client, events: &Events, printer: &mut Printer) -> Outcome {
    let newest = newest(client).await?;
    let after = events.after.map_or(newest, Seq);
    if after > newest {
        return Err(CommandError::user(
            format!("there is no record {after} yet"),
            format!("the newest record is {newest}"),
        ));
    }
    let mut news = follow(client.clone(), after);
    let mut seen = after;
    while !events.no_follow || seen < newest {
        let told = tokio::select! {
            told = news.next() => told,
            signal = tokio::signal::ctrl_c() => return Ok(signal?),
            // The last records may tell a client nothing.
            () = tokio::time::sleep(std::time::Duration::from_millis(300)), if events.no_follow => return Ok(()),
        };
        match told {
            Some(News::Update(update)) => {
                seen = update.id.unwrap_or(seen);
                printer.take(&update)?;
            }
            Some(News::Attached | News::Lost(_)) => {}
            None => return Ok(()),
        }
    }
    Ok(())
}

/// The newest record of a running agent.
pub(crate) async fn newest(client: &Client) -> Outcome<Seq> {
    let status: AgentStatus = client.get(path::STATUS, &()).await?;
    status.agent.map(|agent| agent.seq).ok_or_else(|| {
        CommandError::remote(
            "the agent is not ready yet",
            "try again in a moment; klbr status says how far it is",
        )
    })
}

async fn kept(context: &Context, offline: &Offline, events: &Events, printer: &mut Printer) -> Outcome {
    if events.after.is_none() && !events.no_follow {
        return context.require_daemon().map(drop);
    }
    let mut after = Seq(events.after.unwrap_or(0));
    loop {
        let page = offline.store.records(&offline.name, after, PAGE).await?;
        for update in page.iter().filter_map(Update::from_record) {
            printer.take(&update)?;
        }
        match page.last() {
            Some(last) => after = last.seq,
            None => return Ok(()),
        }
    }
}

struct Printer {
    json: bool,
    view: View,
    printed: usize,
}

impl Printer {
    fn take(&mut self, update: &Update) -> Outcome {
        let mut stdout = io::stdout().lock();
        if self.json {
            writeln!(stdout, "{}", serde_json::to_string(update).map_err(io::Error::from)?)?;
            return Ok(stdout.flush()?);
        }
        self.view.apply(update);
        let id = update.id.map(|id| id.to_string()).unwrap_or_default();
        for entry in &self.view.entries()[self.printed..] {
            for (n, line) in entry.lines().enumerate() {
                let (id, at) = if n == 0 { (id.as_str(), entry.at.to_string()) } else { ("", String::new()) };
                writeln!(stdout, "{id:>7} {at:<20} {line}")?;
            }
        }
        self.printed = self.view.entries().len();
        Ok(stdout.flush()?)
    }
}
