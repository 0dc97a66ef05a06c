//! `trace`: the committed trace against a real llama.cpp server, beside the same trace with a naive prompt.
//!
//! The server is `KLBR_LLAMA_CPP`, or is started from `KLBR_SHARED`, once for each chat template and for
//! the naive prompt (`KLBR_LLAMA_DIR` keeps what that installs). Without either it is skipped, said loudly; where `CI` is set that is a failure.

use std::path::Path;
use std::process::ExitCode;

use futures_util::StreamExt as _;
use klbr_core::model::{Failure, Request, Usage};
use klbr_core::record::BreakCause;
use klbr_core::runtime::model::{Model as _, Piece};
use klbr_llm::{BaseUrl, Config, Provider};
use klbr_tests::llama::{self, Server};
use klbr_tests::trace::{Prompt, Report, THINKING, Trace, drive};

#[expect(clippy::print_stdout, reason = "what it prints is what it is for")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let passed = if let Ok(address) = std::env::var("KLBR_LLAMA_CPP") {
        let sent = run(&address, Prompt::AsSent).await;
        told("the named server", sent) & beside("the named server", run(&address, Prompt::Naive).await)
    } else if let Some(folder) = llama::folder() {
        everything(&folder).await.unwrap_or_else(|error| {
            println!("FAILED: the server did not start: {error}");
            false
        })
    } else {
        println!(
            "SKIPPED: no llama.cpp server (set KLBR_LLAMA_CPP, or KLBR_SHARED to a folder with real/llm/up.sh)"
        );
        std::env::var_os("CI").is_none()
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Both chat templates and the naive prompt, each against a server of its own: a server works on one core, and the
/// naive prompt, which is read anew all the time, takes as long as the others together.
async fn everything(folder: &Path) -> Result<bool, String> {
    const OWN: &str = "the model's own template";
    const RENDERS: &str = "a template that renders reasoning";
    let naive = Server::start(folder, 18_930, None)?;
    let own = Server::start(folder, 18_931, None)?;
    let renders = Server::start(folder, 18_932, Some(Path::new(THINKING)))?;
    let sent = async {
        let own = run(own.address(), Prompt::AsSent).await;
        (own, run(renders.address(), Prompt::AsSent).await)
    };
    let (naive, (own, renders)) = tokio::join!(run(naive.address(), Prompt::Naive), sent);
    Ok(told(OWN, own) & told(RENDERS, renders) & beside(OWN, naive))
}

/// Prints what came of the trace as it is sent, and whether that is enough.
#[expect(clippy::print_stdout, reason = "as above")]
fn told(template: &str, report: Result<Report, String>) -> bool {
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            println!("{template}: FAILED: {error}");
            return false;
        }
    };
    let causes = [BreakCause::First, BreakCause::Compaction, BreakCause::Compaction];
    let passed = report.after_first() >= 0.97
        && report.summaries() >= 0.9
        && report.undeclared == 0
        && report.causes == causes;
    println!("{template}, as sent: {}", line(&report));
    println!(
        "  {}",
        if passed { "passed" } else { "FAILED: at least 97 % and 90 %, and two breaks, were asked for" }
    );
    passed
}

/// Prints what came of the naive prompt; it is there to be compared.
#[expect(clippy::print_stdout, reason = "as above")]
fn beside(template: &str, report: Result<Report, String>) -> bool {
    match &report {
        Ok(report) => println!("{template}, naive: {}", line(report)),
        Err(error) => println!("{template}, naive: FAILED: {error}"),
    }
    report.is_ok()
}

fn line(report: &Report) -> String {
    let prompt: u64 = report.sent.iter().map(|sent| sent.usage.input).sum();
    format!(
        "{} turns, {} mode changes, {} interrupts, {} requests, {prompt} prompt tokens, {:.2} % cached after the first \
         request, summaries at least {:.2} %, prefixes {:?}, undeclared breaks {}",
        report.turns,
        report.modes,
        report.interrupts,
        report.sent.len(),
        report.after_first() * 100.0,
        report.summaries() * 100.0,
        report.causes,
        report.undeclared
    )
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
