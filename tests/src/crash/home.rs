//! One home with its model server, its client, and the daemons that are killed on it one after the other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use klbr_core::runtime::probe::Point;
use klbr_core::status::Activity;
use klbr_core::update::Happening;
use klbr_server::api::AgentStatus;
use serde_json::json;

use super::evidence::{CANARY, Evidence, Sent, command};
use super::people::People;
use super::schedule::{Held, Kill, Place, Schedule};
use super::{CrashError, Report, World, soak};
use crate::daemon::{Api, Daemon, Follower, Klbrd, listening};
use crate::fake_model::{FakeModel, Script};
use crate::process::{Running, Signal};

/// How long a named point may take to be reached.
const POINT_COMES: Duration = Duration::from_secs(6);

/// How long everything that was begun may take to become quiet.
pub(super) const CALMS: Duration = Duration::from_secs(60);

/// How often people are asked whether all of theirs is over.
const LOOKS: Duration = Duration::from_millis(50);

/// How long an acknowledgement is waited for before the message is sent again.
const ACKNOWLEDGES: Duration = Duration::from_secs(2);

struct Home {
    dir: PathBuf,
    klbrd: Klbrd,
    model: FakeModel,
    /// Those on Discord, where that is the world.
    people: Option<People>,
    follower: Follower,
    schedule: Schedule,
    evidence: Evidence,
    report: Report,
}

/// Lives through the schedule's kills and a quiet end, and judges.
pub(super) async fn live(
    schedule: Schedule,
    folder: Option<&Path>,
) -> Result<(Report, Evidence), CrashError> {
    let mut home = Home::new(schedule, folder).await?;
    home.introduce().await?;
    for life in 0..home.schedule.lives {
        home.life(life).await?;
        home.judge_so_far(life).await?;
        if !home.report.violations.is_empty() {
            break;
        }
    }
    if home.report.violations.is_empty() {
        home.end().await?;
    }
    home.close().await
}

/// Lives with one daemon while things go wrong at Discord, and judges.
pub(super) async fn soak(
    schedule: Schedule,
    lasts: Duration,
    folder: Option<&Path>,
) -> Result<(Report, Evidence), CrashError> {
    let mut home = Home::new(schedule, folder).await?;
    home.introduce().await?;
    home.endure(lasts).await?;
    home.judge_so_far(0).await?;
    if home.report.violations.is_empty() {
        home.end().await?;
    }
    home.close().await
}

/// What the model server does: with its misbehaviour, or without it at the end.
fn script(world: World, seed: u64, dir: &Path, misbehave: serde_json::Value) -> Script {
    let mut operator = json!({
        "scope": "transcript",
        "again_after": ["Not run:", "Cancelled while", "Not sent"],
        "send": {"name": "local_send", "arguments": {"content": "re {marker}"}},
        "canary": CANARY,
        "tools": [{"call": {"name": "process", "arguments": {"command": command(&dir.join("effects"))}}, "chance": 0.5}],
        "gap_ms": 1,
        "misbehave": misbehave,
    });
    if world == World::Discord {
        let place =
            json!({"content": "re {marker}", "conversation_id": "{conversation}", "source_item_id": "{ref}"});
        operator["block"] = json!("message");
        operator["send"] = json!({"name": "discord_send", "arguments": place});
        operator["tools"] = json!([]);
    }
    let script = json!({
        "model": "m", "context_tokens": 4_000_000, "seed": seed,
        "rules": [{"answer": {"body": {"operator": operator}}}],
    });
    serde_json::from_value(script).expect("the script is one")
}

/// How often a reply goes wrong, in each way.
fn misbehaviour() -> serde_json::Value {
    json!({
        "status_500": 0.02, "status_429": 0.02, "reset": 0.03, "close": 0.03, "stall": 0.02, "error": 0.02,
        "no_done": 0.02, "text_only": 0.03, "cut_arguments": 0.04, "unknown_action": 0.03, "bare_calls": 0.06,
    })
}

impl Home {
    async fn new(schedule: Schedule, folder: Option<&Path>) -> Result<Home, CrashError> {
        let dir = crate::folder("klbr-crash").map_err(CrashError::home("making a home"))?;
        let script = script(schedule.world, schedule.seed ^ schedule.home << 32, &dir, misbehaviour());
        let model = FakeModel::scripted(&script).await?;
        let people = match schedule.world {
            World::Operator => None,
            World::Discord => Some(People::new().await?),
        };
        let klbrd = Klbrd::on(&dir.join("home"), folder)?
            .model(&model.ready().base)
            .env("KLBR_IDLE_TIMEOUT_SECS", "1")
            .with_processes()
            .map_err(CrashError::home("making a home"))?;
        let klbrd = match &people {
            None => klbrd,
            Some(people) => people.joined_by(klbrd, schedule.home),
        };
        let (follower, evidence) = (Follower::new(), Evidence::default());
        let report = Report { homes: 1, ..Report::default() };
        Ok(Home { dir, klbrd, model, people, follower, schedule, evidence, report })
    }

