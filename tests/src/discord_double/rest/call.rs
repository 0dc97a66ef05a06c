//! Which route a request is for, and what it asks of the users, the guilds and the gateway.
//!
//! Owns the table of routes. Refuses channels and messages, which have modules of their own.

use serde_json::{Value, json};

use super::super::payload;
use super::super::permission;
use super::super::snowflake::Snowflake;
use super::super::state::State;
use super::super::world::Emoji;
use super::{Done, Refused};

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Gateway,
    GatewayBot,
    Me,
    MyGuilds,
    User(Snowflake),
    Application,
    OpenDirect,
    Guild(Snowflake),
    GuildChannels(Snowflake),
    Members(Snowflake),
    Member(Snowflake, Snowflake),
    MyMember(Snowflake),
    Roles(Snowflake),
    Threads(Snowflake),
    Channel(Snowflake),
    Messages(Snowflake),
    Message(Snowflake, Snowflake),
    Create(Snowflake),
    Edit(Snowflake, Snowflake),
    Delete(Snowflake, Snowflake),
    React(Snowflake, Snowflake, Emoji),
    Unreact(Snowflake, Snowflake, Emoji),
    Reactions(Snowflake, Snowflake, Emoji),
    Typing(Snowflake),
    OpenThread(Snowflake, Option<Snowflake>),
    JoinThread(Snowflake),
}

/// The channel or guild that a route's limit is counted for.
pub(super) fn major(path: &str) -> String {
    let mut segments = path.split('/').skip(1);
    match (segments.next(), segments.next()) {
        (Some("channels" | "guilds" | "webhooks"), Some(id)) => id.to_owned(),
        _ => String::new(),
    }
}

fn id(member: &str, text: &str) -> Result<Snowflake, Refused> {
    text.parse().map_err(|_| {
        Refused::form(member, "NUMBER_TYPE_COERCE", &format!("Value \"{text}\" is not snowflake."))
    })
}

fn in_channel(
    channel: &str,
    message: &str,
    call: impl FnOnce(Snowflake, Snowflake) -> Call,
) -> Result<Call, Refused> {
    Ok(call(id("channel_id", channel)?, id("message_id", message)?))
}

fn with_emoji(
    (channel, message, emoji): (&str, &str, &str),
    call: impl FnOnce(Snowflake, Snowflake, Emoji) -> Call,
) -> Result<Call, Refused> {
    let emoji = Emoji::parse(emoji).ok_or_else(|| Refused::new(400, 10014, "Unknown Emoji"))?;
    Ok(call(id("channel_id", channel)?, id("message_id", message)?, emoji))
}

