//! Discord, as the double tells it and sees it: one message to an agent that waits, and very many.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use klbr_core::ids::EventId;
use klbr_core::update::{Happening, Update};
use serde_json::{Value, json};

use super::interrupt::Times;
use super::life::{peak, resident};
use super::rig::{Rig, WATCHDOG, always, reply, wait};
use super::{Bar, BenchError, Figure, Line, Plan};
use crate::clock::Stamp;
use crate::daemon::{Follower, Klbrd};
use crate::discord_double::{Burst, Control, DiscordDouble, NewBurst, Snowflake, What};

/// In how many channels a burst is said.
const CHANNELS: usize = 50;

/// How many messages the long burst has, and in how long.
const MANY: usize = 10_000;
const MINUTE: u64 = 60;

/// The context of the long burst, in tokens, and what the model makes of it when it is full.
const CONTEXT: &str = "32768";
const SUMMARY: &str = "Everybody asked about the build, which has been red since this morning.";

/// How often the ledger is asked.
const PACE: Duration = Duration::from_millis(5);

/// The heartbeat interval of the long burst: the double closes a connection that misses one.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// People on the double, and an agent that listens.
struct Scene {
    rig: Rig,
    double: DiscordDouble,
    person: Snowflake,
    channels: Vec<Snowflake>,
}

impl Scene {
    async fn start(plan: &Plan) -> Result<Scene, BenchError> {
        Scene::start_as(plan, always(json!([wait()])), |klbrd| klbrd).await
    }

    async fn start_as(
        plan: &Plan,
        rules: Value,
        set: impl FnOnce(Klbrd) -> Klbrd,
    ) -> Result<Scene, BenchError> {
        let double = DiscordDouble::start().await?;
        let control = double.control();
        control.set(json!({"heartbeat_ms": HEARTBEAT.as_millis() as u64})).await?;
        let person = control.user("ada").await?;
        let guild = control.guild("house", &[person]).await?;
        let mut channels = Vec::new();
        for number in 0..CHANNELS {
            channels.push(control.channel(guild, &format!("room-{number}")).await?);
        }
        let rig = Rig::start_as(plan, rules, |klbrd| set(klbrd.discord(double.ready()))).await?;
        let begins = |noted: &crate::discord_double::Noted| matches!(noted.what, What::Identified { .. });
        double.control().wait_gateway("a session", WATCHDOG, begins).await?;
        Ok(Scene { rig, double, person, channels })
    }

    fn control(&self) -> &Control {
        self.double.control()
    }

    async fn mention(&self, words: &str) -> Result<(), BenchError> {
        let words = format!("<@{}> {words}", self.double.ready().bot);
        self.control().say(self.person, self.channels[0], &words).await?;
        Ok(())
    }

    fn burst(&self, count: usize, per_second: u64) -> NewBurst {
        NewBurst {
            authors: vec![self.person],
            channels: self.channels.clone(),
            count,
            per_second,
            content: "Has anyone looked at the build yet? It has been red since this morning.".to_owned(),
            mention_every: 100,
        }
    }

    /// Waits until so many events are admitted.
    async fn admits(&self, count: u64) -> Result<Stamp, BenchError> {
        let begun = Instant::now();
        loop {
            let ledger = self.rig.api().ledger().await?;
            if ledger.admitted >= count {
                return Ok(Stamp::now());
            }
            if begun.elapsed() > 4 * WATCHDOG {
                return Err(BenchError::Absent(format!(
                    "{count} admissions did not come; the ledger is {ledger}"
                )));
            }
            tokio::time::sleep(PACE).await;
        }
    }
}

pub(super) async fn measure(plan: &Plan) -> Result<Vec<Line>, BenchError> {
    Ok(vec![directed(plan).await?, together(plan).await?])
}