    /// A first daemon hears people out, and ends in order.
    async fn introduce(&mut self) -> Result<(), CrashError> {
        if self.people.is_none() {
            return Ok(());
        }
        let mut daemon = self.klbrd.clone().start().await?;
        self.follower.attach(&daemon.api);
        daemon.api.ready(CALMS).await?;
        // What is said before the session begins in a conversation that was never heard of is told to nobody.
        if let Some(people) = &mut self.people {
            people.is_joined().await?;
            people.introduce().await?;
            // What does not come is said by the judge.
            let (mut seen, until) = (0, people.count());
            while seen < until
                && self
                    .follower
                    .until("a first message", seen, CALMS, is_from_discord)
                    .await
                    .map(|at| seen = at + 1)
                    .is_ok()
            {}
        }
        daemon.running.terminate(Duration::from_secs(10)).await?;
        self.follower.detach();
        Ok(())
    }

    /// One daemon, from its start to its kill.
    async fn life(&mut self, life: usize) -> Result<(), CrashError> {
        let records = self.evidence.updates.last().and_then(|update| update.id).map_or(0, |id| id.0);
        let kill = self.schedule.kill(life, records);
        let mut klbrd = self.klbrd.clone();
        if let Kill::At(Place::Point(point), passing) = kill {
            klbrd = klbrd.env("KLBR_PAUSE_AT", &format!("{}:{passing}", point.as_str()));
        }
        if let Some(people) = &mut self.people {
            let place = if let Kill::At(place, passing) = kill { Some((place, passing)) } else { None };
            people.meanwhile(&mut self.schedule.rng, place).await?;
        }
        let mut running = klbrd.spawn()?;
        match kill {
            Kill::After(moment) => {
                let _ = tokio::time::timeout(moment, self.speak_to(&mut running)).await;
                self.report.random += 1;
            }
            Kill::AfterReady(moment) => {
                let api = listening(&mut running).await?;
                let _ = tokio::time::timeout(moment, self.speak(&api)).await;
                self.report.random += 1;
            }
            Kill::At(place, _) => self.stand_still(&mut running, place).await?,
        }
        running.kill().await?;
        self.follower.detach();
        self.report.trials += 1;
        Ok(())
    }

    /// One daemon, to an orderly end, with mishaps meanwhile.
    async fn endure(&mut self, lasts: Duration) -> Result<(), CrashError> {
        let Some(people) = &mut self.people else { return Ok(()) };
        let control = people.control().clone();
        control.set(json!({"heartbeat_ms": soak::HEARTBEAT_MS})).await?;
        let mut daemon = self.klbrd.clone().start().await?;
        self.follower.attach(&daemon.api);
        let mut rng = self.schedule.rng.fork();
        tokio::select! {
            ended = soak::mishaps(&control, &mut rng, lasts, &mut self.report) => ended?,
            () = people.speak(&mut self.schedule.rng) => {}
        }
        self.stop(&mut daemon).await?;
        self.follower.detach();
        Ok(())
    }

    async fn stand_still(&mut self, running: &mut Running, place: Place) -> Result<(), CrashError> {
        let name = place.as_str();
        let held = match (place, &self.people) {
            (Place::Held(_), Some(people)) => Some(people.held().await?),
            _ => None,
        };
        let api = listening(running).await?;
        let comes = match place {
            Place::Point(Point::CheckpointBeforeWrite) => 5 * POINT_COMES,
            _ => POINT_COMES,
        };
        let paused = format!("{{\"paused\":\"{name}\"}}");
        let stands = async {
            match held {
                Some(held) => tokio::time::timeout(comes, held).await.unwrap_or(false),
                None => running.complaint(name, comes, |line| line == paused).await.is_ok(),
            }
        };
        let reached = tokio::select! {
            reached = stands => reached,
            () = self.speak(&api) => false,
        };
        if !reached {
            self.schedule.unreached(place);
        }
        if let (Place::Held(Held::Asked), Some(people), true) =
            (place, &self.people, self.schedule.rng.bool())
        {
            people.let_through().await?;
        }
        let counts = if reached { &mut self.report.points } else { &mut self.report.unreached };
        *counts.entry(name).or_default() += 1;
        Ok(())
    }

