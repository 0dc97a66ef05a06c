//! The transcript in `discord-agent/README.md` is what the program prints, over the double of Discord.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed helper is a failed test")]

use std::path::Path;
use std::time::{Duration, Instant};

use klbr_tests::discord_double::{Control, DiscordDouble, Fault, Make, Noted, Snowflake, What};
use klbr_tests::fake_model::FakeModel;
use klbr_tests::process::{Program, Running};
use serde_json::{Value, json};

const WATCHDOG: Duration = Duration::from_secs(30);

/// How long chatter is gathered; nothing in the transcript may wait for that but chatter.
const BATCH: Duration = Duration::from_secs(4);

/// A model that answers builds that it is asked about, and leaves alone what is settled.
fn script() -> Value {
    let operator = |action: &str, arguments: Value| {
        let send = json!({"name": action, "arguments": arguments});
        json!({"body": {"operator": {"marker": "build ", "block": "message", "canary": null, "send": send}}})
    };
    let mark =
        json!({"item_id": "{ref}", "status": "ignored", "note": "they have settled it among themselves"});
    let send = json!({"content": "{marker} broke on a flaky test. I have started it again.", "source_item_id": "{ref}"});
    json!({"model": "scripted", "context_tokens": 100_000, "rules": [
        {"when": {"last_contains": "never mind"}, "answer": operator("discord_mark", mark)},
        {"answer": operator("discord_send", send)},
    ]})
}

struct Scene {
    double: DiscordDouble,
    model: FakeModel,
    home: tempfile::TempDir,
    grace: Snowflake,
    linus: Snowflake,
    channel: Snowflake,
    transcript: Vec<String>,
}

impl Scene {
    fn control(&self) -> &Control {
        self.double.control()
    }

