//! A real third-party server that speaks Discord's API (YEPCord), where the shared folder that starts one is there, and a
//! person on it.
//!
//! Owns the server's life and what a person does there, over the server's own API. It tells no guilds after READY, knows
//! no intents, replays nothing on a resume, limits no rates, and lets only whoever opened a thread into it: that is not
//! asked of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::{http, shared};

/// How often something is looked for.
const PACE: Duration = Duration::from_millis(50);

/// The bits of an administrator's permissions.
const ADMINISTRATOR: u64 = 8;

/// The folder with the script that starts a server.
pub fn folder() -> Option<PathBuf> {
    shared::folder("real/discord/yepcord")
}

/// Who asks the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The person.
    Person,
    /// The bot, beside the adapter.
    Bot,
}

/// A server with a person, a guild of that person's, and a bot in it. It ends with the run.
#[derive(Debug)]
pub struct Yepcord {
    /// The API's root, as a bot takes it.
    pub api: String,
    /// The gateway's URL.
    pub gateway: String,
    /// The bot's token.
    pub token: String,
    /// The bot's id.
    pub bot: String,
    /// The guild's first text channel.
    pub channel: String,
    person: Person,
    _running: shared::Server,
}

#[derive(Clone, Debug)]
struct Person {
    root: String,
    token: String,
    http: reqwest::Client,
}

impl Yepcord {
    /// Starts a server on `port`, and makes everyone.
    ///
    /// What the script installs is kept in `KLBR_YEPCORD_DIR`, else below `target/`.
    ///
    /// # Errors
    ///
    /// Says what the script or the server did not manage.
    pub async fn start(folder: &Path, port: u16) -> Result<Yepcord, String> {
        let running = shared::Server::start(folder, ("yepcord", "KLBR_YEPCORD_DIR"), [port.to_string()])?;
        let root = format!("http://127.0.0.1:{port}/api/v9");
        let mut person = Person { root, token: String::new(), http: http::client() };
        // The server keeps its database from run to run.
        let name = format!("ada{}", fastrand::u32(..));
        let account = json!({
            "username": name, "email": format!("{name}@example.test"), "password": "correct horse",
            "date_of_birth": "1990-01-01",
        });
        person.token = text(&person.ask(Method::POST, "/auth/register", Some(&account)).await?, "token")?;
        let guild = person.ask(Method::POST, "/guilds", Some(&json!({"name": "house"}))).await?;
        let is_text = |channel: &&Value| channel["type"] == 0;
        let channels = guild["channels"].as_array();
        let channel = channels.and_then(|all| all.iter().find(is_text)).ok_or("a guild without a channel")?;
        let (channel, guild) = (text(channel, "id")?, text(&guild, "id")?);
        let application = person.ask(Method::POST, "/applications", Some(&json!({"name": "klbr"}))).await?;
        let bot = text(&application, "id")?;
        let token = person.ask(Method::POST, &format!("/applications/{bot}/bot/reset"), None).await?;
        let join = json!({"authorize": true, "permissions": ADMINISTRATOR, "guild_id": guild});
        let path = format!("/oauth2/authorize?client_id={bot}&scope=bot");
        person.ask(Method::POST, &path, Some(&join)).await?;
        Ok(Yepcord {
            api: format!("http://127.0.0.1:{port}/api/v10"),
            gateway: format!("ws://127.0.0.1:{port}/gateway"),
            token: text(&token, "token")?,
            bot,
            channel,
            person,
            _running: running,
        })
    }

    /// The person says something in a channel; the message's id.
    ///
    /// # Errors
    /// Fails when the server refuses.
    pub async fn say(&self, channel: &str, words: &str) -> Result<String, String> {
        let path = format!("/channels/{channel}/messages");
        text(&self.person.ask(Method::POST, &path, Some(&json!({"content": words}))).await?, "id")
    }

    /// The person changes a message.
    ///
    /// # Errors
    /// Fails when the server refuses.
    pub async fn edit(&self, channel: &str, message: &str, words: &str) -> Result<(), String> {
        let path = format!("/channels/{channel}/messages/{message}");
        self.person.ask(Method::PATCH, &path, Some(&json!({"content": words}))).await.map(drop)
    }

    /// A thread is opened under a message; its id.
    ///
    /// # Errors
    /// Fails when the server refuses.
    pub async fn open_thread(
        &self,
        who: Who,
        channel: &str,
        message: &str,
        name: &str,
    ) -> Result<String, String> {
        let path = format!("/channels/{channel}/messages/{message}/threads");
        let thread = json!({"name": name, "auto_archive_duration": 60});
        text(&self.asks(who).ask(Method::POST, &path, Some(&thread)).await?, "id")
    }

    fn asks(&self, who: Who) -> Person {
        let token = match who {
            Who::Person => self.person.token.clone(),
            Who::Bot => format!("Bot {}", self.token),
        };
        Person { token, ..self.person.clone() }
    }

    /// The person opens the direct conversation with the bot; its id.
    ///
    /// # Errors
    /// Fails when the server refuses.
    pub async fn open_direct(&self) -> Result<String, String> {
        let with = json!({"recipients": [self.bot]});
        text(&self.person.ask(Method::POST, "/users/@me/channels", Some(&with)).await?, "id")
    }

    /// All that was said in a channel, newest first.
    ///
    /// # Errors
    /// Fails when the server refuses.
    pub async fn history(&self, who: Who, channel: &str) -> Result<Vec<Value>, String> {
        let path = format!("/channels/{channel}/messages?limit=100");
        let all = self.asks(who).ask(Method::GET, &path, None).await?;
        all.as_array().cloned().ok_or_else(|| format!("no messages: {all}"))
    }

    /// Waits for a message in a channel that is wanted, and that this one may read.
    ///
    /// # Errors
    /// Says what is there instead when the watchdog rings.
    pub async fn until(
        &self,
        what: &str,
        (who, channel): (Who, &str),
        watchdog: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value, String> {
        let begun = Instant::now();
        loop {
            let all = self.history(who, channel).await?;
            if let Some(message) = all.iter().find(|message| wanted(message)) {
                return Ok(message.clone());
            }
            if begun.elapsed() > watchdog {
                let said: Vec<&Value> = all.iter().map(|message| &message["content"]).collect();
                return Err(format!("{what} did not come within {watchdog:?}; there is {said:?}"));
            }
            tokio::time::sleep(PACE).await;
        }
    }
}

impl Person {
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let told = format!("{method} {path}");
        let mut request = self.http.request(method, format!("{}{path}", self.root));
        if !self.token.is_empty() {
            request = request.header("authorization", &self.token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(|error| format!("{told}: {error}"))?;
        let status = answer.status();
        let text = answer.text().await.map_err(|error| format!("{told}: {error}"))?;
        if !status.is_success() {
            return Err(format!("{told}: {status} {text}"));
        }
        Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
    }
}

fn text(value: &Value, member: &str) -> Result<String, String> {
    value[member].as_str().map(str::to_owned).ok_or_else(|| format!("no {member} in {value}"))
}