/// Each mention ends a wait.
async fn directed(plan: &Plan) -> Result<Line, BenchError> {
    let mut scene = Scene::start(plan).await?;
    let mut follower = Follower::new();
    follower.attach(scene.rig.api());
    scene.mention("begin").await?;
    scene.rig.is_asked().await?;
    let is_heard = |update: &Update| matches!(&update.happening, Happening::Admitted { external_id, .. } if external_id.starts_with("msg:"));
    let mut heard = follower.until("a mention", 0, WATCHDOG, is_heard).await.map_err(BenchError::Absent)?;
    let mut times = Times::default();
    for number in 0..plan.runs {
        scene.rig.waits().await?;
        scene.rig.forget().await?;
        let said = Stamp::now();
        scene.mention(&format!("Are you there? ({number})")).await?;
        let shown = scene.rig.is_asked().await?.at;
        let next = follower.until("a mention", heard + 1, WATCHDOG, is_heard).await;
        heard = next.map_err(BenchError::Absent)?;
        times.add((said, follower.stamped()[heard].0), shown);
    }
    let mut line = times.line("discord", "a mention is shown", "", (20.0, 20.0));
    line.figures[0].bar = None;
    line.method = "from its admission, as a client was told of it (0 if told after), to the request with it whole at the \
                   model server, out of a wait; since sent: from before the double is told to say it, with the gateway's \
                   way and the durable admission in it"
        .to_owned();
    Ok(line)
}

/// As much as the double can say.
async fn together(plan: &Plan) -> Result<Line, BenchError> {
    let scene = Scene::start(plan).await?;
    let count = plan.runs * 25;
    let begun = Stamp::now();
    let burst = scene.control().burst(scene.burst(count, 0)).await?;
    let admitted = scene.admits(count as u64).await?;
    let summary = scene.control().summary().await?;
    let rate = |took: Duration| count as f64 / took.as_secs_f64();
    Ok(Line {
        row: "discord",
        what: "admission, end to end".to_owned(),
        method: format!(
            "from before the double is told to say {count} messages over {CHANNELS} channels, every 100th a mention, to \
             a ledger that has them all, asked every 5 ms; double, model server and daemon share the cores"
        ),
        n: count,
        figures: vec![
            Figure::plain("rate", rate(admitted.since(begun)), "messages/s").against(Bar::AtLeast(2_000.0)),
            Figure::plain("the double said", rate(Duration::from_micros(burst.took_us)), "messages/s"),
            Figure::plain("connections", summary.connects as f64, ""),
        ],
    })
}

/// 10,000 messages within a minute over 50 channels, to an agent whose context they do not fit in.
pub(super) async fn burst(plan: &Plan) -> Result<Vec<Line>, BenchError> {
    let summary =
        json!({"when": {"last_contains": "<instructions>"}, "answer": reply(json!([{"text": SUMMARY}]))});
    let rules = json!([summary, {"answer": reply(json!([wait()]))}]);
    let mut scene = Scene::start_as(plan, rules, |klbrd| klbrd.env("KLBR_CONTEXT_TOKENS", CONTEXT)).await?;
    let mut follower = Follower::new();
    follower.attach(scene.rig.api());
    scene.mention("begin").await?;
    scene.rig.is_asked().await?;
    scene.rig.waits().await?;
    let pid = scene.rig.daemon.running.pid();
    let idle = resident(pid)?;
    let burst = scene.burst(MANY, MANY as u64 / MINUTE + 1);
    let half = async {
        tokio::time::sleep(Duration::from_secs(MINUTE / 2)).await;
        resident(pid)
    };
    let said = async { Ok(scene.control().burst(burst).await?) };
    let (said, half) = tokio::try_join!(said, half)?;
    scene.admits(MANY as u64 + 1).await?;
    let (after, most) = (resident(pid)?, peak(pid)?);
    let heard = heard(&mut follower, &said).await?;
    let gateway = gateway(&scene).await?;
    let line = |what: &str, method: &str, n, figures| Line {
        row: "burst",
        what: what.to_owned(),
        method: method.to_owned(),
        n,
        figures,
    };
    let mb = |kib: u64| kib as f64 / 1024.0;
    Ok(vec![
        line(
            "everything is admitted",
            "events of the double's messages among the updates of a client, each name counted once",
            MANY,
            vec![
                Figure::plain("admitted", heard.admitted as f64, "messages")
                    .against(Bar::AtLeast(MANY as f64)),
                Figure::plain("admitted again", heard.again as f64, "messages").against(Bar::AtMost(0.0)),
                Figure::plain("took", said.took_us as f64 / 1e6, "s"),
            ],
        ),
        line(
            "memory",
            "VmHWM and VmRSS in /proc after the last admission, beside VmRSS before the first and after half a minute; a \
             context of 32,768 tokens, compacted by the way",
            1,
            vec![
                Figure::plain("peak", mb(most), "MB").against(Bar::AtMost(30.0)),
                Figure::plain("before", mb(idle), "MB"),
                Figure::plain("after half a minute", mb(half), "MB"),
                Figure::plain("after all", mb(after), "MB"),
            ],
        ),
        line(
            "mentions are shown first",
            "for each mention, frames after its admission and before the one that has it; 1 is a frame that was chosen \
             before and whose bodies were being read",
            said.mentions.len(),
            vec![
                Figure::plain("frames in front, most", heard.in_front as f64, "").against(Bar::AtMost(1.0)),
                Figure::plain("frames", heard.frames as f64, ""),
            ],
        ),
        line(
            "the gateway is never blocked",
            "connections and heartbeats that the double saw; it closes a connection that misses one of its 2 s",
            gateway.heartbeats,
            vec![
                Figure::plain("connections", gateway.connections as f64, "").against(Bar::AtMost(1.0)),
                Figure::plain("longest between heartbeats", gateway.longest.as_secs_f64(), "s")
                    .against(Bar::AtMost(1.5 * HEARTBEAT.as_secs_f64())),
            ],
        ),
    ])
}

