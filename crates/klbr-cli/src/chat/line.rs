//! The line mode: a line in is a message, a line out is something that happened. For pipes, scripts, tests.
//!
//! What is printed has no times in it: the same life prints the same lines.

use std::io::{self, Write as _};

use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::session::Session;
use crate::args::Chat;
use crate::error::{CommandError, Outcome};
use crate::view::Kind;

/// How often in a row the model may fail before nobody is kept waiting for it any longer.
const TRIES: u32 = 3;

/// How lines are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Labelled,
    Quiet,
    Json,
}

/// Whether a line waits until the one before has been dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// One after the other: a script says the same every time.
    InTurn,
    /// As they come: typing interrupts.
    AtOnce,
}

/// Talks until there is nothing more to say and everything said has been dealt with.
pub(super) async fn talk(mut session: Session, chat: &Chat, json: bool, pace: Pace) -> Outcome {
    let form = match (json, chat.quiet) {
        (true, _) => Form::Json,
        (false, true) => Form::Quiet,
        (false, false) => Form::Labelled,
    };
    let mut given = chat.message.iter();
    let mut input = chat.message.is_empty().then(|| BufReader::new(tokio::io::stdin()).lines());
    let mut printed = 0;
    let mut said = false;
    loop {
        let ready = session.is_settled() || pace == Pace::AtOnce;
        if ready && let Some(message) = given.next() {
            session.say(message);
            said = true;
            continue;
        }
        if input.is_none() && session.is_settled() {
            return Ok(());
        }
        if session.failures() >= TRIES && input.is_none() {
            return Err(CommandError::remote(
                format!("the model could not be asked {TRIES} times in a row"),
                "what was said is kept and will be answered; klbr doctor says what is wrong with the model's server",
            ));
        }
        let reading = input.is_some() && ready;
        tokio::select! {
            update = session.next() => {
                let stdout = io::stdout();
                let mut stdout = stdout.lock();
                if let (Form::Json, Some(update)) = (form, &update) {
                    writeln!(stdout, "{}", serde_json::to_string(update).expect("an update is plain data"))?;
                }
                for entry in &session.view().entries()[printed..] {
                    match form {
                        Form::Labelled => entry.lines().try_for_each(|line| writeln!(stdout, "{line}"))?,
                        Form::Quiet if entry.kind == Kind::Delivered => writeln!(stdout, "{}", entry.text)?,
                        Form::Quiet | Form::Json => {}
                    }
                }
                printed = session.view().entries().len();
                stdout.flush()?;
                if let (Some(why), false) = (session.lost(), said) {
                    return Err(CommandError::remote(why.to_owned(), "see whether the daemon runs: klbr doctor"));
                }
            }
            line = next_line(&mut input), if reading => match line? {
                Some(line) if line.trim().is_empty() => {}
                Some(line) => {
                    session.say(&line);
                    said = true;
                }
                None => input = None,
            },
            signal = tokio::signal::ctrl_c() => {
                signal?;
                return Ok(());
            }
        }
    }
}

type Input = tokio::io::Lines<BufReader<tokio::io::Stdin>>;

async fn next_line(input: &mut Option<Input>) -> io::Result<Option<String>> {
    match input {
        Some(lines) => lines.next_line().await,
        None => std::future::pending().await,
    }
}
