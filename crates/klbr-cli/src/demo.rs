//! The demo: an agent's life in seconds, with a scripted model, over the real daemon in real processes.
//!
//! The daemon is this program, begun anew as a child; it is stopped in order, killed, and begun again. What
//! is claimed at the end is counted from what its updates told.

mod child;
mod model;

use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use klbr_core::ids::{AgentName, Seq};
use klbr_core::ledger::Ledger;
use klbr_core::runtime::clock::{Clock as _, SystemClock};
use klbr_core::update::{Happening, Update};
use klbr_server::Daemon;
use klbr_server::api::path;

use crate::args::Demo;
use crate::chat::session::Session;
use crate::client::Client;
use crate::context::{Context, start};
use crate::error::{CommandError, Outcome};
use crate::view::{Kind, State};
use child::Child;
use model::Scripted;

/// How long anything may take before the demo has failed.
const WATCHDOG: Duration = Duration::from_secs(20);

/// Shows an agent's life.
pub(crate) async fn run(demo: &Demo) -> Outcome {
    let home = child::temporary_home()?;
    let outcome = show(&home, demo).await;
    if demo.keep {
        writeln!(io::stdout(), "\nThe home is kept: {}", home.display())?;
    } else if let Err(error) = std::fs::remove_dir_all(&home) {
        return outcome.and(Err(error.into()));
    }
    outcome
}

/// The demo's daemon, in a process of its own: lives until it is stopped.
pub(crate) async fn serve(context: &Context) -> Outcome {
    let model = Scripted { pace: Duration::from_millis(40) };
    let running = start(Daemon::new(context.config()?).model(model::NAME, model).without_channels()).await?;
    running.stop_requested().await;
    running.shutdown().await;
    Ok(())
}

async fn show(home: &Path, demo: &Demo) -> Outcome {
    let agent: AgentName = "demo".parse().expect("it is a name");
    let client = Client::new(home, agent);
    let pause = if demo.fast { Duration::ZERO } else { Duration::from_millis(700) };
    let began = Instant::now();
    title(
        "klbr demo: the model is SCRIPTED. Everything else is real: the daemon, its store, its processes.",
    )?;

    step("1. A message. The agent thinks and scribbles in private, and speaks on purpose.")?;
    let mut daemon = Child::start(home)?;
    let session = Session::new(&client, Seq(0));
    let mut stage = Stage { session, printed: 0, deliveries: Vec::new(), pause };
    stage.say(model::GREETING);
    stage.until("the agent's wait", |_, update| matches!(update, Happening::Waiting { .. })).await?;
    stage.states().await?;

    step(
        "2. It waits without polling. A message ends the wait at once. (This one it answers at great length.)",
    )?;
    stage.say(model::COUNT);
    stage.until("the count", |session, _| streamed(session).contains("12, ")).await?;
    note(&format!("it streams: {} …", first_line(&streamed(&stage.session), 40)))?;

    step("3. A second message cuts the stream: the operator never waits for the model.")?;
    stage.say(model::STOP);
    let (mut durable, mut cut) = (None, Duration::ZERO);
    let is_cut = |_: &Session, happening: &Happening| match happening {
        Happening::Admitted { .. } => {
            durable = Some(Instant::now());
            false
        }
        Happening::ReplyDropped { .. } => {
            cut = durable.map_or(Duration::ZERO, |since| since.elapsed());
            true
        }
        _ => false,
    };
    stage.until("the cut", is_cut).await?;
    note(&format!("the message was durable, and {} ms later the stream was gone", cut.as_millis()))?;

    step("4. The model answers in plain text. Nobody hears that, so the harness nudges it, once.")?;
    stage.until("the agent's wait", |_, update| matches!(update, Happening::Waiting { .. })).await?;

    step("5. The daemon stops in order and begins again. The wait goes on where it was.")?;
    let _: serde_json::Value = client.post(path::SHUTDOWN, "demo-stop", &()).await?;
    note(&format!("the daemon ended: {}", daemon.ended().await?))?;
    daemon = Child::start(home)?;
    stage.until("the recovery", |_, update| matches!(update, Happening::Recovered)).await?;
    stage.states().await?;

    step("6. kill -9 in the middle of a reply.")?;
    stage.say(model::NUMBER);
    stage.until("the reply", |session, _| thought(session).contains("one word after")).await?;
    daemon.kill().await?;
    note("killed with SIGKILL: it had no chance to write anything down")?;
    daemon = Child::start(home)?;
    stage.until("the agent's wait", |_, update| matches!(update, Happening::Waiting { .. })).await?;

    step(
        "7. The sum. Every event is counted where it is; every delivery is counted as often as it was seen.",
    )?;
    let ledger: Ledger = client.get(path::LEDGER, &()).await?;
    let _: serde_json::Value = client.post(path::SHUTDOWN, "demo-end", &()).await?;
    daemon.ended().await?;
    note(&format!("ledger: {ledger}"))?;
    let mut once = stage.deliveries.clone();
    once.sort();
    once.dedup();
    let (said, twice) = (stage.deliveries.len(), stage.deliveries.len() - once.len());
    note(&format!("delivered: {said}, said twice: {twice}; killed once, and nothing was lost"))?;
    if !ledger.balances() || twice > 0 || said != 3 || ledger.shown != 4 {
        return Err(CommandError::internal(
            "the demo's sum does not hold",
            "please report this with the output above; klbr demo --keep keeps its home",
        ));
    }
    note(&format!("done in {} s", began.elapsed().as_secs()))
}

