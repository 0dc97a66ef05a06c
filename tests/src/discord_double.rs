//! A double of Discord, as a process of its own: the gateway and the API on loopback, and the record of what came.
//!
//! Owns a small Discord that behaves as Discord's reference says, as strictly as it says it, and goes wrong where it is
//! told to. Refuses to know klbr: it speaks Discord's wire and nothing else.
//!
//! ```text
//! discord-double [--port N] [--token TOKEN]
//! ```
//!
//! binds loopback (port 0 by default), prints one line and serves until its standard input ends, or SIGTERM or SIGINT:
//!
//! ```json
//! {"ready":"discord-double","pid":4711,"address":"127.0.0.1:40001","gateway":"ws://127.0.0.1:40001","api":"http://127.0.0.1:40001/api/v10","control":"http://127.0.0.1:40001/control","token":"token","bot":"1"}
//! ```
//!
//! A twilight client is pointed at it by `ClientBuilder::proxy(address, true)` with
//! `ratelimiter` as it likes, and by `ConfigBuilder::proxy_url(gateway)`; a resume comes to `gateway/resume`.
//!
//! # Gateway
//!
//! Version 10, JSON, nothing compressed. HELLO, IDENTIFY (token, properties, intents, shard are checked: 4004, 4002,
//! 4013 and 4014, 4010), READY, GUILD_CREATE, dispatches by intent, shard and the bot's sight, heartbeats (none within
//! one and a half intervals: 4000), RESUME (4007, invalid session), op 8. More than 4096 bytes or no JSON: 4002; an
//! unknown op: 4001; anything before IDENTIFY: 4003; a second one: 4005; more than 120 payloads in 60 s: 4008.
//! A session outlives its connection for `session_ms` and keeps `replay` dispatches.
//!
//! # API
//!
//! `/api/v10` with `Authorization: Bot TOKEN`; the routes stand in [`Asked::route`]. Bodies are JSON (no files). Errors
//! have Discord's statuses, codes and form. `enforce_nonce` answers with the message that is there, within `nonce_ms`;
//! a history has no nonces.
//!
//! # Control
//!
//! | request | effect |
//! |---|---|
//! | `POST /control` | does one [`Command`]: the world, the gateway, faults, settings |
//! | `GET /control` | [`Summary`] |
//! | `GET /control/requests?after=N&wait_ms=M` | requests to the API ([`Asked`]) written to after number N |
//! | `GET /control/messages?after=N&wait_ms=M` | messages that the bot made ([`Created`]) |
//! | `GET /control/gateway?after=N&wait_ms=M` | what happened on the gateway ([`Noted`]) |
//! | `GET /control/sessions` | [`SessionState`] of each session |
//! | `GET /control/settings` | [`Settings`] in force |
//! | `GET /control/history?channel=ID` | all messages of a channel, oldest first |
//!
//! A request is in the record when it arrives, and again when it is answered. `wait_ms` (at most 30,000) waits for
//! news where there is none yet. [`Control`] speaks it.

mod client;
mod control;
mod fault;
mod gateway;
mod limit;
mod nonce;
mod payload;
mod permission;
mod record;
mod rest;
mod settings;
mod snowflake;
mod socket;
mod state;
mod world;

use std::ffi::OsString;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::Router;
use axum::routing::any;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

pub use crate::control::ClientError;
pub use client::{Control, DiscordDouble};
pub use control::command::{
    Burst, Command, CutHow, NewBurst, NewChannel, NewGuild, NewRole, NewThread, NewUser, React, Say,
};
pub use fault::{Fault, Make, On, Scope};
pub use gateway::Answer;
pub use gateway::session::{SessionState, Tricks};
pub use record::{Asked, Created, Entry, Noted, Outcome, Summary, What};
pub use settings::{Limit, NonceDeleted, NonceScope, Settings};
pub use snowflake::Snowflake;
pub use world::{ChannelKind, Mentions, Overwrite};

/// How the process is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The port on loopback; 0 for any.
    pub port: u16,
    /// The bot's token, without `Bot `.
    pub token: String,
}

impl Default for Options {
    fn default() -> Options {
        Options { port: 0, token: "double-token".to_owned() }
    }
}

impl Options {
    /// Reads the command line, without the program's name.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Options, String> {
        let mut options = Options::default();
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--port" => {
                    options.port = value.parse().map_err(|_| format!("{name}: {value:?} is no port"))?;
                }
                "--token" => options.token = value,
                _ => return Err(format!("unknown option {name}; known: --port, --token")),
            }
        }
        Ok(options)
    }

    /// The command line that [`Options::parse`] reads back.
    pub fn to_arguments(&self) -> Vec<OsString> {
        vec!["--port".into(), self.port.to_string().into(), "--token".into(), self.token.clone().into()]
    }
}

/// Where a running double is found: the line that it prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// Always `discord-double`.
    pub ready: String,
    /// Its process id.
    pub pid: u32,
    /// `127.0.0.1:port`, as twilight-http takes a proxy.
    pub address: String,
    /// The gateway's URL, as twilight-gateway takes a proxy.
    pub gateway: String,
    /// The API's root.
    pub api: String,
    /// The control's root.
    pub control: String,
    /// The bot's token.
    pub token: String,
    /// The bot's user id, which is the application's too.
    pub bot: Snowflake,
}

/// Serves until it is dropped; `announce` is called once the port is bound.
pub async fn serve(options: Options, announce: impl FnOnce(&Ready) -> io::Result<()>) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
    let address = listener.local_addr()?.to_string();
    let double = Arc::new(state::Double::new(options.token.clone(), address.clone()));
    announce(&Ready {
        ready: "discord-double".into(),
        pid: std::process::id(),
        gateway: format!("ws://{address}"),
        api: format!("http://{address}/api/v10"),
        control: format!("http://{address}/control"),
        address,
        token: options.token,
        bot: double.lock().world.bot,
    })?;
    let router = Router::new()
        .route("/", any(gateway::connect))
        .route("/resume", any(gateway::connect))
        .route("/resume/", any(gateway::connect))
        .merge(control::router())
        .fallback(rest::handle)
        .with_state(double);
    let listener = socket::Cuttable { listener, count: AtomicU64::new(0) };
    axum::serve(listener, router.into_make_service_with_connect_info::<socket::Peer>()).await
}
