//! A process of its own for parsing hard files, since a parser that hangs within one step of error recovery can be
//! ended in no other way.
//!
//! The host program lends its executable: [`Isolation`] names a command of it that calls [`serve`]. A request is a
//! frame with the language, the bounds and the text; the answer a frame with the symbols. When the answer does not come
//! within the time bound and a grace, the process is killed, and the next request starts another.

use crate::{
    extract::Extractor,
    index::Compact,
    language::Language,
    parse::{Cancel, ExtractError, Limits},
    raw::{Problem, Raws},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    ffi::OsString,
    io::{self, Read, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

/// How long beyond its bound a process may take to say so itself.
const GRACE: Duration = Duration::from_millis(500);

/// The largest frame accepted, against a process that answers nonsense.
const MAX_FRAME: u64 = 1 << 31;

/// How to start a process that parses, and for which files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// A program that calls [`serve`] on its standard input and output.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Texts of at least so many bytes are parsed there; 0 for all.
    pub above_bytes: usize,
}

#[derive(Serialize, Deserialize)]
struct Request<'a> {
    language: Language,
    max_bytes: u64,
    max_millis: u64,
    text: &'a [u8],
}

#[derive(Serialize, Deserialize)]
enum Response {
    Symbols(Compact, Vec<Problem>),
    TimedOut,
    TooLarge(u64),
    Binary(u64),
}

/// Answers requests until the input ends. A host program calls it from the command that [`Isolation`] names, with its
/// standard input and output, and writes nothing else there.
///
/// # Errors
/// What reading or writing fails with, or a request that is none.
pub fn serve(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut frame = Vec::new();
    while read_frame(&mut input, &mut frame)? {
        let request: Request<'_> = postcard::from_bytes(&frame).map_err(io::Error::other)?;
        let limits = Limits {
            max_bytes: request.max_bytes as usize,
            max_time: Duration::from_millis(request.max_millis),
        };
        let response = match Extractor::new(limits).raws(request.language, request.text) {
            Ok(raws) => Response::Symbols(Compact::new(request.text, &raws), raws.problems),
            Err(ExtractError::TooLarge { bytes, .. }) => Response::TooLarge(bytes),
            Err(ExtractError::Binary { at }) => Response::Binary(at as u64),
            Err(_) => Response::TimedOut,
        };
        write_frame(&mut output, &response)?;
    }
    Ok(())
}

fn write_frame(output: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let body = postcard::to_stdvec(message).map_err(io::Error::other)?;
    output.write_all(&(body.len() as u64).to_le_bytes())?;
    output.write_all(&body)?;
    output.flush()
}

/// Reads the next frame; `false` at the end of the input.
fn read_frame(input: &mut impl Read, frame: &mut Vec<u8>) -> io::Result<bool> {
    let mut length = [0; 8];
    match input.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        Err(error) => return Err(error),
    }
    let length = u64::from_le_bytes(length);
    if length > MAX_FRAME {
        return Err(io::Error::other("a frame too large"));
    }
    frame.clear();
    input.take(length).read_to_end(frame)?;
    match frame.len() as u64 == length {
        true => Ok(true),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

struct Running {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Running {
    fn start(isolation: &Isolation) -> io::Result<Running> {
        let mut child = Command::new(&isolation.program)
            .args(&isolation.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take());
        match pipes {
            (Some(input), Some(output)) => Ok(Running { child, input, output }),
            _ => Err(io::Error::other("the process has no pipes")),
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A parsing process that is started when it is first needed and again after it had to be killed.
pub(crate) struct Worker {
    isolation: Isolation,
    limits: Limits,
    cancel: Cancel,
    running: Option<Running>,
}

impl Worker {
    pub(crate) fn new(isolation: Isolation, limits: Limits, cancel: Cancel) -> Self {
        Worker { isolation, limits, cancel, running: None }
    }

    pub(crate) fn takes(&self, bytes: usize) -> bool {
        bytes >= self.isolation.above_bytes
    }

    pub(crate) fn extract(&mut self, language: Language, text: &[u8]) -> Result<Compact, ExtractError> {
        Ok(self.ask(language, text)?.0)
    }

    pub(crate) fn raws(&mut self, language: Language, text: &[u8]) -> Result<Raws, ExtractError> {
        let (symbols, problems) = self.ask(language, text)?;
        Ok(Raws { problems, ..symbols.raws() })
    }

    fn ask(&mut self, language: Language, text: &[u8]) -> Result<(Compact, Vec<Problem>), ExtractError> {
        let request = Request {
            language,
            max_bytes: self.limits.max_bytes as u64,
            max_millis: self.limits.max_time.as_millis() as u64,
            text,
        };
        let crashed = |error: io::Error| ExtractError::Crashed(error.to_string());
        let running = match self.running.take() {
            Some(running) => running,
            None => Running::start(&self.isolation).map_err(crashed)?,
        };
        let (running, answer) = ask(running, &request, self.limits.max_time + GRACE, &self.cancel);
        match answer {
            Asked::Answer(response) => {
                self.running = Some(running);
                match response {
                    Response::Symbols(symbols, problems) => Ok((symbols, problems)),
                    Response::TimedOut => Err(ExtractError::TimedOut(self.limits.max_time)),
                    Response::TooLarge(bytes) => {
                        Err(ExtractError::TooLarge { bytes, limit: self.limits.max_bytes as u64 })
                    }
                    Response::Binary(at) => Err(ExtractError::Binary { at: at as usize }),
                }
            }
            Asked::Killed if self.cancel.is_cancelled() => Err(ExtractError::Cancelled),
            Asked::Killed => Err(ExtractError::TimedOut(self.limits.max_time)),
            Asked::Failed(error) => Err(crashed(error)),
        }
    }
}

enum Asked {
    Answer(Response),
    Killed,
    Failed(io::Error),
}

/// How often the caller's flag is looked at while a process works.
const TICK: Duration = Duration::from_millis(20);

/// Asks while a second thread holds the clock, and kills the process when it runs out or the caller cancels.
fn ask(mut running: Running, request: &Request<'_>, limit: Duration, cancel: &Cancel) -> (Running, Asked) {
    let (answered, clock) = mpsc::channel::<()>();
    let Running { child, input, output } = &mut running;
    let answer = std::thread::scope(|scope| {
        let watchdog = scope.spawn(move || {
            let end = Instant::now() + limit;
            while clock.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                if cancel.is_cancelled() || Instant::now() > end {
                    let _ = child.kill();
                    return true;
                }
            }
            false
        });
        let answer = write_frame(input, request).and_then(|()| read_message(output));
        drop(answered);
        match (answer, watchdog.join().unwrap_or(false)) {
            (Ok(response), false) => Asked::Answer(response),
            (_, true) => Asked::Killed,
            (Err(error), false) => Asked::Failed(error),
        }
    });
    (running, answer)
}

fn read_message<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<T> {
    let mut frame = Vec::new();
    match read_frame(input, &mut frame)? {
        true => postcard::from_bytes(&frame).map_err(io::Error::other),
        false => Err(io::Error::other("the process ended without an answer")),
    }
}
