//! The other side of the control API.
//!
//! Owns the asking and the waiting, with a watchdog on each wait. Refuses to judge what it gets.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::control::Of;
use super::control::command::{
    Burst, Command, CutHow, NewBurst, NewChannel, NewGuild, NewRole, NewThread, NewUser, React, Say,
};
use super::fault::Fault;
use super::gateway::Answer;
use super::gateway::session::{SessionState, Tricks};
use super::record::{Asked, Created, Entry, Noted, Summary};
use super::settings::Settings;
use super::snowflake::Snowflake;
use super::world::Overwrite;
use super::{Options, Ready};
use crate::control::{After, ClientError, Line};
use crate::process::{Program, Running};

type Result<T> = std::result::Result<T, ClientError>;

/// A client of one double's control API.
#[derive(Clone, Debug)]
pub struct Control {
    line: Line,
}

impl Control {
    /// Makes a client for a control API at this root.
    pub fn new(root: impl Into<String>) -> Control {
        Control { line: Line::new(root.into()) }
    }

    /// Does one command; what it answers depends on the command.
    pub async fn command<T: DeserializeOwned>(&self, command: &Command) -> Result<T> {
        let request = self.line.http.post(self.line.url("")).json(command);
        Ok(self.line.send(request).await?.json().await?)
    }

    /// Makes a person.
    pub async fn user(&self, name: &str) -> Result<Snowflake> {
        self.command(&Command::User(NewUser { name: name.to_owned(), ..NewUser::default() })).await
    }

    /// Makes a guild with the bot and these members.
    pub async fn guild(&self, name: &str, members: &[Snowflake]) -> Result<Snowflake> {
        let guild = NewGuild { name: name.to_owned(), owner: None, members: members.to_vec() };
        self.command(&Command::Guild(guild)).await
    }

    /// Makes a text channel.
    pub async fn channel(&self, guild: Snowflake, name: &str) -> Result<Snowflake> {
        let channel = NewChannel { guild, name: name.to_owned(), ..NewChannel::default() };
        self.command(&Command::Channel(channel)).await
    }

    /// Makes a thread in a channel, or under one of its messages.
    pub async fn thread(
        &self,
        channel: Snowflake,
        name: &str,
        message: Option<Snowflake>,
    ) -> Result<Snowflake> {
        let thread = NewThread { channel, name: name.to_owned(), message, owner: None };
        self.command(&Command::Thread(thread)).await
    }

    /// Makes a role that some have.
    pub async fn role(
        &self,
        guild: Snowflake,
        name: &str,
        permissions: u64,
        members: &[Snowflake],
    ) -> Result<Snowflake> {
        let role = NewRole { guild, name: name.to_owned(), permissions, members: members.to_vec() };
        self.command(&Command::Role(role)).await
    }

    /// Opens the direct conversation with someone.
    pub async fn direct(&self, user: Snowflake) -> Result<Snowflake> {
        self.command(&Command::Direct { user }).await
    }

    /// Sets an exception to a channel's permissions.
    pub async fn overwrite(&self, channel: Snowflake, overwrite: Overwrite) -> Result<()> {
        self.command(&Command::Overwrite { channel, overwrite }).await
    }

    /// Takes a channel away.
    pub async fn delete_channel(&self, channel: Snowflake) -> Result<()> {
        self.command(&Command::DeleteChannel { channel }).await
    }

    /// Says words.
    pub async fn say(&self, author: Snowflake, channel: Snowflake, content: &str) -> Result<Snowflake> {
        self.say_with(Say { author, channel, content: content.to_owned(), ..Say::default() }).await
    }

    /// Says anything.
    pub async fn say_with(&self, say: Say) -> Result<Snowflake> {
        self.command(&Command::Say(say)).await
    }

    /// Changes what was said.
    pub async fn edit(&self, channel: Snowflake, message: Snowflake, content: &str) -> Result<()> {
        self.command(&Command::Edit { channel, message, content: content.to_owned() }).await
    }

    /// Takes a message away.
    pub async fn delete(&self, channel: Snowflake, message: Snowflake) -> Result<()> {
        self.command(&Command::Delete { channel, message }).await
    }

    /// Adds a reaction, or takes it back; whether that changed anything.
    pub async fn react(&self, react: React) -> Result<bool> {
        self.command(&Command::React(react)).await
    }

    /// Has someone begin to write.
    pub async fn typing(&self, channel: Snowflake, user: Snowflake) -> Result<()> {
        self.command(&Command::Typing { channel, user }).await
    }

    /// Says much; returns when all is said.
    pub async fn burst(&self, burst: NewBurst) -> Result<Burst> {
        self.command(&Command::Burst(burst)).await
    }

    /// Sets some of the settings: an object with those of [`Settings`].
    pub async fn set(&self, change: Value) -> Result<()> {
        self.command(&Command::Set(change)).await
    }

    /// Adds rules for what goes wrong.
    pub async fn faults(&self, rules: impl IntoIterator<Item = Fault>) -> Result<()> {
        self.command(&Command::Faults(rules.into_iter().collect())).await
    }

    /// Forgets the rules.
    pub async fn clear_faults(&self) -> Result<()> {
        self.command(&Command::ClearFaults).await
    }

