//! The one place that reads the process: its arguments, its environment, its signals.

use std::error::Error;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use klbr_server::{Config, ConfigError, Daemon, Home, StartError, config, logging, whole_story};
use klbr_workspace::code::{Isolation, serve};
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The flags, and the settings that they are.
const FLAGS: &[(&str, &str)] = &[
    ("--home", config::HOME),
    ("--listen", config::LISTEN),
    ("--agent", config::AGENT),
    ("--model", config::MODEL),
    ("--base-url", klbr_llm::config::BASE_URL),
    ("--log", config::LOG),
];

/// The hidden argument that makes this program a process that parses.
const PARSER: &str = "--parser";

/// Texts of so many bytes are parsed there. In smaller ones no single step of the parser takes long.
const HARD: usize = 256 << 10;

const USAGE: &str = "\
klbrd: hosts the agent of a home directory behind an API on loopback.

    klbrd [--home DIR] [--listen ADDRESS] [--agent NAME] [--model NAME] [--base-url URL] [--log FILTER]

A flag wins over the environment (KLBR_HOME, KLBR_LISTEN, KLBR_AGENT, KLBR_MODEL, KLBR_BASE_URL,
KLBR_API_KEY, KLBR_LOG, …), which wins over klbr.toml in the home. Once it listens it prints one line:
{\"addr\":…,\"pid\":…,\"home\":…,\"token_path\":…}.
";

/// What ended it, for the exit status.
enum Failure {
    /// Something that was asked for makes no sense.
    Usage(String),
    /// It could not be done.
    Other { message: String, hint: Option<&'static str>, is_setting: bool },
}

pub(crate) fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => {
            complain(&message, Some("klbrd --help says what there is"));
            ExitCode::from(2)
        }
        Err(Failure::Other { message, hint, is_setting }) => {
            complain(&message, hint);
            ExitCode::from(if is_setting { 2 } else { 1 })
        }
    }
}

fn complain(message: &str, hint: Option<&str>) {
    let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    // Nobody reads it if it cannot be written.
    let _ = writeln!(io::stderr(), "klbrd: {message}{hint}");
}

fn run() -> Result<(), Failure> {
    let mut flags: Vec<(&str, String)> = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // What this program starts itself as, to parse code where it can be killed.
            PARSER => return parse(),
            "--help" | "-h" => return say(USAGE),
            "--version" | "-V" => return say(concat!("klbrd ", env!("CARGO_PKG_VERSION"), "\n")),
            other => {
                let flag = FLAGS.iter().find(|(flag, _)| *flag == other);
                let (_, setting) =
                    flag.ok_or_else(|| Failure::Usage(format!("there is no argument {other:?}")))?;
                let value =
                    arguments.next().ok_or_else(|| Failure::Usage(format!("{other} needs a value")))?;
                flags.push((setting, value));
            }
        }
    }
    let flag =
        |name: &str| flags.iter().rev().find(|(setting, _)| *setting == name).map(|(_, value)| value.clone());
    let environment = |name: &str| std::env::var(name).ok();
    let home = match flag(config::HOME) {
        Some(home) => PathBuf::from(home),
        None => config::home(&environment)
            .ok_or_else(|| Failure::Usage("no home: neither KLBR_HOME nor HOME is set".to_owned()))?,
    };
    let config = Config::load(&home, &flag, &environment).map_err(|error: ConfigError| Failure::Other {
        message: whole_story(&error),
        hint: None,
        is_setting: true,
    })?;
    let program = std::env::current_exe().map_err(|error| failure("this program cannot be found", &error))?;
    let parser = Isolation { program, arguments: vec![PARSER.into()], above_bytes: HARD };
    let variables = config::Variables::new(|name| std::env::var(name).ok());
    let config = Config { parser: Some(parser), variables, ..config };
    log(&home, &flag(config::LOG).or_else(|| environment(config::LOG)).unwrap_or_default())?;
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(4)
        .enable_all()
        .build()
        .map_err(|error| failure("no runtime", &error))?;
    let result = runtime.block_on(live(config));
    // What does not end by itself by now is not waited for.
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

fn parse() -> Result<(), Failure> {
    serve(io::stdin().lock(), io::stdout().lock()).map_err(|error| failure("nothing can be parsed", &error))
}

fn say(text: &str) -> Result<(), Failure> {
    io::stdout().write_all(text.as_bytes()).map_err(|error| failure("nothing can be printed", &error))
}

fn failure(what: &str, error: &dyn Error) -> Failure {
    Failure::Other { message: format!("{what}: {}", whole_story(error)), hint: None, is_setting: false }
}

/// Logs to stderr, and to the home once there is one.
fn log(home: &std::path::Path, filter: &str) -> Result<(), Failure> {
    let filter =
        logging::filter(filter).map_err(|error| Failure::Usage(format!("{}: {error}", config::LOG)))?;
    let home = Home::new(home);
    let file = home.create().and_then(|()| logging::LogFile::open(&home.log())).ok();
    tracing::subscriber::set_global_default(logging::subscriber(filter, file))
        .map_err(|error| failure("no log", &error))
}

async fn live(config: Config) -> Result<(), Failure> {
    // Before anything is held, so that no signal finds the process unprepared.
    let no_signals = |error| failure("signals cannot be heard", &error);
    let mut terminate = signal(SignalKind::terminate()).map_err(no_signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(no_signals)?;
    let refused = |error: &StartError| Failure::Other {
        message: whole_story(error),
        hint: error.hint(),
        is_setting: error.is_setting(),
    };
    let running = Daemon::new(config).start().await.map_err(|error| refused(&error))?;
    let line = serde_json::json!({
        "addr": running.addr(),
        "pid": std::process::id(),
        "home": running.home().dir(),
        "token_path": running.token_path(),
    });
    // Whoever started it may not listen.
    let _ = writeln!(io::stdout(), "{line}");
    let result = tokio::select! {
        () = either(&mut terminate, &mut interrupt) => Ok(()),
        () = running.stop_requested() => Ok(()),
        error = running.failed() => Err(refused(&error)),
    };
    tokio::select! {
        () = running.shutdown() => result,
        () = either(&mut terminate, &mut interrupt) => {
            tracing::warn!("a second signal: ending at once");
            std::process::exit(130)
        }
    }
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
