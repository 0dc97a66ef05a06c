//! `real-discord [--release-dir FOLDER]`: the daemon on a real third-party server that speaks Discord's API.
//!
//! A person speaks to the agent there, and sees what it does: in a channel, by an edit, in a thread, in private, and after
//! it was away. The model is scripted; server, gateway and API are not klbr's. Without the folder that starts a server it
//! is skipped, said loudly; where `CI` is set that is a failure.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use klbr_tests::daemon::{Daemon, Klbrd};
use klbr_tests::fake_model::{Captured, FakeModel};
use klbr_tests::yepcord::{self, Who, Yepcord};
use serde_json::{Value, json};

/// How long anything may take before the proof fails.
const WATCHDOG: Duration = Duration::from_secs(40);

const PORT: u16 = 18_234;

/// What the model reacts with.
const EMOJI: &str = "👍";

#[tokio::main(worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "what it prints is what it is for")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let release: Option<PathBuf> = match arguments.as_slice() {
        [] => None,
        [option, folder] if option == "--release-dir" => Some(folder.into()),
        _ => {
            println!("usage: real-discord [--release-dir FOLDER]");
            return ExitCode::from(2);
        }
    };
    let Some(folder) = yepcord::folder() else {
        println!("SKIPPED: no YEPCord (set KLBR_SHARED to a folder with real/discord/yepcord/up.sh)");
        return if std::env::var_os("CI").is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    };
    let begun = Instant::now();
    match run(&folder, release.as_deref()).await {
        Ok(lines) => {
            println!("real-discord: on a real server, in {:.0} s:", begun.elapsed().as_secs_f64());
            lines.iter().for_each(|line| println!("  {line}"));
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("real-discord: FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A model that reads the history, reacts and answers, for each marker that it is shown.
fn script(send: Value) -> Value {
    let place = "{conversation}";
    let operator = json!({
        "scope": "transcript", "block": "message",
        "tools": [
            {"chance": 1.0, "call": {"name": "discord_fetch_history", "arguments": {"conversation_id": place, "limit": 5}}},
            {"chance": 1.0, "call": {"name": "discord_react", "arguments": {"conversation_id": place, "message_id": "{ref}", "emoji": EMOJI}}},
        ],
        "send": {"name": "discord_send", "arguments": send},
    });
    json!({"model": "m", "context_tokens": 4_000_000, "rules": [{"answer": {"body": {"operator": operator}}}]})
}

/// An answer where the question stood, in reply to it.
fn in_reply() -> Value {
    json!({"conversation_id": "{conversation}", "content": "re {marker}", "reply_to": "{ref}"})
}

struct Scene {
    server: Yepcord,
    model: FakeModel,
    klbrd: Klbrd,
    lines: Vec<String>,
}

async fn run(folder: &Path, release: Option<&Path>) -> Result<Vec<String>, String> {
    let begun = Instant::now();
    let server = Yepcord::start(folder, PORT).await?;
    let lines = vec![format!("the server was there after {:.0} s", begun.elapsed().as_secs_f64())];
    let model = FakeModel::scripted(&script(in_reply())).await.map_err(|error| error.to_string())?;
    let home = std::env::temp_dir().join(format!("klbr-real-discord-{}", std::process::id()));
    let klbrd = Klbrd::on(&home, release).map_err(|error| error.to_string())?;
    let klbrd = klbrd
        .model(&model.ready().base)
        .env("KLBR_DISCORD_TOKEN", &server.token)
        .env("KLBR_DISCORD_API_URL", &server.api)
        .env("KLBR_DISCORD_GATEWAY_URL", &server.gateway)
        .env("KLBR_DISCORD_BATCH_SECS", "0.2")
        .env("KLBR_LOG", "info,klbr_discord=debug");
    let mut scene = Scene { server, model, klbrd, lines };
    let told = scene.story().await;
    // A home that stays behind does no harm.
    let _ = std::fs::remove_dir_all(&home);
    match told {
        Ok(()) => Ok(scene.lines),
        Err(why) => Err(format!(
            "{why}; so far: {}\nthe model was shown last: {:#}",
            scene.lines.join("; "),
            scene.shown().await
        )),
    }
}

impl Scene {
    async fn story(&mut self) -> Result<(), String> {
        let mut daemon = self.listening().await?;
        let channel = self.server.channel.clone();

        let first =
            self.server.say(&channel, &format!("<@{}> Please answer msg-1.", self.server.bot)).await?;
        self.is_answered(&channel, "msg-1", Some(&first)).await?;
        self.is_reacted_to(&channel, &first).await?;
        self.told("a mention was heard, answered by a reply to it, and reacted to");

        let second = self.server.say(&channel, "Please answer").await?;
        self.server.edit(&channel, &second, "Please answer msg-2.").await?;
        self.is_answered(&channel, "msg-2", Some(&second)).await?;
        self.told("an edit was heard, and answered by a reply to what was edited");

        self.has_read("msg-1").await?;
        self.told("the channel's history was read");

        self.server.open_thread(Who::Person, &channel, &second, "aside").await?;
        let is_told =
            |asked: &Captured| String::from_utf8_lossy(&asked.body).contains(r#"notice=\"thread created\""#);
        let told = self.model.control().wait_request("the thread", 0, WATCHDOG, is_told).await;
        told.map_err(|error| error.to_string())?;
        self.told("a thread that somebody opened was heard of");

        let thread = self.server.open_thread(Who::Bot, &channel, &first, "another").await?;
        self.speaks(json!({"channel_id": thread, "content": "re {marker}"})).await?;
        self.server.say(&channel, "Please answer msg-7 in the thread.").await?;
        let in_thread = |message: &Value| message["content"] == "re msg-7";
        self.server.until("the answer in the thread", (Who::Bot, &thread), WATCHDOG, in_thread).await?;
        self.told("a thread was spoken in");

        let direct = self.server.open_direct().await?;
        // This server fails on a reply in private.
        self.speaks(json!({"conversation_id": "{conversation}", "content": "re {marker}"})).await?;
        self.server.say(&direct, "Please answer msg-4.").await?;
        self.is_answered(&direct, "msg-4", None).await?;
        self.told("a direct message was heard, and answered in private");

        daemon.running.kill().await.map_err(|error| error.to_string())?;
        self.server.say(&channel, "Please answer msg-5.").await?;
        self.server.say(&direct, "Please answer msg-6.").await?;
        let mut daemon = self.listening().await?;
        self.is_answered(&channel, "msg-5", None).await?;
        self.is_answered(&direct, "msg-6", None).await?;
        self.told("what was said while the daemon was dead was fetched, and answered");

        for (who, place, markers) in [
            (Who::Person, &channel, &[1, 2, 5][..]),
            (Who::Bot, &thread, &[7]),
            (Who::Person, &direct, &[4, 6]),
        ] {
            self.has_said((who, place), markers).await?;
        }
        self.told("each answer is there once");
        daemon.running.terminate(WATCHDOG).await.map_err(|error| error.to_string())?;
        Ok(())
    }

    /// The last messages of the last request.
    async fn shown(&self) -> Value {
        let asked = self.model.control().chats().await.unwrap_or_default();
        let body: Value =
            asked.last().and_then(|last| serde_json::from_slice(&last.body).ok()).unwrap_or_default();
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        messages[messages.len().saturating_sub(6)..].to_vec().into()
    }

    fn told(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }

    /// From now on the model sends with these arguments.
    async fn speaks(&self, send: Value) -> Result<(), String> {
        self.model.control().load(&script(send)).await.map_err(|error| error.to_string())
    }

    async fn listening(&self) -> Result<Daemon, String> {
        let mut daemon = self.klbrd.clone().start().await.map_err(|error| error.to_string())?;
        daemon.api.ready(WATCHDOG).await.map_err(|error| error.to_string())?;
        let begun = |line: &str| line.contains("session has begun") || line.contains("session is resumed");
        daemon.running.complaint("a session", WATCHDOG, begun).await.map_err(|error| error.to_string())?;
        Ok(daemon)
    }

    /// Waits until the bot has answered a marker, in reply to a message.
    async fn is_answered(&self, channel: &str, marker: &str, to: Option<&str>) -> Result<(), String> {
        let words = format!("re {marker}");
        let answer = self
            .server
            .until(&words, (Who::Person, channel), WATCHDOG, |message| message["content"] == *words)
            .await?;
        if answer["author"]["id"] != *self.server.bot {
            return Err(format!("{words:?} is not the bot's: {answer}"));
        }
        if to.is_some_and(|to| answer["message_reference"]["message_id"] != *to) {
            return Err(format!("{words:?} refers to something else: {answer}"));
        }
        Ok(())
    }

    async fn is_reacted_to(&self, channel: &str, message: &str) -> Result<(), String> {
        let has = |seen: &Value| {
            let reactions = seen["reactions"].as_array();
            let is_it = |reaction: &Value| reaction["emoji"]["name"] == EMOJI;
            seen["id"] == *message && reactions.is_some_and(|all| all.iter().any(is_it))
        };
        self.server.until("a reaction", (Who::Person, channel), WATCHDOG, has).await.map(drop)
    }

    /// Whether a result that the model was given of its look at the history has this in it.
    async fn has_read(&self, words: &str) -> Result<(), String> {
        let asked = self.model.control().chats().await.map_err(|error| error.to_string())?;
        let body: Value =
            asked.last().and_then(|last| serde_json::from_slice(&last.body).ok()).unwrap_or_default();
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let is_it = |message: &Value| {
            let content = message["content"].as_str().unwrap_or_default();
            message["role"] == "tool" && content.contains(words) && content.contains("<message")
        };
        match messages.iter().any(is_it) {
            true => Ok(()),
            false => Err(format!("no result of the history has {words:?}; the last request is {body}")),
        }
    }

    /// Whether the bot has said the answers to these markers there, each once, and nothing else.
    async fn has_said(&self, (who, channel): (Who, &str), markers: &[u32]) -> Result<(), String> {
        let all = self.server.history(who, channel).await?;
        // What a server says of itself has other types than messages (0) and replies (19).
        let is_said = |message: &Value| message["type"] == 0 || message["type"] == 19;
        let is_mine = |message: &&Value| message["author"]["id"] == *self.server.bot && is_said(message);
        let mut said: Vec<&str> =
            all.iter().filter(is_mine).filter_map(|one| one["content"].as_str()).collect();
        said.sort_unstable();
        let wanted: Vec<String> = markers.iter().map(|marker| format!("re msg-{marker}")).collect();
        if said == wanted { Ok(()) } else { Err(format!("there is {said:?} in place of {wanted:?}")) }
    }
}
