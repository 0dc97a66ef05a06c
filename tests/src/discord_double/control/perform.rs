//! What each command does.
//!
//! Owns the checks that a command names what is there. Refuses nothing that a person on Discord could not do either,
//! but asks nobody's permission: the control is the world.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::gateway::session::Out;
use super::super::settings::Settings;
use super::super::snowflake::{Snowflake, now_ms};
use super::super::state::{Change, Double, State};
use super::super::world::{ChannelKind, Emoji, Guild};
use super::command::{Burst, Command, CutHow, NewBurst, NewThread, React, Say};

/// How often a burst with a rate says what is due.
const BEAT: Duration = Duration::from_millis(5);

/// How many messages a burst says before others get their turn at the lock.
const CHUNK: usize = 64;

pub(super) async fn perform(double: &Double, command: Command) -> Result<Value, String> {
    match command {
        Command::Burst(burst) => self::burst(double, &burst).await,
        Command::Release { gate, times } => {
            double.gates.release(&gate, times);
            Ok(Value::Null)
        }
        other => double.lock().obey(other),
    }
}

async fn burst(double: &Double, burst: &NewBurst) -> Result<Value, String> {
    let bot = double.lock().world.bot;
    if burst.authors.is_empty() || burst.channels.is_empty() {
        return Err("a burst needs authors and channels".to_owned());
    }
    let began = Instant::now();
    let (mut ids, mut mentions) = (Vec::with_capacity(burst.count), Vec::new());
    while ids.len() < burst.count {
        let due = match burst.per_second {
            0 => burst.count,
            rate => (began.elapsed().as_secs_f64() * rate as f64) as usize + 1,
        };
        let until = due.min(burst.count).min(ids.len() + CHUNK);
        {
            let mut state = double.lock();
            for n in ids.len()..until {
                let is_mention = burst.mention_every > 0 && (n + 1) % burst.mention_every == 0;
                let mention = if is_mention { format!("<@{bot}> ") } else { String::new() };
                let id = state.say(Say {
                    author: burst.authors[n % burst.authors.len()],
                    channel: burst.channels[n % burst.channels.len()],
                    content: format!("{mention}{} {n}", burst.content),
                    ..Say::default()
                })?;
                ids.push(id);
                if is_mention {
                    mentions.push(id);
                }
            }
        }
        if ids.len() >= due && ids.len() < burst.count {
            tokio::time::sleep(BEAT).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
    let took_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    Ok(json!(Burst { ids, mentions, took_us }))
}

impl State {
    fn obey(&mut self, command: Command) -> Result<Value, String> {
        match command {
            Command::User(user) => {
                let id = self.world.add_user(&user.name, user.global_name, user.bot);
                if let Some(made) = self.world.users.get_mut(&id) {
                    made.accepts_dms = !user.refuses_dms;
                }
                for guild in user.guilds {
                    self.guild(guild)?;
                    self.world.join(guild, id);
                }
                Ok(json!(id))
            }
            Command::Guild(guild) => {
                let id = self.world.add_guild(&guild.name, guild.owner);
                guild.members.into_iter().for_each(|user| self.world.join(id, user));
                self.tell_guild(id);
                Ok(json!(id))
            }
            Command::Channel(channel) => {
                self.guild(channel.guild)?;
                if channel.kind.is_thread() || matches!(channel.kind, ChannelKind::Dm | ChannelKind::Group) {
                    return Err("a guild has no channel of this kind by itself".to_owned());
                }
                let guild = Some(channel.guild);
                let id = self.world.add_channel(channel.kind, guild, channel.parent, &channel.name);
                self.tell_channel(id, Change::Made);
                Ok(json!(id))
            }
            Command::Thread(thread) => self.new_thread(&thread),
            Command::Direct { user } => {
                self.user(user)?;
                Ok(json!(self.world.direct(user).0))
            }
            Command::Join { guild, user } => {
                self.guild(guild)?;
                self.user(user)?;
                self.world.join(guild, user);
                if user == self.world.bot {
                    self.tell_guild(guild);
                }
                Ok(Value::Null)
            }
            Command::Leave { guild, user } => {
                self.guild(guild)?.members.remove(&user);
                if user == self.world.bot {
                    self.tell_out(guild);
                }
                Ok(Value::Null)
            }
            Command::Role(role) => {
                self.guild(role.guild)?;
                let id = self.world.add_role(role.guild, &role.name, role.permissions, &role.members);
                Ok(json!(id))
            }
            Command::Everyone { guild, permissions } => {
                let of = self.guild(guild)?;
                if let Some(role) = of.roles.get_mut(&guild) {
                    role.permissions = permissions;
                }
                Ok(Value::Null)
            }
            Command::Overwrite { channel, overwrite } => {
                let of = self.world.channels.get_mut(&channel).ok_or("there is no such channel")?;
                of.overwrites.retain(|other| other.id != overwrite.id);
                of.overwrites.push(overwrite);
                self.tell_channel(channel, Change::Changed);
                Ok(Value::Null)
            }
            Command::DeleteChannel { channel } => {
                self.channel(channel)?;
                self.tell_channel(channel, Change::Gone);
                self.world
                    .channels
                    .retain(|id, of| *id != channel && (of.parent != Some(channel) || !of.kind.is_thread()));
                Ok(Value::Null)
            }
            Command::Archive { channel, archived, locked } => {
                let of = self.world.channels.get_mut(&channel).and_then(|of| of.thread.as_mut());
                let thread = of.ok_or("there is no such thread")?;
                (thread.archived, thread.locked) = (archived, locked);
                self.tell_channel(channel, Change::Changed);
                Ok(Value::Null)
            }
            Command::Say(say) => self.say(say).map(|id| json!(id)),
            Command::Edit { channel, message, content } => {
                let mentions = self.mentions_in(channel, &content);
                let of = self.world.message_mut(channel, message).ok_or("there is no such message")?;
                (of.content, of.mentions, of.edited_ms) = (content, mentions, Some(now_ms()));
                self.edited(channel, message);
                Ok(Value::Null)
            }
            Command::Delete { channel, message } => match self.delete(channel, message) {
                true => Ok(Value::Null),
                false => Err("there is no such message".to_owned()),
            },
            Command::React(react) => self.new_reaction(&react),
            Command::Typing { channel, user } => {
                self.channel(channel)?;
                self.types(channel, user);
                Ok(Value::Null)
            }
            Command::Set(value) => self.set(&value),
            Command::Faults(rules) => {
                self.faults.rules.extend(rules);
                Ok(Value::Null)
            }
            Command::ClearFaults => {
                self.faults.rules.clear();
                Ok(Value::Null)
            }
            Command::Cut { shard, how } => Ok(json!(self.cut(shard, how))),
            Command::OnIdentify(answers) => {
                self.answers.identify.extend(answers);
                Ok(Value::Null)
            }
            Command::OnResume(answers) => {
                self.answers.resume.extend(answers);
                Ok(Value::Null)
            }
            Command::Tricks(tricks) => {
                self.sessions.tricks = tricks;
                Ok(Value::Null)
            }
            Command::Raw { shard, text } => Ok(json!(self.sessions.write(shard, &Out::Text(text.into())))),
            Command::Dispatch { name, data } => {
                let ids: Vec<String> = self.sessions.states().into_iter().map(|of| of.id).collect();
                for id in &ids {
                    self.sessions.dispatch_to(id, &name, &data, self.settings.replay);
                }
                Ok(json!(ids.len()))
            }
            Command::Expire => {
                self.sessions.expire();
                Ok(Value::Null)
            }
            Command::ClearRecord => {
                self.record.clear();
                Ok(Value::Null)
            }
            Command::Burst(_) | Command::Release { .. } => Err("this takes its time".to_owned()),
        }
    }

    fn guild(&mut self, id: Snowflake) -> Result<&mut Guild, String> {
        self.world.guilds.get_mut(&id).ok_or_else(|| format!("there is no guild {id}"))
    }

    fn user(&self, id: Snowflake) -> Result<(), String> {
        self.world.users.get(&id).map(drop).ok_or_else(|| format!("there is no user {id}"))
    }

    fn channel(&self, id: Snowflake) -> Result<(), String> {
        self.world.channels.get(&id).map(drop).ok_or_else(|| format!("there is no channel {id}"))
    }

    fn new_thread(&mut self, thread: &NewThread) -> Result<Value, String> {
        self.channel(thread.channel)?;
        if let Some(message) = thread.message {
            self.world.message(thread.channel, message).ok_or("there is no such message")?;
        }
        let owner = thread.owner.unwrap_or(self.world.bot);
        let place = (thread.channel, thread.message);
        Ok(json!(self.open_thread(place, ChannelKind::PublicThread, &thread.name, owner)))
    }

    fn new_reaction(&mut self, react: &React) -> Result<Value, String> {
        self.user(react.user)?;
        let emoji = Emoji::parse(&react.emoji).ok_or_else(|| format!("{:?} is no emoji", react.emoji))?;
        let place = (react.channel, react.message);
        self.world.message(place.0, place.1).ok_or("there is no such message")?;
        Ok(json!(self.react(place, react.user, &emoji, !react.removes)))
    }

    fn say(&mut self, say: Say) -> Result<Snowflake, String> {
        self.user(say.author)?;
        self.channel(say.channel)?;
        let mut mentions = self.mentions_in(say.channel, &say.content);
        let replied = match say.reply_to {
            Some(at) => {
                let message = self.world.message(say.channel, at);
                Some(message.ok_or_else(|| format!("there is no message {at}"))?.author)
            }
            None => None,
        };
        for user in say.mentions.into_iter().chain(replied) {
            if !mentions.users.contains(&user) {
                mentions.users.push(user);
            }
        }
        let mut message = self.world.draft(say.channel, say.author, &say.content);
        message.mentions = mentions;
        message.reference = say.reply_to;
        message.attachments = say.attachments;
        message.embeds = say.embeds;
        message.stickers = say.stickers;
        let id = message.id;
        if say.missed {
            self.world.insert(message);
        } else {
            // Discord's own clients give each message a snowflake for a nonce.
            let nonce = json!(id.to_string());
            self.post(message, Some(&nonce));
        }
        Ok(id)
    }

    /// Sets what a change names; a name that is none, or a value that is not fit, changes nothing.
    fn set(&mut self, change: &Value) -> Result<Value, String> {
        let mut settings = json!(self.settings);
        let members = change.as_object().ok_or("settings are an object")?;
        for (name, value) in members {
            settings[name] = value.clone();
        }
        let settings = serde_json::from_value::<Settings>(settings);
        self.settings = settings.map_err(|error| format!("the settings: {error}"))?;
        Ok(Value::Null)
    }

    fn cut(&mut self, shard: Option<u64>, how: CutHow) -> usize {
        let op = |op: u8, data: Value| {
            Out::Text(json!({"t": null, "s": null, "op": op, "d": data}).to_string().into())
        };
        let out = match how {
            CutHow::Cut => Out::Cut,
            CutHow::Close(code) => Out::Close(code, "as it was told".to_owned()),
            CutHow::Reconnect => op(7, Value::Null),
            CutHow::Invalid(resumable) => op(9, resumable.into()),
            CutHow::Heartbeat => op(1, Value::Null),
        };
        self.sessions.write(shard, &out)
    }
}
