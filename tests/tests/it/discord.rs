//! The double of Discord, driven by real twilight clients: what these see is what an adapter sees.

#[path = "discord/faults.rs"]
mod faults;
#[path = "discord/gateway.rs"]
mod gateway;
#[path = "discord/limits.rs"]
mod limits;
#[path = "discord/load.rs"]
mod load;
#[path = "discord/messages.rs"]
mod messages;
#[path = "discord/sessions.rs"]
mod sessions;
#[path = "discord/world.rs"]
mod world;

use std::time::Duration;

use klbr_tests::discord_double::{Asked, Control, DiscordDouble, Noted, Snowflake, What};
use serde_json::Value;
use twilight_gateway::queue::InMemoryQueue;
use twilight_gateway::{
    ConfigBuilder, Event, EventTypeFlags, Intents, Message, Shard, ShardId, ShardState, StreamExt as _,
};
use twilight_http::Client;
use twilight_model::id::Id;
use twilight_model::id::marker::{ChannelMarker, MessageMarker};

/// How long anything may take before it counts as lost.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(20);

/// The route of most tests.
pub(crate) const MESSAGES: &str = "/channels/{channel}/messages";

/// A double with a guild of one channel and one person.
pub(crate) struct Scene {
    pub(crate) double: DiscordDouble,
    pub(crate) person: Snowflake,
    pub(crate) guild: Snowflake,
    pub(crate) channel: Snowflake,
}

impl Scene {
    pub(crate) async fn new() -> Scene {
        let double = DiscordDouble::start().await.unwrap();
        let control = double.control();
        let person = control.user("ada").await.unwrap();
        let guild = control.guild("house", &[person]).await.unwrap();
        let channel = control.channel(guild, "general").await.unwrap();
        Scene { double, person, guild, channel }
    }

    pub(crate) fn control(&self) -> &Control {
        self.double.control()
    }

    pub(crate) fn bot(&self) -> Snowflake {
        self.double.ready().bot
    }

    pub(crate) async fn say(&self, content: &str) -> Snowflake {
        self.control().say(self.person, self.channel, content).await.unwrap()
    }

    /// A twilight client of the API, without a limiter of its own.
    pub(crate) fn http(&self) -> Client {
        let ready = self.double.ready();
        Client::builder()
            .proxy(ready.address.clone(), true)
            .ratelimiter(None)
            .token(ready.token.clone())
            .build()
    }

    /// Settings for a twilight shard with all intents, which waits for nobody before it identifies.
    pub(crate) fn config(&self) -> ConfigBuilder {
        let ready = self.double.ready();
        let at_once = InMemoryQueue::new(0, 0, Duration::ZERO, 0);
        let config = ConfigBuilder::new(ready.token.clone(), Intents::all()).queue(at_once);
        config.proxy_url(ready.gateway.clone())
    }

    pub(crate) fn shard(&self) -> Shard {
        Shard::with_config(ShardId::ONE, self.config().build())
    }

    /// A shard that has its session.
    pub(crate) async fn identified(&self) -> Shard {
        let mut shard = self.shard();
        until(&mut shard, |event| matches!(event, Event::GuildCreate(_))).await;
        shard
    }

    /// Sends a body as it is, in the way that an adapter must to enforce a nonce.
    pub(crate) async fn post(&self, http: &Client, body: Value) -> Result<Value, twilight_http::Error> {
        let body = body.to_string();
        let request = http.create_message(channel_id(self.channel)).payload_json(body.as_bytes());
        let response = request.await?;
        Ok(serde_json::from_slice(&response.bytes().await.unwrap()).unwrap())
    }

    pub(crate) async fn request(&self, what: &str, wanted: impl Fn(&Asked) -> bool) -> Asked {
        self.control().wait_request(what, WATCHDOG, wanted).await.unwrap()
    }

    pub(crate) async fn happened(&self, what: &str, wanted: impl Fn(&What) -> bool) -> Noted {
        self.control().wait_gateway(what, WATCHDOG, |noted| wanted(&noted.what)).await.unwrap()
    }
}

pub(crate) fn channel_id(id: Snowflake) -> Id<ChannelMarker> {
    Id::new(id.0)
}

pub(crate) fn message_id(id: Snowflake) -> Id<MessageMarker> {
    Id::new(id.0)
}

/// The next event that is wanted; errors of the shard and other events are passed over.
pub(crate) async fn until(shard: &mut Shard, wanted: impl Fn(&Event) -> bool) -> Event {
    let search = async {
        loop {
            match shard.next_event(EventTypeFlags::all()).await {
                Some(Ok(event)) if wanted(&event) => return event,
                Some(_) => {}
                None => panic!("the shard ended: {:?}", shard.state()),
            }
        }
    };
    tokio::time::timeout(WATCHDOG, search).await.expect("the event comes")
}

/// The words of the next message.
pub(crate) async fn heard(shard: &mut Shard) -> String {
    match until(shard, |event| matches!(event, Event::MessageCreate(_))).await {
        Event::MessageCreate(message) => message.content.clone(),
        _ => unreachable!("nothing else was wanted"),
    }
}

/// The next text of the wire that is wanted.
pub(crate) async fn text(shard: &mut Shard, wanted: impl Fn(&Value) -> bool) -> Value {
    let search = async {
        loop {
            if let Some(Ok(Message::Text(text))) = futures_util::StreamExt::next(shard).await {
                let Ok(value) = serde_json::from_str(&text) else { continue };
                if wanted(&value) {
                    return value;
                }
            }
        }
    };
    tokio::time::timeout(WATCHDOG, search).await.expect("the text comes")
}

/// Polls a shard to its end.
pub(crate) async fn end(shard: &mut Shard) -> ShardState {
    let search = async { while futures_util::StreamExt::next(shard).await.is_some() {} };
    tokio::time::timeout(WATCHDOG, search).await.expect("the shard ends");
    shard.state()
}

/// Discord's status and code in an error of twilight-http.
pub(crate) fn refusal(error: &twilight_http::Error) -> (u16, u64) {
    use twilight_http::api_error::ApiError;
    use twilight_http::error::ErrorType;
    match error.kind() {
        ErrorType::Response { error: ApiError::General(error), status, .. } => (status.get(), error.code),
        other => panic!("no refusal of Discord's: {other:?}"),
    }
}