    /// Lets one request through a gate, come or to come.
    pub async fn release(&self, gate: &str) -> Result<()> {
        self.command(&Command::Release { gate: gate.to_owned(), times: 1 }).await
    }

    /// Ends all connections of the gateway; how many those were.
    pub async fn cut(&self, how: CutHow) -> Result<usize> {
        self.command(&Command::Cut { shard: None, how }).await
    }

    /// Prepares the answers to the next IDENTIFYs.
    pub async fn on_identify(&self, answers: &[Answer]) -> Result<()> {
        self.command(&Command::OnIdentify(answers.to_vec())).await
    }

    /// Prepares the answers to the next RESUMEs.
    pub async fn on_resume(&self, answers: &[Answer]) -> Result<()> {
        self.command(&Command::OnResume(answers.to_vec())).await
    }

    /// What is done with the next dispatches.
    pub async fn tricks(&self, tricks: Tricks) -> Result<()> {
        self.command(&Command::Tricks(tricks)).await
    }

    /// Writes a text to all connections of the gateway; how many those were.
    pub async fn raw(&self, text: &str) -> Result<usize> {
        self.command(&Command::Raw { shard: None, text: text.to_owned() }).await
    }

    /// Dispatches any event to every session; how many those were.
    pub async fn dispatch(&self, name: &str, data: Value) -> Result<usize> {
        self.command(&Command::Dispatch { name: name.to_owned(), data }).await
    }

    /// Forgets all sessions.
    pub async fn expire(&self) -> Result<()> {
        self.command(&Command::Expire).await
    }

    /// Empties the record.
    pub async fn clear_record(&self) -> Result<()> {
        self.command(&Command::ClearRecord).await
    }

    /// The figures of the record.
    pub async fn summary(&self) -> Result<Summary> {
        self.line.get("", ()).await
    }

    /// All requests to the API, oldest first.
    pub async fn requests(&self) -> Result<Vec<Asked>> {
        self.line.get("requests", After::default()).await
    }

    /// All messages that the bot made, oldest first; deleted ones too.
    pub async fn messages(&self) -> Result<Vec<Created>> {
        self.line.get("messages", After::default()).await
    }

    /// All that happened on the gateway, oldest first.
    pub async fn gateway(&self) -> Result<Vec<Noted>> {
        self.line.get("gateway", After::default()).await
    }

    /// The sessions of the gateway.
    pub async fn sessions(&self) -> Result<Vec<SessionState>> {
        self.line.get("sessions", ()).await
    }

    /// The settings in force.
    pub async fn settings(&self) -> Result<Settings> {
        self.line.get("settings", ()).await
    }

    /// All messages of a channel as they are, oldest first, in Discord's form.
    pub async fn history(&self, channel: Snowflake) -> Result<Vec<Value>> {
        self.line.get("history", Of { channel }).await
    }

    /// Waits for a request for which `wanted` says yes; it is asked again when the request is answered.
    ///
    /// Cancellation loses nothing.
    ///
    /// # Errors
    /// [`ClientError::Watchdog`] names `what` and the last requests.
    pub async fn wait_request(
        &self,
        what: &str,
        watchdog: Duration,
        wanted: impl Fn(&Asked) -> bool,
    ) -> Result<Asked> {
        self.line.wait(("requests", what), 0, watchdog, Entry::seq, wanted).await
    }

    /// Waits for a message of the bot's for which `wanted` says yes. Cancellation loses nothing.
    ///
    /// # Errors
    /// [`ClientError::Watchdog`] names `what` and the last messages.
    pub async fn wait_message(
        &self,
        what: &str,
        watchdog: Duration,
        wanted: impl Fn(&Created) -> bool,
    ) -> Result<Created> {
        self.line.wait(("messages", what), 0, watchdog, Entry::seq, wanted).await
    }

    /// Waits for something on the gateway for which `wanted` says yes. Cancellation loses nothing.
    ///
    /// # Errors
    /// [`ClientError::Watchdog`] names `what` and what happened last.
    pub async fn wait_gateway(
        &self,
        what: &str,
        watchdog: Duration,
        wanted: impl Fn(&Noted) -> bool,
    ) -> Result<Noted> {
        self.line.wait(("gateway", what), 0, watchdog, Entry::seq, wanted).await
    }
}

/// The double as a child process; dropping it kills it.
#[derive(Debug)]
pub struct DiscordDouble {
    ready: Ready,
    control: Control,
    running: Running,
}

impl DiscordDouble {
    /// Starts one on a free port.
    pub async fn start() -> Result<DiscordDouble> {
        DiscordDouble::start_with(&Options::default()).await
    }

    /// Starts one with these options.
    pub async fn start_with(options: &Options) -> Result<DiscordDouble> {
        let program = Program::of_workspace("klbr-tests", "discord-double")?;
        let mut running = program.args(options.to_arguments()).spawn()?;
        let ready: Ready = running.ready(Duration::from_secs(20)).await?;
        let control = Control::new(&ready.control);
        Ok(DiscordDouble { ready, control, running })
    }

    /// Where it is found.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Its control.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Running {
        &mut self.running
    }
}