struct Heard {
    admitted: usize,
    again: usize,
    in_front: usize,
    frames: usize,
}

/// What a client was told of a burst, once all its mentions were shown.
async fn heard(follower: &mut Follower, said: &Burst) -> Result<Heard, BenchError> {
    let name = |id: &Snowflake| format!("msg:{id}");
    let last = said.ids.last().map(name).unwrap_or_default();
    let is_last = |happening: &Happening| matches!(happening, Happening::Admitted { external_id, .. } if **external_id == *last);
    let admitted = follower.until("the last message", 0, WATCHDOG, |update| is_last(&update.happening));
    let at = admitted.await.map_err(BenchError::Absent)?;
    let event = match &follower.updates()[at].happening {
        Happening::Admitted { event, .. } => *event,
        _ => unreachable!("only an admission was wanted"),
    };
    let shows = |happening: &Happening| matches!(happening, Happening::Shown { events, .. } if events.contains(&event));
    // The last one is a mention: with it in a frame, no other waits.
    follower
        .until("its frame", at, WATCHDOG, |update| shows(&update.happening))
        .await
        .map_err(BenchError::Absent)?;
    let wanted: BTreeSet<String> = said.ids.iter().map(name).collect();
    let mentions: BTreeSet<String> = said.mentions.iter().map(name).collect();
    let (mut seen, mut heard) = (BTreeSet::new(), Heard { admitted: 0, again: 0, in_front: 0, frames: 0 });
    let mut waiting: BTreeMap<EventId, usize> = BTreeMap::new();
    for update in follower.updates() {
        match update.happening {
            Happening::Admitted { event, external_id, .. } if wanted.contains(&*external_id) => {
                if mentions.contains(&*external_id) {
                    waiting.insert(event, 0);
                }
                match seen.insert(external_id) {
                    true => heard.admitted += 1,
                    false => heard.again += 1,
                }
            }
            Happening::Shown { events, .. } => {
                heard.frames += 1;
                waiting.retain(|event, _| !events.contains(event));
                waiting.values_mut().for_each(|frames| *frames += 1);
                heard.in_front = heard.in_front.max(waiting.values().copied().max().unwrap_or(0));
            }
            _ => {}
        }
    }
    match waiting.len() {
        0 => Ok(heard),
        left => Err(BenchError::Absent(format!("{left} mentions were never shown"))),
    }
}

struct Gateway {
    connections: usize,
    heartbeats: usize,
    longest: Duration,
}

async fn gateway(scene: &Scene) -> Result<Gateway, BenchError> {
    let noted = scene.control().gateway().await?;
    let connects = noted.iter().filter(|noted| matches!(noted.what, What::Connected { .. })).count();
    let beats: Vec<Stamp> = noted
        .iter()
        .filter(|noted| matches!(noted.what, What::Heartbeat { acknowledged: true, .. }))
        .map(|noted| noted.at)
        .collect();
    let longest = beats.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap_or(Duration::MAX);
    Ok(Gateway { connections: connects, heartbeats: beats.len(), longest })
}