/// One conversation and what has been printed of it.
struct Stage {
    session: Session,
    printed: usize,
    deliveries: Vec<String>,
    pause: Duration,
}

impl Stage {
    fn say(&mut self, text: &str) {
        self.session.say(text);
    }

    /// Prints what happens until something has happened. Pauses a little, for those who read along.
    async fn until(&mut self, what: &str, mut is_it: impl FnMut(&Session, &Happening) -> bool) -> Outcome {
        let watchdog = tokio::time::sleep(WATCHDOG);
        tokio::pin!(watchdog);
        loop {
            let update = tokio::select! {
                update = self.session.next() => update,
                () = &mut watchdog => return Err(CommandError::internal(
                    format!("{what} did not come within {} s", WATCHDOG.as_secs()),
                    "please report this; klbr demo --keep keeps its home",
                )),
            };
            let Some(Update { happening, .. }) = update else { continue };
            if let Happening::Delivered { text, .. } = &happening {
                self.deliveries.push(text.clone());
            }
            self.print()?;
            if is_it(&self.session, &happening) {
                tokio::time::sleep(self.pause).await;
                return Ok(());
            }
        }
    }

    fn print(&mut self) -> Outcome {
        let mut stdout = io::stdout().lock();
        for entry in &self.session.view().entries()[self.printed..] {
            for line in entry.lines() {
                writeln!(stdout, "   {line}")?;
            }
        }
        self.printed = self.session.view().entries().len();
        Ok(stdout.flush()?)
    }

    /// Prints the wait's countdown.
    async fn states(&self) -> Outcome {
        let states = self.session.view().states(SystemClock.now());
        let wait = states.iter().find(|state| state.kind == Kind::Wait);
        let State { text, .. } = wait.ok_or_else(|| {
            CommandError::internal(
                "the agent does not wait",
                "please report this; klbr demo --keep keeps its home",
            )
        })?;
        note(&format!("the wait: {text}"))?;
        tokio::time::sleep(self.pause).await;
        Ok(())
    }
}

fn streamed(session: &Session) -> String {
    piece(session, Kind::Scratch)
}

fn thought(session: &Session) -> String {
    piece(session, Kind::Think)
}

fn piece(session: &Session, kind: Kind) -> String {
    let streaming = session.view().streaming();
    streaming.into_iter().find(|entry| entry.kind == kind).map(|entry| entry.text).unwrap_or_default()
}

fn first_line(text: &str, columns: usize) -> String {
    crate::text::wrap(text, columns).into_iter().next().unwrap_or_default()
}

fn title(text: &str) -> Outcome {
    Ok(writeln!(io::stdout(), "{text}")?)
}

fn step(text: &str) -> Outcome {
    Ok(writeln!(io::stdout(), "\n{text}")?)
}

fn note(text: &str) -> Outcome {
    Ok(writeln!(io::stdout(), "   {:<9} : {text}", "")?)
}