/// Turns `%41` into `A`; what is no such thing stays.
fn decode(text: &str) -> String {
    let (mut rest, mut decoded) = (text.as_bytes(), Vec::with_capacity(text.len()));
    while let [byte, tail @ ..] = rest {
        let pair = tail.get(..2).filter(|_| *byte == b'%').and_then(|pair| std::str::from_utf8(pair).ok());
        let escaped = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        decoded.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

impl Call {
    /// The call and its route; nothing where nothing is served.
    pub(super) fn parse(method: &str, path: &str) -> Option<(Result<Call, Refused>, &'static str)> {
        let segments: Vec<String> = path.split('/').skip(1).map(decode).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let channel = |text, call: fn(Snowflake) -> Call| id("channel_id", text).map(call);
        let guild = |text, call: fn(Snowflake) -> Call| id("guild_id", text).map(call);
        const MESSAGES: &str = "/channels/{channel}/messages";
        const MESSAGE: &str = "/channels/{channel}/messages/{message}";
        const REACTION: &str = "/channels/{channel}/messages/{message}/reactions/{emoji}";
        const MINE: &str = "/channels/{channel}/messages/{message}/reactions/{emoji}/@me";
        Some(match (method, segments.as_slice()) {
            ("GET", ["gateway"]) => (Ok(Call::Gateway), "/gateway"),
            ("GET", ["gateway", "bot"]) => (Ok(Call::GatewayBot), "/gateway/bot"),
            ("GET", ["users", "@me"]) => (Ok(Call::Me), "/users/@me"),
            ("GET", ["users", "@me", "guilds"]) => (Ok(Call::MyGuilds), "/users/@me/guilds"),
            ("GET", ["users", "@me", "guilds", of, "member"]) => {
                (guild(of, Call::MyMember), "/users/@me/guilds/{guild}/member")
            }
            ("POST", ["users", "@me", "channels"]) => (Ok(Call::OpenDirect), "/users/@me/channels"),
            ("GET", ["users", user]) => (id("user_id", user).map(Call::User), "/users/{user}"),
            ("GET", ["applications", "@me"] | ["oauth2", "applications", "@me"]) => {
                (Ok(Call::Application), "/applications/@me")
            }
            ("GET", ["guilds", of]) => (guild(of, Call::Guild), "/guilds/{guild}"),
            ("GET", ["guilds", of, "channels"]) => {
                (guild(of, Call::GuildChannels), "/guilds/{guild}/channels")
            }
            ("GET", ["guilds", of, "members"]) => (guild(of, Call::Members), "/guilds/{guild}/members"),
            ("GET", ["guilds", of, "members", user]) => {
                let call = id("guild_id", of).and_then(|of| Ok(Call::Member(of, id("user_id", user)?)));
                (call, "/guilds/{guild}/members/{user}")
            }
            ("GET", ["guilds", of, "roles"]) => (guild(of, Call::Roles), "/guilds/{guild}/roles"),
            ("GET", ["guilds", of, "threads", "active"]) => {
                (guild(of, Call::Threads), "/guilds/{guild}/threads/active")
            }
            ("GET", ["channels", of]) => (channel(of, Call::Channel), "/channels/{channel}"),
            ("GET", ["channels", of, "messages"]) => (channel(of, Call::Messages), MESSAGES),
            ("POST", ["channels", of, "messages"]) => (channel(of, Call::Create), MESSAGES),
            ("GET", ["channels", of, "messages", at]) => (in_channel(of, at, Call::Message), MESSAGE),
            ("PATCH", ["channels", of, "messages", at]) => (in_channel(of, at, Call::Edit), MESSAGE),
            ("DELETE", ["channels", of, "messages", at]) => (in_channel(of, at, Call::Delete), MESSAGE),
            ("PUT", ["channels", of, "messages", at, "reactions", emoji, "@me"]) => {
                (with_emoji((of, at, emoji), Call::React), MINE)
            }
            ("DELETE", ["channels", of, "messages", at, "reactions", emoji, "@me"]) => {
                (with_emoji((of, at, emoji), Call::Unreact), MINE)
            }
            ("GET", ["channels", of, "messages", at, "reactions", emoji]) => {
                (with_emoji((of, at, emoji), Call::Reactions), REACTION)
            }
            ("POST", ["channels", of, "typing"]) => (channel(of, Call::Typing), "/channels/{channel}/typing"),
            ("POST", ["channels", of, "threads"]) => {
                (channel(of, |of| Call::OpenThread(of, None)), "/channels/{channel}/threads")
            }
            ("POST", ["channels", of, "messages", at, "threads"]) => {
                let call = in_channel(of, at, |of, at| Call::OpenThread(of, Some(at)));
                (call, "/channels/{channel}/messages/{message}/threads")
            }
            ("PUT", ["channels", of, "thread-members", "@me"]) => {
                (channel(of, Call::JoinThread), "/channels/{channel}/thread-members/@me")
            }
            _ => return None,
        })
    }

    /// Does it.
    pub(super) fn perform(
        self,
        state: &mut State,
        address: &str,
        request: u64,
        query: &str,
        body: Value,
    ) -> Result<Done, Refused> {
        let url = format!("ws://{address}");
        match self {
            Call::Gateway => Ok(Done::with(json!({"url": url}))),
            Call::GatewayBot => Ok(Done::with(json!({
                "url": url, "shards": state.settings.shards,
                "session_start_limit":
                    {"total": 1000, "remaining": 999, "reset_after": 86_215_796, "max_concurrency": 1},
            }))),
            Call::Me => Ok(Done::with(payload::me(&state.world))),
            Call::MyGuilds => Ok(Done::with(my_guilds(state))),
            Call::User(user) => match state.world.users.get(&user) {
                Some(user) => Ok(Done::with(payload::user(user))),
                None => Err(Refused::new(404, 10013, "Unknown User")),
            },
            Call::Application => Ok(Done::with(application(state))),
            Call::OpenDirect => super::channel::open_direct(state, &body),
            Call::Guild(_)
            | Call::GuildChannels(_)
            | Call::Members(_)
            | Call::Member(..)
            | Call::MyMember(_)
            | Call::Roles(_)
            | Call::Threads(_) => self.of_guild(state),
            Call::Channel(of) => super::channel::get(state, of),
            Call::OpenThread(of, at) => super::channel::open_thread(state, of, at, &body),
            Call::JoinThread(of) => super::channel::join(state, of),
            Call::Typing(of) => super::channel::typing(state, of),
            Call::Messages(of) => super::message::list(state, of, query),
            Call::Message(of, at) => super::message::get(state, of, at),
            Call::Create(of) => super::message::create(state, of, request, &body),
            Call::Edit(of, at) => super::message::edit(state, of, at, &body),
            Call::Delete(of, at) => super::message::delete(state, of, at),
            Call::React(of, at, emoji) => super::message::react(state, of, at, &emoji, true),
            Call::Unreact(of, at, emoji) => super::message::react(state, of, at, &emoji, false),
            Call::Reactions(of, at, emoji) => super::message::reactions(state, of, at, &emoji),
        }
    }

    fn of_guild(&self, state: &State) -> Result<Done, Refused> {
        let world = &state.world;
        let find = |id: &Snowflake| {
            let guild = world.guilds.get(id).filter(|guild| guild.members.contains_key(&world.bot));
            guild.ok_or_else(|| Refused::new(404, 10004, "Unknown Guild"))
        };
        let visible = |id: &Snowflake, threads: bool| -> Vec<Value> {
            let of = world.channels.values().filter(|channel| {
                channel.guild == Some(*id)
                    && channel.kind.is_thread() == threads
                    && permission::in_channel(world, channel, world.bot) & permission::VIEW_CHANNEL != 0
            });
            of.map(|channel| payload::channel(world, channel)).collect()
        };
        let member = |guild: &Snowflake, user: Snowflake| {
            find(guild)?;
            let member = payload::member_of(world, *guild, user);
            member.map(Done::with).ok_or_else(|| Refused::new(404, 10007, "Unknown Member"))
        };
        match self {
            Call::Guild(id) => find(id).map(|guild| Done::with(payload::guild(guild))),
            // The list that Discord gives here is not what the bot sees but all there is; categories too.
            Call::GuildChannels(id) => {
                find(id)?;
                let all = world
                    .channels
                    .values()
                    .filter(|channel| channel.guild == Some(*id) && !channel.kind.is_thread());
                Ok(Done::with(all.map(|channel| payload::channel(world, channel)).collect()))
            }
            Call::Threads(id) => {
                find(id)?;
                Ok(Done::with(json!({"threads": visible(id, true), "members": []})))
            }
            Call::Members(id) => {
                if state.settings.application_flags & (1 << 14 | 1 << 15) == 0 {
                    return Err(Refused::new(403, 50001, "Missing Access"));
                }
                let members = find(id)?.members.iter();
                Ok(Done::with(members.map(|(id, of)| payload::member(world, *id, of)).collect()))
            }
            Call::Member(id, user) => member(id, *user),
            Call::MyMember(id) => member(id, world.bot),
            Call::Roles(id) => {
                let guild = find(id)?;
                Ok(Done::with(guild.roles.values().map(|role| payload::role(guild, role)).collect()))
            }
            _ => Err(Refused::new(404, 0, "404: Not Found")),
        }
    }
}

fn my_guilds(state: &State) -> Value {
    let world = &state.world;
    let mine = world.guilds.values().filter(|guild| guild.members.contains_key(&world.bot));
    let told = mine.map(|guild| {
        let permissions = permission::in_guild(world, guild.id, world.bot);
        json!({
            "id": guild.id, "name": guild.name, "icon": null, "banner": null, "features": [],
            "owner": guild.owner == world.bot, "permissions": permissions.to_string(),
        })
    });
    told.collect()
}

fn application(state: &State) -> Value {
    let world = &state.world;
    json!({
        "id": world.application, "name": "klbr", "icon": null, "description": "", "summary": "",
        "bot_public": true, "bot_require_code_grant": false, "verify_key": "0".repeat(64),
        "flags": state.settings.application_flags, "team": null, "rpc_origins": [],
        "bot": payload::user_of(world, world.bot), "approximate_guild_count": world.guilds.len(),
    })
}
