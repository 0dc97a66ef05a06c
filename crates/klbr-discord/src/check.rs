//! Whether Discord lets the bot do what the adapter needs, without starting an agent.
//!
//! Owns the report: each finding says what is wrong and what to enable where. Refuses to connect to the gateway, which
//! would use up a session.

mod permissions;

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::http::{Failure, Http};
use crate::id::{ChannelId, UserId};
use crate::payload::{Kind, Read};
use crate::settings::Settings;

/// How long the whole check may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The flags of an application that may read what messages say: verified, and not verified yet.
const MESSAGE_CONTENT: u64 = 1 << 18 | 1 << 19;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As it should be.
    Good,
    /// Something will not work as one might expect.
    Warning,
    /// The adapter cannot work, or not where it was told to.
    Error,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was found. May quote names that people chose.
    pub what: String,
    /// What to enable where, for what is not as it should be.
    pub advice: Option<String>,
}

/// What a check has found, in the order in which it looked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The worst of its findings.
    pub fn worst(&self) -> Severity {
        self.findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Good)
    }

    fn good(&mut self, what: impl Into<String>) {
        self.findings.push(Finding { severity: Severity::Good, what: what.into(), advice: None });
    }

    fn bad(&mut self, severity: Severity, what: impl Into<String>, advice: impl Into<String>) {
        self.findings.push(Finding { severity, what: what.into(), advice: Some(advice.into()) });
    }

    fn failed(&mut self, what: &str, failure: &Failure) {
        let advice = match failure {
            Failure::Refused { .. } => "see what Discord says",
            _ => "check the network and KLBR_DISCORD_API_URL, and try again",
        };
        self.bad(Severity::Error, format!("{what}: {failure}"), advice);
    }
}

/// Asks Discord about the token, the application's intents, and the listed channels with the bot's permissions there.
///
/// It never fails: what cannot be found out is a finding. It takes a minute at most.
pub async fn check(settings: &Settings) -> Report {
    let mut report = Report::default();
    let deadline = Instant::now() + PATIENCE;
    let http = match Http::new(settings) {
        Ok(http) => http,
        Err(error) => {
            report.bad(Severity::Error, error.to_string(), "install the system's certificates");
            return report;
        }
    };
    let me = match http.me(deadline).await {
        Ok(Some(me)) => {
            report.good(format!("token: valid, the bot is {:?} ({})", me.name, me.id));
            me.id
        }
        Ok(None) => {
            let what = "token: Discord's answer about the bot cannot be read";
            report.bad(Severity::Error, what, "check KLBR_DISCORD_API_URL");
            return report;
        }
        Err(Failure::Refused { status: 401, .. }) => {
            report.bad(Severity::Error, "token: not valid", crate::gateway::Fatal::Token.to_string());
            return report;
        }
        Err(failure) => {
            report.failed("token", &failure);
            return report;
        }
    };
    match http.application(deadline).await {
        Ok(application) => intents(&mut report, &application),
        Err(failure) => report.failed("intents", &failure),
    }
    match http.gateway(deadline).await {
        Ok(gateway) => sessions(&mut report, &gateway),
        Err(failure) => report.failed("gateway", &failure),
    }
    if settings.channels.is_empty() {
        report.good("channels: none is listed, so every channel that the bot can see is heard");
    }
    for channel in &settings.channels {
        look_at(&mut report, &http, me, *channel, deadline).await;
    }
    report
}

fn intents(report: &mut Report, application: &Value) {
    match application.number("flags") {
        Some(flags) if flags & MESSAGE_CONTENT != 0 => report.good("intents: message content is allowed"),
        Some(_) => report.bad(
            Severity::Error,
            "intents: message content is not allowed",
            crate::gateway::Fatal::Intents.to_string(),
        ),
        None => report.bad(
            Severity::Warning,
            "intents: Discord does not say whether message content is allowed",
            "look in the developer portal: your application → Bot → Privileged Gateway Intents",
        ),
    }
    report.good(
        "intents: guilds, guild messages, direct messages and reactions need no permission of Discord's",
    );
}

fn sessions(report: &mut Report, gateway: &Value) {
    let shards = gateway.number("shards").unwrap_or(1);
    let left = gateway.object("session_start_limit").and_then(|limit| limit.number("remaining"));
    match left {
        Some(0) => report.bad(
            Severity::Warning,
            "gateway: no more sessions may begin until Discord's daily reset",
            "wait for it; something has made the bot connect far too often",
        ),
        Some(left) => report.good(format!("gateway: {shards} shard(s), {left} sessions may begin today")),
        None => report.good(format!("gateway: {shards} shard(s)")),
    }
}

/// Whether a listed channel is there, and what the bot may do in it.
async fn look_at(report: &mut Report, http: &Http, me: UserId, channel: ChannelId, deadline: Instant) {
    let (told, body) = match http.channel(channel, deadline).await {
        Ok((Some(told), body)) => (told, body),
        Ok((None, _)) => {
            let what = format!("channel {channel}: Discord's answer cannot be read");
            return report.bad(Severity::Error, what, "try again");
        }
        Err(failure @ Failure::Refused { .. }) => {
            let what = format!("channel {channel}: {failure}");
            let advice = "check its id in KLBR_DISCORD_CHANNEL_IDS (Discord → Settings → Advanced → Developer Mode, then \
                          Copy Channel ID); invite the bot to its server; give the bot's role View Channel there";
            return report.bad(Severity::Error, what, advice);
        }
        Err(failure) => return report.failed(&format!("channel {channel}"), &failure),
    };
    let name = format!("channel {channel} ({:?})", told.name.as_deref().unwrap_or("unnamed"));
    match (told.kind, told.guild) {
        (Kind::Mute, _) => {
            let advice = "list its channels or threads instead";
            report.bad(Severity::Error, format!("{name}: holds no messages itself"), advice);
        }
        (_, None) => report.good(format!("{name}: a direct message")),
        (kind, Some(guild)) => {
            // A thread has the overwrites of the channel that it belongs to.
            let overwrites = match told.parent.filter(|_| kind == Kind::Thread) {
                Some(parent) => http.channel(parent, deadline).await.map(|(_, parent)| parent),
                None => Ok(body),
            };
            let found = async {
                let overwrites = overwrites?;
                let guild_body = http.guild(guild, deadline).await?;
                let member = http.member(guild, me, deadline).await?;
                Ok::<_, Failure>(permissions::missing(guild, me, &guild_body, &member, &overwrites, kind))
            };
            match found.await {
                Ok(missing) if missing.is_empty() => {
                    report.good(format!("{name}: may view, send, read and react"))
                }
                Ok(missing) => report.bad(
                    Severity::Error,
                    format!("{name}: the bot lacks {}", missing.join(", ")),
                    format!(
                        "in Discord: Edit Channel → Permissions → the bot's role → allow {}",
                        missing.join(", ")
                    ),
                ),
                Err(failure) => report.failed(&name, &failure),
            }
        }
    }
}
