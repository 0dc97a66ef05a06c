//! `real-chat`: `klbr chat` against a real llama.cpp server, answered through `local_send`.
//!
//! The model has random weights and a template that makes it call something: what it says means nothing, but
//! every byte of it is a real server's. Without the folder that starts a server it is skipped, said loudly;
//! where `CI` is set that is a failure.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use klbr_tests::llama::{self, Server};

/// How long the model may take to call the right thing. It draws its calls by chance.
const WATCHDOG: Duration = Duration::from_secs(180);

/// How long it may be silent before it is spoken to again.
const PATIENCE: Duration = Duration::from_secs(15);

const TEMPLATE: &str = "templates/meetkai-functionary-medium-v3.2.jinja";

#[expect(clippy::print_stdout, reason = "what it prints is what it is for")]
fn main() -> ExitCode {
    let Some(folder) = llama::folder() else {
        println!("SKIPPED: no llama.cpp server (set KLBR_SHARED to a folder with real/llm/up.sh)");
        return if std::env::var_os("CI").is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    };
    let answered = Server::start(&folder, 18_933, Some(&folder.join(TEMPLATE)))
        .and_then(|server| chat(server.address()));
    match answered {
        Ok(line) => {
            println!("real-chat: a real server's model answered through local_send:\n  {line}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("real-chat: FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Talks to an agent on that server until something is delivered; answers with the line that shows it.
fn chat(address: &str) -> Result<String, String> {
    let home = std::env::temp_dir().join(format!("klbr-real-chat-{}", std::process::id()));
    let program = std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("klbr");
    if !program.exists() {
        return Err(format!(
            "{} is not built: cargo build -p klbr-cli, in the same profile",
            program.display()
        ));
    }
    let answered = talk(&program, &home, address);
    // A home that stays behind does no harm.
    let _ = std::fs::remove_dir_all(&home);
    answered
}

fn talk(program: &Path, home: &Path, address: &str) -> Result<String, String> {
    let mut chat = Command::new(program)
        .args(["chat", "--plain"])
        .env("KLBR_HOME", home)
        .env("KLBR_BASE_URL", address)
        .env("KLBR_TOOL_CHOICE", "required")
        .env("KLBR_MAX_OUTPUT_TOKENS", "160")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let (Some(mut input), Some(output)) = (chat.stdin.take(), chat.stdout.take()) else {
        return Err("the chat has no pipes".to_owned());
    };
    let (lines, heard) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                break;
            }
        }
    });
    let until = Instant::now() + WATCHDOG;
    let mut said = Vec::new();
    let mut ask = true;
    let answer = loop {
        if std::mem::take(&mut ask) {
            writeln!(input, "Say hello.").map_err(|error| error.to_string())?;
        }
        match heard.recv_timeout(PATIENCE) {
            Ok(line) if line.starts_with("delivered") => break Ok(line),
            Ok(line) => said.push(line),
            // It may have chosen to wait; a word of the operator's wakes it.
            Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() < until => ask = true,
            Err(_) => break Err(format!("nothing was delivered; the chat said:\n{}", said.join("\n"))),
        }
    };
    // Ended by its input: the agent that it hosts stops in order, or is made to.
    drop(input);
    let _ = chat.kill();
    let _ = chat.wait();
    drop(heard);
    let _ = reader.join();
    answer
}
