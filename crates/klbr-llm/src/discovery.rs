//! Model servers on this machine.
//!
//! Owns where they usually listen and how they are told from other servers: they list models. Refuses to
//! choose between several: it answers with all.

use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use crate::config::{BaseUrl, ConfigError};
use crate::http::{Deadline, Http, Security};
use crate::models::{Lister, Offered};

/// A kind of server, by the port that it usually has: a guess, not a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// llama.cpp's server, port 8080.
    LlamaCpp,
    /// Ollama, port 11434.
    Ollama,
    /// LM Studio, port 1234.
    LmStudio,
    /// vLLM, port 8000.
    Vllm,
}

impl Kind {
    /// Every kind, in the order in which they are looked for.
    pub const ALL: [Kind; 4] = [Kind::LlamaCpp, Kind::Ollama, Kind::LmStudio, Kind::Vllm];

    fn port(self) -> u16 {
        match self {
            Kind::LlamaCpp => 8080,
            Kind::Ollama => 11434,
            Kind::LmStudio => 1234,
            Kind::Vllm => 8000,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::LlamaCpp => "llama.cpp",
            Kind::Ollama => "Ollama",
            Kind::LmStudio => "LM Studio",
            Kind::Vllm => "vLLM",
        })
    }
}

/// Where a server may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What is expected there.
    pub kind: Kind,
    /// Its address.
    pub base_url: BaseUrl,
}

/// A server that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub candidate: Candidate,
    /// What it offers; may be empty.
    pub models: Vec<Offered>,
}

/// The usual ports of this machine.
pub fn usual_candidates() -> Vec<Candidate> {
    let candidate = |kind: Kind| {
        let address = format!("http://127.0.0.1:{}/v1", kind.port());
        Candidate { kind, base_url: BaseUrl::parse(&address).expect("a loopback address is one") }
    };
    Kind::ALL.into_iter().map(candidate).collect()
}

/// Looks for servers at all candidates at once; gives those that list models within `timeout`, in the
/// candidates' order. No key is sent to any.
///
/// # Errors
///
/// Fails when a candidate needs a secure connection and none is possible.
///
/// # Cancel safety
///
/// Dropping the future closes its connections.
pub async fn discover(candidates: &[Candidate], timeout: Duration) -> Result<Vec<Found>, ConfigError> {
    let any_secure = candidates.iter().any(|candidate| candidate.base_url.is_secure());
    let http = Http::new(None, timeout, if any_secure { Security::Tls } else { Security::Plain })?;
    let deadline = Deadline::after(timeout);
    let answers = join_all(candidates.iter().map(|candidate| {
        let lister = Lister { http: &http, base_url: &candidate.base_url };
        async move { lister.list(deadline).await }
    }))
    .await;
    let found = candidates.iter().zip(answers).filter_map(|(candidate, answer)| {
        let models = answer.ok()?;
        Some(Found { candidate: candidate.clone(), models })
    });
    Ok(found.collect())
}
