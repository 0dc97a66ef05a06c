//! The gateway's connections: HELLO to the last close code.
//!
//! Owns the protocol of one connection, as strictly as Discord documents it. Refuses compression and any encoding but
//! JSON, and keeps no event: sessions do.

pub(super) mod session;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, RawQuery, State as Shared};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use self::session::{Out, Refusal};
use super::payload;
use super::record::What;
use super::snowflake::Snowflake;
use super::socket::Peer;
use super::state::{Double, State};

/// The longest payload that a client may send.
const LONGEST: usize = 4096;

/// How many payloads a client may send in [`COMMANDS_PER`].
const COMMANDS: usize = 120;

const COMMANDS_PER: Duration = Duration::from_secs(60);

/// The bits that are intents.
const INTENTS: u64 = 0x1_ffff | 1 << 20 | 1 << 21 | 1 << 24 | 1 << 25;

/// What the next IDENTIFY or RESUME is answered with, in place of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Invalid session, resumable or not.
    Invalid(bool),
    /// A close code.
    Close(u16),
    /// The connection is cut.
    Cut,
    /// Nothing at all.
    Silence,
}

/// The answers that wait for their turn.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) identify: VecDeque<Answer>,
    pub(super) resume: VecDeque<Answer>,
}

/// Lets a client in, or turns it away.
pub(super) async fn connect(
    Shared(double): Shared<Arc<Double>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    uri: Uri,
    RawQuery(query): RawQuery,
    upgrade: WebSocketUpgrade,
) -> Response {
    let query = query.unwrap_or_default();
    {
        let mut state = double.lock();
        if state.settings.turn_away > 0 {
            state.settings.turn_away -= 1;
            state.record.note(peer.number, What::TurnedAway { status: 503 });
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        let resume_url = uri.path().starts_with("/resume");
        state.record.note(peer.number, What::Connected { resume_url, query: query.clone() });
    }
    upgrade.on_upgrade(move |socket| async move {
        let (queue, out) = mpsc::unbounded_channel();
        let connection = Connection {
            double,
            number: peer.number,
            queue: Some(queue),
            session: None,
            sent: VecDeque::new(),
            beat: Instant::now(),
        };
        connection.serve(socket, out, &query).await;
    })
}

/// How a connection ends.
enum End {
    Close(u16, String),
    Cut,
    Gone(Option<u16>),
}

struct Connection {
    double: Arc<Double>,
    number: u64,
    /// The queue's writing end, until a session has it.
    queue: Option<UnboundedSender<Out>>,
    session: Option<String>,
    /// When the last payloads came.
    sent: VecDeque<Instant>,
    /// When the last heartbeat came.
    beat: Instant,
}

impl Connection {
    async fn serve(mut self, mut socket: WebSocket, mut out: UnboundedReceiver<Out>, query: &str) {
        let end = self.talk(&mut socket, &mut out, query).await;
        // Only a client that says goodbye ends its session.
        let (what, ends) = match &end {
            End::Close(code, why) => (What::Closed { code: *code, why: why.clone() }, false),
            End::Cut => (What::Cut, false),
            End::Gone(code) => (What::Gone { code: *code }, matches!(code, Some(1000 | 1001))),
        };
        {
            let mut state = self.double.lock();
            state.sessions.detach(self.number, ends);
            state.record.note(self.number, what);
        }
        if let End::Close(code, why) = end {
            let frame = CloseFrame { code, reason: why.into() };
            // The client may be gone already, which is what was wanted.
            if socket.send(Message::Close(Some(frame))).await.is_ok() {
                let reply = async { while let Some(Ok(_)) = socket.recv().await {} };
                let _ = tokio::time::timeout(Duration::from_secs(1), reply).await;
            }
        }
    }

    async fn talk(&mut self, socket: &mut WebSocket, out: &mut UnboundedReceiver<Out>, query: &str) -> End {
        for part in query.split('&') {
            match part.split_once('=') {
                Some(("v", version)) if version != "10" => return close(4012, "only version 10 is served"),
                Some(("encoding", encoding)) if encoding != "json" => {
                    return close(4002, "only JSON is spoken");
                }
                Some(("compress", _)) => return close(4002, "nothing is compressed"),
                _ => {}
            }
        }
        let (hello, interval) = {
            let state = self.double.lock();
            (state.settings.hello, state.settings.heartbeat_ms)
        };
        if hello {
            let text =
                json!({"t": null, "s": null, "op": 10, "d": {"heartbeat_interval": interval, "_trace": []}});
            if socket.send(text_of(&text)).await.is_err() {
                return End::Gone(None);
            }
        }
        // Half an interval late is forgiven, as networks are slow.
        let patience = Duration::from_millis(interval + interval / 2 + 250);
        loop {
            let overdue = patience.saturating_sub(self.beat.elapsed());
            tokio::select! {
                next = out.recv() => {
                    let message = match next {
                        Some(Out::Text(text)) => Message::Text(text),
                        Some(Out::Close(code, why)) => return End::Close(code, why),
                        Some(Out::Cut) => return End::Cut,
                        None => return close(4009, "the session timed out"),
                    };
                    if socket.send(message).await.is_err() {
                        return End::Gone(None);
                    }
                }
                came = socket.recv() => {
                    let text = match came {
                        Some(Ok(Message::Text(text))) => text,
                        Some(Ok(Message::Close(frame))) => return End::Gone(frame.map(|frame| frame.code)),
                        Some(Ok(Message::Binary(_))) => return close(4002, "a binary payload"),
                        Some(Ok(_)) => continue,
                        Some(Err(_)) | None => return End::Gone(None),
                    };
                    match self.hear(&text) {
                        Ok(Some(answer)) if socket.send(text_of(&answer)).await.is_err() => {
                            return End::Gone(None);
                        }
                        Ok(_) => {}
                        Err(end) => return end,
                    }
                }
                () = tokio::time::sleep(overdue), if hello => {
                    return close(4000, "no heartbeat came");
                }
            }
        }
    }

    /// One payload of the client's; what is answered at once.
    fn hear(&mut self, text: &str) -> Result<Option<Value>, End> {
        if text.len() > LONGEST {
            return Err(close(4002, "the payload is longer than 4096 bytes"));
        }
        let now = Instant::now();
        self.sent.push_back(now);
        while self.sent.front().is_some_and(|first| now - *first > COMMANDS_PER) {
            self.sent.pop_front();
        }
        if self.sent.len() > COMMANDS {
            return Err(close(4008, "more than 120 payloads in 60 s"));
        }
        let Ok(payload) = serde_json::from_str::<Value>(text) else {
            return Err(close(4002, "the payload is no JSON"));
        };
        let data = &payload["d"];
        let Some(op) = payload["op"].as_u64() else { return Err(close(4002, "the payload has no op")) };
        if self.session.is_none() && !matches!(op, 1 | 2 | 6) {
            return Err(close(4003, "not authenticated"));
        }
        let double = Arc::clone(&self.double);
        let mut state = double.lock();
        match op {
            1 => Ok(self.heartbeat(&mut state, data)),
            2 => self.identify(&mut state, data),
            6 => self.resume(&mut state, data),
            3 | 4 | 8 | 31 | 43 => {
                state.record.note(self.number, What::Sent { op });
                if op == 8 {
                    self.members(&mut state, data);
                }
                Ok(None)
            }
            _ => Err(close(4001, "an unknown op")),
        }
    }

    fn heartbeat(&mut self, state: &mut State, data: &Value) -> Option<Value> {
        self.beat = Instant::now();
        let (sequence, acknowledged) = (data.as_u64(), state.settings.acknowledge);
        state.record.note(self.number, What::Heartbeat { sequence, acknowledged });
        if let Some(sequence) = sequence {
            state.sessions.saw(self.number, sequence);
        }
        acknowledged.then(|| json!({"t": null, "s": null, "op": 11, "d": null}))
    }

    fn is_authentic(&self, data: &Value) -> bool {
        data["token"].as_str().is_some_and(|token| token.trim_start_matches("Bot ") == self.double.token)
    }

    fn invalid(&self, state: &mut State, resumable: bool, why: &str) -> Option<Value> {
        state.record.note(self.number, What::Invalid { resumable, why: why.to_owned() });
        Some(json!({"t": null, "s": null, "op": 9, "d": resumable}))
    }

    /// The answer that was prepared, in place of the true one.
    fn prepared(&self, state: &mut State, answer: Answer) -> Result<Option<Value>, End> {
        match answer {
            Answer::Invalid(resumable) => Ok(self.invalid(state, resumable, "as it was told")),
            Answer::Close(code) => Err(close(code, "as it was told")),
            Answer::Cut => Err(End::Cut),
            Answer::Silence => Ok(None),
        }
    }

    fn identify(&mut self, state: &mut State, data: &Value) -> Result<Option<Value>, End> {
        if self.session.is_some() {
            return Err(close(4005, "already authenticated"));
        }
        if let Some(answer) = state.answers.identify.pop_front() {
            return self.prepared(state, answer);
        }
        if !self.is_authentic(data) {
            return Err(close(4004, "the token is wrong"));
        }
        if !data["properties"].is_object() {
            return Err(close(4002, "IDENTIFY has no properties"));
        }
        let shard = match &data["shard"] {
            Value::Null => [0, 1],
            value => serde_json::from_value(value.clone()).unwrap_or([1, 0]),
        };
        if shard[0] >= shard[1] {
            return Err(close(4010, "there is no such shard"));
        }
        let Some(intents) = data["intents"].as_u64().filter(|bits| bits & !INTENTS == 0) else {
            return Err(close(4013, "some bits are no intents"));
        };
        let flags = state.settings.application_flags;
        let is_closed = |(intent, enabled): (u64, u64)| intents & intent != 0 && flags & enabled == 0;
        let privileged = [
            (session::GUILD_PRESENCES, 1 << 12 | 1 << 13),
            (session::GUILD_MEMBERS, 1 << 14 | 1 << 15),
            (session::MESSAGE_CONTENT, 1 << 18 | 1 << 19),
        ];
        if privileged.into_iter().any(is_closed) {
            return Err(close(4014, "an intent is not enabled for the application"));
        }
        let since = state.sessions.identifies(shard[0]);
        let sooner = |than: u64| since.is_some_and(|since| since < Duration::from_millis(than));
        let too_soon = sooner(5_000);
        if sooner(state.settings.identify_ms) {
            return Ok(self.invalid(state, false, "identified too soon"));
        }
        let Some(queue) = self.queue.take() else { return Err(close(4005, "already authenticated")) };
        let id = state.sessions.begin(self.number, queue, shard, intents);
        self.session = Some(id.clone());
        let session = id.clone();
        state.record.note(self.number, What::Identified { session, shard, intents, too_soon });
        self.ready(state, &id, shard);
        Ok(None)
    }

    fn ready(&self, state: &mut State, id: &str, shard: [u64; 2]) {
        let world = &state.world;
        let is_its = |guild: &Snowflake| (guild.0 >> 22) % shard[1] == shard[0];
        let is_in = |guild: &Snowflake| world.guilds[guild].members.contains_key(&world.bot);
        let guilds: Vec<Snowflake> =
            world.guilds.keys().copied().filter(|guild| is_its(guild) && is_in(guild)).collect();
        let unavailable = guilds.iter().map(|id| json!({"id": id, "unavailable": true}));
        let ready = json!({
            "v": 10, "user": payload::me(world), "session_id": id, "session_type": "normal", "shard": shard,
            "resume_gateway_url": format!("ws://{}/resume", self.double.address),
            "application": {"id": world.application, "flags": state.settings.application_flags},
            "guilds": unavailable.collect::<Vec<Value>>(), "private_channels": [], "relationships": [],
            "presences": [], "user_settings": {}, "guild_join_requests": [], "geo_ordered_rtc_regions": [],
            "auth": {}, "_trace": ["[\"discord-double\",{}]"],
        });
        let keep = state.settings.replay;
        state.sessions.dispatch_to(id, "READY", &ready, keep);
        let wants = state.sessions.get(id).is_some_and(|of| of.state.intents & session::GUILDS != 0);
        for guild in guilds.iter().filter(|_| wants) {
            let data = payload::guild_create(&state.world, &state.world.guilds[guild]);
            state.sessions.dispatch_to(id, "GUILD_CREATE", &data, keep);
        }
    }

    fn resume(&mut self, state: &mut State, data: &Value) -> Result<Option<Value>, End> {
        if self.session.is_some() {
            return Err(close(4005, "already authenticated"));
        }
        if let Some(answer) = state.answers.resume.pop_front() {
            return self.prepared(state, answer);
        }
        if !self.is_authentic(data) {
            return Err(close(4004, "the token is wrong"));
        }
        let (Some(id), Some(after)) = (data["session_id"].as_str(), data["seq"].as_u64()) else {
            return Err(close(4002, "RESUME has no session_id or no seq"));
        };
        let Some(queue) = self.queue.clone() else { return Err(close(4005, "already authenticated")) };
        let life = Duration::from_millis(state.settings.session_ms);
        match state.sessions.resume(id, after, self.number, queue, life) {
            Ok(replayed) => {
                self.queue = None;
                self.session = Some(id.to_owned());
                let session = id.to_owned();
                state.record.note(self.number, What::Resumed { session, after, replayed });
                let keep = state.settings.replay;
                state.sessions.dispatch_to(id, "RESUMED", &json!({"_trace": []}), keep);
                Ok(None)
            }
            Err(Refusal::Unknown) => Ok(self.invalid(state, false, "there is no such session")),
            Err(Refusal::TooOld) => Ok(self.invalid(state, false, "what was missed is no longer kept")),
            Err(Refusal::Sequence) => Err(close(4007, "the sequence was never given out")),
        }
    }

    /// Answers the request for a guild's members.
    fn members(&self, state: &mut State, data: &Value) {
        let guild = serde_json::from_value::<Snowflake>(data["guild_id"].clone());
        let Some(of) = guild.ok().and_then(|guild| state.world.guilds.get(&guild)) else { return };
        let members = of.members.iter().map(|(id, member)| payload::member(&state.world, *id, member));
        let chunk = json!({
            "guild_id": of.id, "members": members.collect::<Vec<Value>>(), "chunk_index": 0,
            "chunk_count": 1, "not_found": [], "nonce": data["nonce"],
        });
        if let Some(id) = &self.session {
            state.sessions.dispatch_to(id, "GUILD_MEMBERS_CHUNK", &chunk, state.settings.replay);
        }
    }
}

fn close(code: u16, why: &str) -> End {
    End::Close(code, why.to_owned())
}

fn text_of(value: &Value) -> Message {
    Message::Text(value.to_string().into())
}
