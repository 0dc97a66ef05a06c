//! What can go wrong, sorted once: whose turn it is to act, an exit code, and a hint that says what to do.

use std::error::Error as StdError;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use klbr_core::runtime::store::StoreError;
use klbr_server::api::Place;
use klbr_server::config::ConfigError;
use klbr_server::home::TokenError;
use klbr_server::{StartError, whole_story};
use klbr_store::upkeep::UpkeepError;
use klbr_store::{LockError, OpenError};

/// Who can do something about an error; each has its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The command as it was given. Exit code 2.
    User,
    /// What the home or its configuration says. Exit code 3.
    Config,
    /// Another program: the daemon, the model's server. Exit code 4.
    Remote,
    /// This program or the system under it. Exit code 70.
    Internal,
    /// Whoever read the output has gone. Exit code 0: it is no failure.
    Pipe,
}

/// An error as an operator reads it.
#[derive(Debug)]
pub(crate) struct CommandError {
    class: Class,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
    hints: Vec<String>,
    places: Vec<Place>,
}

/// What a verb comes to.
pub(crate) type Outcome<T = ()> = Result<T, CommandError>;

impl CommandError {
    fn new(class: Class, message: impl Into<String>, hint: impl Into<String>) -> Self {
        CommandError {
            class,
            message: message.into(),
            source: None,
            hints: vec![hint.into()],
            places: Vec::new(),
        }
    }

    /// The command cannot be carried out as it was given.
    pub(crate) fn user(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Class::User, message, hint)
    }

    /// The home or its configuration has to change.
    pub(crate) fn config(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Class::Config, message, hint)
    }

    /// Another program failed, or is not there.
    pub(crate) fn remote(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Class::Remote, message, hint)
    }

    /// This program or the system under it failed.
    pub(crate) fn internal(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Class::Internal, message, hint)
    }

    /// What is underneath.
    #[must_use]
    pub(crate) fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Where something is wrong, line by line.
    #[must_use]
    pub(crate) fn at(mut self, places: Vec<Place>) -> Self {
        self.places = places;
        self
    }

    /// The message and what is underneath, in one line.
    pub(crate) fn message(&self) -> String {
        let mut text = self.message.clone();
        let mut source = self.source.as_deref().map(|source| source as &dyn StdError);
        while let Some(error) = source {
            let words = error.to_string();
            if !text.ends_with(&words) {
                text.push_str(": ");
                text.push_str(&words);
            }
            source = error.source();
        }
        crate::text::clean_line(&text)
    }

    /// What to do about it.
    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Tells the operator or, as JSON, a program; on the error stream. Gives the exit code.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        if self.class == Class::Pipe {
            return ExitCode::SUCCESS;
        }
        let mut stderr = io::stderr().lock();
        // There is nowhere left to say that the error stream is closed.
        if json {
            let error = serde_json::json!({
                "class": self.class.as_str(), "message": self.message(), "hints": self.hints,
                "places": self.places,
            });
            let _ = writeln!(stderr, "{}", serde_json::json!({ "error": error }));
        } else {
            let _ = writeln!(stderr, "error: {}", self.message());
            for place in &self.places {
                let _ = writeln!(stderr, "  {}", crate::text::clean_line(&told(place)));
            }
            for hint in &self.hints {
                let _ = writeln!(stderr, "hint: {hint}");
            }
        }
        self.class.exit_code()
    }
}

/// A place as people read it.
fn told(place: &Place) -> String {
    let Place { file, line, message, hint } = place;
    let line = if *line == 0 { String::new() } else { format!(":{line}") };
    let hint = hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{file}{line}: {message}{hint}")
}

impl Class {
    fn as_str(self) -> &'static str {
        match self {
            Class::Pipe => "pipe",
            Class::User => "user",
            Class::Config => "config",
            Class::Remote => "remote",
            Class::Internal => "internal",
        }
    }

    fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Class::Pipe => 0,
            Class::User => 2,
            Class::Config => 3,
            Class::Remote => 4,
            Class::Internal => 70,
        })
    }
}

/// The terminal, or a pipe behind the output.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        let class = if error.kind() == io::ErrorKind::BrokenPipe { Class::Pipe } else { Class::Internal };
        let hint = "check the terminal, the disk's free space and the permissions";
        CommandError::new(class, "the system refused", hint).because(error)
    }
}