    async fn speak_to(&mut self, running: &mut Running) {
        if let Ok(api) = listening(running).await {
            self.speak(&api).await;
        }
    }

    /// Sends again what was not acknowledged, now and then what was, and new messages for ever.
    async fn speak(&mut self, api: &Api) {
        self.follower.attach(api);
        if let Some(people) = &mut self.people {
            return people.speak(&mut self.schedule.rng).await;
        }
        if api.ready(CALMS).await.is_err() {
            return std::future::pending().await;
        }
        for place in 0..self.evidence.messages.len() {
            if self.evidence.messages[place].event.is_none() {
                self.send(api, place).await;
            }
        }
        if !self.evidence.messages.is_empty() && self.schedule.rng.bool() {
            let place = self.schedule.rng.usize(..self.evidence.messages.len());
            self.send(api, place).await;
        }
        loop {
            let number = self.evidence.messages.len() + 1;
            let (key, marker) = (format!("key-{number}"), format!("msg-{number}"));
            self.evidence.messages.push(Sent { key, marker, event: None });
            self.send(api, number - 1).await;
            // Mostly the answer may come; sometimes the next message comes first.
            let pause = match self.schedule.rng.u32(0..4) {
                0 => self.schedule.rng.u64(0..60),
                _ => self.schedule.rng.u64(150..700),
            };
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    async fn send(&mut self, api: &Api, place: usize) {
        let message = &mut self.evidence.messages[place];
        let text = format!("Please answer {}.", message.marker);
        let Ok(Ok(accepted)) = tokio::time::timeout(ACKNOWLEDGES, api.say(&message.key, &text)).await else {
            return;
        };
        let event = accepted.event.0;
        if let Some(before) = message.event.replace(event) {
            self.report.repeats += 1;
            if before != event || !accepted.repeated {
                let fault = format!("{} was {before}, and sent again is {accepted:?}", message.key);
                self.evidence.faults.push(fault);
            }
        }
    }

    /// Sees what a client, the model server and the file system saw, and judges what must hold at any moment.
    async fn judge_so_far(&mut self, life: usize) -> Result<(), CrashError> {
        self.look().await?;
        let (seed, home) = (self.schedule.seed, self.schedule.home);
        let violations = self.evidence.judge_so_far();
        let place = |violation| format!("seed {seed}, home {home}, kill {}: {violation}", life + 1);
        self.report.violations.extend(violations.into_iter().map(place));
        Ok(())
    }

    async fn look(&mut self) -> Result<(), CrashError> {
        for request in self.model.control().requests().await? {
            if request.is_chat() {
                self.evidence.requests.take(request.body, request.arrived);
            }
        }
        self.model.control().clear().await?;
        if let Some(people) = &self.people {
            self.evidence.discord = Some(people.look().await?);
        }
        self.evidence.updates = self.follower.updates();
        self.evidence.faults.extend(self.follower.take_faults());
        let lines = std::fs::read_to_string(self.dir.join("effects")).unwrap_or_default();
        self.evidence.effects = lines.lines().map(str::to_owned).collect();
        Ok(())
    }

    /// A daemon that is not killed answers what is left; then everything is judged.
    async fn end(&mut self) -> Result<(), CrashError> {
        let calm = script(self.schedule.world, self.schedule.seed, &self.dir, json!({}));
        self.model.control().load(&calm).await?;
        if let Some(people) = &mut self.people {
            people.meanwhile(&mut self.schedule.rng, None).await?;
        }
        let mut daemon = self.klbrd.clone().start().await?;
        self.follower.attach(&daemon.api);
        daemon.api.ready(CALMS).await?;
        match &mut self.people {
            Some(people) => people.introduce().await?,
            None => self.send_what_is_left(&daemon.api).await,
        }
        let mut violations = Vec::new();
        // What does not come is said by the judge, message by message.
        self.all_answered().await?;
        if let Err(restless) = daemon.api.until("quiet", CALMS, is_quiet).await {
            violations.push(restless.to_string());
        }
        self.evidence.ledger = daemon.api.ledger().await?;
        self.evidence.records = daemon.api.records().await?;
        let newest = self.evidence.records.iter().rev().find_map(klbr_core::update::Update::from_record);
        if let Some(newest) = newest
            && let Err(missing) =
                self.follower.until("the newest update", 0, CALMS, |update| update.id >= newest.id).await
        {
            violations.push(missing);
        }
        self.look().await?;
        self.stop(&mut daemon).await?;
        self.evidence.store = match klbr_store::upkeep::check(&self.dir.join("home/klbr.db")) {
            Ok(report) => report.faults,
            Err(error) => vec![error.to_string()],
        };
        violations.extend(self.evidence.judge());
        let (seed, home) = (self.schedule.seed, self.schedule.home);
        let place = |violation| format!("seed {seed}, home {home}, at its end: {violation}");
        self.report.violations.extend(violations.into_iter().map(place));
        Ok(())
    }

    /// Every second home ends in order, the others by one more kill, which is not counted.
    async fn stop(&mut self, daemon: &mut Daemon) -> Result<(), CrashError> {
        if self.schedule.rng.bool() {
            daemon.running.kill().await?;
            return Ok(());
        }
        daemon.running.signal(Signal::Terminate)?;
        let status = daemon.running.wait(Duration::from_secs(10)).await?;
        if !status.success() {
            self.evidence.faults.push(format!("SIGTERM ended it with {status}"));
        }
        Ok(())
    }

    /// Says one more thing, and again what was not acknowledged.
    async fn send_what_is_left(&mut self, api: &Api) {
        let number = self.evidence.messages.len() + 1;
        let (key, marker) = (format!("key-{number}"), format!("msg-{number}"));
        self.evidence.messages.push(Sent { key, marker, event: None });
        for place in 0..number {
            if self.evidence.messages[place].event.is_none() {
                self.send(api, place).await;
            }
        }
    }

    async fn all_answered(&mut self) -> Result<(), CrashError> {
        let begun = std::time::Instant::now();
        while self.people.is_some() && begun.elapsed() < CALMS {
            self.look().await?;
            let discord = self.evidence.discord.as_ref();
            if discord.is_none_or(|discord| discord.is_over(&self.evidence.updates)) {
                break;
            }
            tokio::time::sleep(LOOKS).await;
        }
        for message in &self.evidence.messages {
            let answer = message.answer();
            let answers = |happening: &Happening| matches!(happening, Happening::Delivered { text, .. } if *text == answer);
            if self.follower.until(&answer, 0, CALMS, |update| answers(&update.happening)).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Counts, and keeps the home only if something is wrong with it.
    async fn close(mut self) -> Result<(Report, Evidence), CrashError> {
        self.report.messages = self.evidence.messages.len();
        self.report.deliveries = self.evidence.updates.iter().filter(|update| is_delivery(update)).count();
        self.report.effects = self.evidence.effects.len();
        self.report.unknown = self.evidence.unknown();
        self.report.requests = self.evidence.requests.count;
        self.report.records =
            self.evidence.updates.last().and_then(|update| update.id).map_or(0, |id| id.0 as usize);
        self.report.said_again = self.evidence.said_again();
        if self.report.violations.is_empty() {
            std::fs::remove_dir_all(&self.dir).map_err(CrashError::home("removing a home"))?;
        } else {
            std::fs::write(self.dir.join("last-request.json"), &self.evidence.requests.last)
                .and_then(|()| std::fs::write(self.dir.join("updates.txt"), self.told()))
                .map_err(CrashError::home("keeping the evidence"))?;
            self.report.kept.push(self.dir.clone());
        }
        let Home { mut model, people, mut report, evidence, .. } = self;
        model.process().kill().await?;
        if let (Some(people), Some(seen)) = (people, &evidence.discord) {
            report.messages = seen.said.len();
            report.discord = people.close(seen).await?;
        }
        Ok((report, evidence))
    }

    fn told(&self) -> String {
        let line = |update| serde_json::to_string(update).unwrap_or_default() + "\n";
        self.evidence.updates.iter().map(line).collect()
    }
}

fn is_delivery(update: &klbr_core::update::Update) -> bool {
    matches!(update.happening, Happening::Delivered { .. })
}

fn is_from_discord(update: &klbr_core::update::Update) -> bool {
    matches!(&update.happening, Happening::Admitted { instance, .. } if &**instance == "discord")
}

/// Nothing runs and nothing waits to be shown.
fn is_quiet(status: &AgentStatus) -> bool {
    status.agent.as_ref().is_some_and(|agent| {
        matches!(agent.activity, Activity::Waiting { .. } | Activity::Resting { .. })
            && agent.open_effects.is_empty()
            && agent.ledger.framed == 0
    })
}
