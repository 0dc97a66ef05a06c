//! `trace`: the committed trace against a real llama.cpp server, beside the same trace with a naive prompt.
//!
//! The server is `KLBR_LLAMA_CPP`, or is started from `KLBR_SHARED` for each chat template (`KLBR_LLAMA_DIR` keeps
//! what that installs). Without either it is skipped, said loudly; where `CI` is set that is a failure.

use std::path::Path;
use std::process::ExitCode;

use futures_util::StreamExt as _;
use klbr_core::model::{Failure, Request, Usage};
use klbr_core::runtime::model::{Model as _, Piece};
use klbr_llm::{BaseUrl, Config, Provider};
use klbr_tests::llama::{self, Server};
use klbr_tests::trace::{Prompt, Report, THINKING, Trace, drive};

#[expect(clippy::print_stdout, reason = "what it prints is what it is for")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut passed = true;
    if let Ok(address) = std::env::var("KLBR_LLAMA_CPP") {
        passed = compare("the named server", &address).await;
    } else if let Some(folder) = llama::folder() {
        for (name, template, port) in [
            ("the model's own template", None, 18_931),
            ("a template that renders reasoning", Some(THINKING), 18_932),
        ] {
            match Server::start(&folder, port, template.map(Path::new)) {
                Ok(server) => passed &= compare(name, server.address()).await,
                Err(error) => {
                    println!("FAILED: the server did not start: {error}");
                    passed = false;
                }
            }
        }
    } else {
        println!(
            "SKIPPED: no llama.cpp server (set KLBR_LLAMA_CPP, or KLBR_SHARED to a folder with real/llm/up.sh)"
        );
        passed = std::env::var_os("CI").is_none();
    }
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[expect(clippy::print_stdout, reason = "as above")]
async fn compare(name: &str, address: &str) -> bool {
    println!("{name}:");
    let (sent, naive) = (run(address, Prompt::AsSent).await, run(address, Prompt::Naive).await);
    let (sent, naive) = match (sent, naive) {
        (Ok(sent), Ok(naive)) => (sent, naive),
        (sent, naive) => {
            println!("  FAILED: {:?} {:?}", sent.err(), naive.err());
            return false;
        }
    };
    for (what, report) in [("as sent", &sent), ("naive", &naive)] {
        let prompt: u64 = report.sent.iter().map(|sent| sent.usage.input).sum();
        println!(
            "  {what}: {} turns, {} requests, {prompt} prompt tokens, {:.2} % cached after the first request, \
             summaries at least {:.2} %, prefixes {:?}, undeclared breaks {}",
            report.turns,
            report.sent.len(),
            report.after_first() * 100.0,
            report.summaries() * 100.0,
            report.causes,
            report.undeclared
        );
    }
    let passed = sent.after_first() >= 0.97 && sent.summaries() >= 0.9 && sent.undeclared == 0;
    println!("  {}", if passed { "passed" } else { "FAILED: at least 97 % and 90 % were asked for" });
    passed
}

async fn run(address: &str, prompt: Prompt) -> Result<Report, String> {
    let address = BaseUrl::parse(address).map_err(|error| error.to_string())?;
    let provider = Provider::new(Config::new(address)).map_err(|error| error.to_string())?;
    let models = provider.list_models().await.map_err(|error| error.to_string())?;
    let model = models.first().ok_or("the server has no model")?.id.clone();
    drive(&Trace::committed(), prompt, async |request| {
        // No template of so small a model does well with tools: their list is told in the system prompt, byte for byte.
        let system = format!("{}\n\n{}", request.system, request.tools).into();
        usage(&provider, Request { model: model.as_str().into(), system, tools: "[]".into(), ..request })
            .await
    })
    .await
}

/// What one request is counted as; a server that hangs up between two requests is asked again, as the core does.
async fn usage(provider: &Provider, request: Request) -> Result<Usage, Failure> {
    for _ in 0..3 {
        match once(provider, request.clone()).await {
            Err(failure) if failure.is_transient() => {}
            answer => return answer,
        }
    }
    once(provider, request).await
}

async fn once(provider: &Provider, request: Request) -> Result<Usage, Failure> {
    let mut reply = provider.sample(request).await?;
    while let Some(piece) = reply.next().await {
        if let Piece::Finished(sampled) = piece? {
            return sampled.usage.ok_or_else(|| Failure::Malformed("no usage".to_owned()));
        }
    }
    Err(Failure::Disconnected("no reply".to_owned()))
}