    /// Starts the program, and waits until it listens; `session` is the how-manieth session that goes on here.
    async fn start(&self, session: usize) -> Running {
        let ready = self.double.ready();
        let program = Program::at(env!("CARGO_BIN_EXE_discord-agent")).directory(self.home.path());
        let program = program.arg("scripted").env("KLBR_BASE_URL", &self.model.ready().base);
        let program = program
            .env("KLBR_DISCORD_TOKEN", &ready.token)
            .env("KLBR_DISCORD_API_URL", &ready.api)
            .env("KLBR_DISCORD_GATEWAY_URL", &ready.gateway)
            .env("KLBR_DISCORD_BATCH_SECS", BATCH.as_secs().to_string());
        let running = program.spawn().unwrap();
        let until = Instant::now() + WATCHDOG;
        let listens = |noted: &&Noted| matches!(noted.what, What::Identified { .. } | What::Resumed { .. });
        while self.control().gateway().await.unwrap().iter().filter(listens).count() < session {
            assert!(Instant::now() < until, "it does not listen");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        running
    }

    async fn says(&mut self, who: (Snowflake, &str), words: &str) {
        let bot = self.double.ready().bot;
        self.transcript.push(format!("{:6}: {words}", who.1));
        self.control().say(who.0, self.channel, &words.replace("@klbr", &format!("<@{bot}>"))).await.unwrap();
    }

    /// Takes down what the program has printed since the first `seen` lines, up to a line that begins so.
    async fn takes_down(&mut self, running: &mut Running, seen: usize, until: &str) -> usize {
        let is_new = std::sync::atomic::AtomicUsize::new(0);
        let wanted = |line: &str| {
            is_new.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= seen && line.starts_with(until)
        };
        running.line(until, WATCHDOG, wanted).await.unwrap();
        let lines = running.stdout();
        let end = seen + lines[seen..].iter().position(|line| line.text.starts_with(until)).unwrap() + 1;
        self.transcript.extend(lines[seen..end].iter().map(|line| line.text.clone()));
        end
    }

    fn notes(&mut self, line: &str) {
        self.transcript.push(format!("{:6}: {line}", ""));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_transcript_of_the_discord_agent_is_what_it_prints() {
    let double = match DiscordDouble::start().await {
        Ok(double) => double,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{error}");
            println!("SKIPPED: {error}");
            return;
        }
    };
    let model = FakeModel::scripted(&script()).await.unwrap();
    let control = double.control();
    let (grace, linus) = (control.user("grace").await.unwrap(), control.user("linus").await.unwrap());
    let guild = control.guild("house", &[grace, linus]).await.unwrap();
    let channel = control.channel(guild, "general").await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut scene = Scene { double, model, home, grace, linus, channel, transcript: Vec::new() };
    let (grace, linus) = ((scene.grace, "grace"), (scene.linus, "linus"));

    let mut running = scene.start(1).await;
    scene.notes("A mention while chatter is being gathered: both are shown at once.");
    scene.says(grace, "has anyone seen the build?").await;
    scene.says(linus, "not me").await;
    let asked = Instant::now();
    scene.says(grace, "@klbr what about build 7?").await;
    let seen = scene.takes_down(&mut running, 0, "waits").await;
    assert!(asked.elapsed() < BATCH, "the mention waited for the chatter's delay: {:?}", asked.elapsed());

    scene.notes("");
    scene.notes("Chatter that needs nothing: it is left alone, and what was addressed is marked.");
    scene.says(linus, "ah, it was the network").await;
    scene.says(linus, "@klbr never mind build 8, it is green").await;
    let seen = scene.takes_down(&mut running, seen, "waits").await;

    scene.notes("");
    scene.notes("SIGKILL while the message is made and its receipt is still on the way.");
    let held = Fault::new(Make::HoldAfter("receipt".to_owned()));
    let held = held.on("POST", "/channels/{channel}/messages");
    scene.control().faults([held]).await.unwrap();
    scene.says(grace, "@klbr and build 9?").await;
    scene.control().wait_request("a held receipt", WATCHDOG, |asked| asked.held).await.unwrap();
    scene.takes_down(&mut running, seen, "reads | </pending>").await;
    running.kill().await.unwrap();
    scene.notes("killed; started again");
    let mut running = scene.start(2).await;
    scene.takes_down(&mut running, 0, "says").await;

    scene.notes("");
    scene.notes("What the channel has in the end, each message once:");
    for message in scene.control().history(scene.channel).await.unwrap() {
        let (author, words) = (&message["author"]["username"], &message["content"]);
        let line = format!("{}: {}", author.as_str().unwrap(), words.as_str().unwrap());
        scene.notes(&line);
    }
    let summary = scene.control().summary().await.unwrap();
    assert_eq!((summary.created, summary.repeated, summary.known_nonces), (2, 0, 1));
    compare(&normal(&scene.transcript.join("\n")));
}

/// Ids get numbers in their order of appearance, and moments are all the same one; the date and the channel's
/// instructions are left out.
fn normal(transcript: &str) -> String {
    let mut ids: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    for line in transcript.lines() {
        let mut told = String::new();
        let mut rest = line;
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            told.push_str(&rest[..at]);
            let is_moment = |c: char| c.is_ascii_digit() || "-:TZ".contains(c);
            let moment = rest[at..].split(|c| !is_moment(c)).next().unwrap();
            let digits = rest[at..].split(|c: char| !c.is_ascii_digit()).next().unwrap();
            let length = match (moment.ends_with('Z'), digits.len()) {
                (true, 4) => {
                    told.push_str("2026-01-01T12:00:00Z");
                    moment.len()
                }
                (_, 15..) => {
                    let place = ids.iter().position(|id| id == digits).unwrap_or_else(|| {
                        ids.push(digits.to_owned());
                        ids.len() - 1
                    });
                    told.push_str(&(100 + place).to_string());
                    digits.len()
                }
                _ => {
                    told.push_str(digits);
                    digits.len()
                }
            };
            rest = &rest[at + length..];
        }
        told.push_str(rest);
        lines.push(told.trim_end().to_owned());
    }
    let is_left_out = |line: &str| {
        ["Today is ", "These messages are from"]
            .iter()
            .any(|begin| line.starts_with(&format!("reads | {begin}")))
    };
    lines.retain(|line| !is_left_out(line));
    lines.join("\n")
}

/// Compares with the README's block of text; with `UPDATE_EXPECT` set, replaces it.
fn compare(transcript: &str) {
    const BEGIN: &str = "```text\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("discord-agent/README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let begin = readme.find(BEGIN).unwrap() + BEGIN.len();
    let end = begin + readme[begin..].find("\n```").unwrap();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let updated = format!("{}{transcript}{}", &readme[..begin], &readme[end..]);
        std::fs::write(path, updated).unwrap();
        return;
    }
    assert_eq!(&readme[begin..end], transcript, "UPDATE_EXPECT=1 writes what it is now");
}