/// A daemon that did not start.
pub(crate) fn start(error: &StartError) -> CommandError {
    let class = match error {
        StartError::Home { .. }
        | StartError::Workspace { .. }
        | StartError::Code { .. }
        | StartError::Lock(_)
        | StartError::Token(_)
        | StartError::NotLoopback { .. }
        | StartError::Listen { .. }
        | StartError::Model(_)
        | StartError::Discord(_)
        | StartError::Store(_) => Class::Config,
        StartError::Agent(_) | StartError::Ended | StartError::Stopped => Class::Internal,
    };
    let hint = error.hint().unwrap_or("klbr doctor says what is wrong with the home");
    CommandError::new(class, whole_story(error), hint)
}

impl From<StartError> for CommandError {
    fn from(error: StartError) -> Self {
        start(&error)
    }
}

impl From<LockError> for CommandError {
    fn from(error: LockError) -> Self {
        let hint = match &error {
            LockError::Held { .. } => "stop it with klbr stop, or name another home with --home",
            LockError::Unavailable { .. } => {
                "the folder has to be yours and writable; klbr doctor says what is wrong"
            }
        };
        CommandError::config(error.to_string(), hint).because(error)
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        let hint = match &error {
            ConfigError::UnknownKey { .. } => {
                "klbr init in an empty folder writes a klbr.toml with every setting"
            }
            ConfigError::Unreadable { .. } => "make the file readable for you",
            ConfigError::Syntax { .. } | ConfigError::Value { .. } | ConfigError::Model(_) => {
                "correct the setting; nothing was changed"
            }
        };
        CommandError::config(error.to_string(), hint).because(error)
    }
}

impl From<TokenError> for CommandError {
    fn from(error: TokenError) -> Self {
        let hint = "make the file readable for you, or delete it: a new token is made then";
        CommandError::config(error.to_string(), hint).because(error)
    }
}

/// What to do about a database that is damaged and stands where it was.
const DAMAGED: &str =
    "klbr store restore BACKUP puts a backup in its place; klbr store check says what is damaged";

impl From<OpenError> for CommandError {
    fn from(error: OpenError) -> Self {
        let hint = match &error {
            OpenError::Damaged { .. } | OpenError::SetAside { .. } => {
                "klbr store restore BACKUP puts a backup in its place"
            }
            OpenError::Unsound { .. } => DAMAGED,
            OpenError::TooNew { .. } => "use the newer klbr",
            OpenError::TooOld { .. } => "klbr run once brings it up to date, after copying it beside itself",
            OpenError::Foreign { .. } => "name another home with --home",
            OpenError::Migration { .. } => "please report this; the database is as it was",
            OpenError::Unavailable { .. } => "check the file's permissions and the disk's free space",
        };
        CommandError::config(error.to_string(), hint).because(error)
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let (class, hint) = match &error {
            StoreError::Damaged(_) => (Class::Config, DAMAGED),
            StoreError::Conflict { .. }
            | StoreError::Contradiction(_)
            | StoreError::Missing(_)
            | StoreError::Unavailable(_) => {
                (Class::Internal, "klbr store check says whether the database is whole")
            }
        };
        CommandError::new(class, "the database could not be read", hint).because(error)
    }
}

/// A database that was opened and then could not be read.
pub(crate) fn unread(database: &Path, error: StoreError) -> CommandError {
    let message = format!("{} could not be read", database.display());
    CommandError { message, ..error.into() }
}

impl From<UpkeepError> for CommandError {
    fn from(error: UpkeepError) -> Self {
        match error {
            UpkeepError::Open(error) => error.into(),
            UpkeepError::Store(error) => error.into(),
            UpkeepError::Exists { .. } => CommandError::user(
                error.to_string(),
                "name a file that is not there yet; nothing was written",
            ),
            UpkeepError::Unfit { .. } => {
                CommandError::user(error.to_string(), "name a whole backup; nothing was changed")
            }
            UpkeepError::Write { .. } => {
                let hint = "check the folder's permissions and the disk's free space";
                CommandError::internal(error.to_string(), hint).because(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_its_causes() {
        let error = CommandError::config("the file \"a\" cannot be read", "make it readable")
            .because(io::Error::other("permission\ndenied\x1b[2J"));
        assert_eq!(error.message(), "the file \"a\" cannot be read: permission ⏎ denied␛[2J");
        assert_eq!(error.class, Class::Config);
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let error = CommandError::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(error.class, Class::Pipe);
    }
}
