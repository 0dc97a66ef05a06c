//! A real llama.cpp server for as long as a proof needs it, where the shared folder that starts one is there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::shared;

/// The folder with the script that starts a server, and its chat templates.
pub fn folder() -> Option<PathBuf> {
    shared::folder("real/llm")
}

/// A server that ends with the run.
#[derive(Debug)]
pub struct Server {
    address: String,
    _running: shared::Server,
}

impl Server {
    /// Starts the tiny model on `port`, with a chat template of its own or the file named.
    ///
    /// What the script installs is kept in `KLBR_LLAMA_DIR`, else below `target/`.
    ///
    /// # Errors
    ///
    /// Says what the script did not manage.
    pub fn start(folder: &Path, port: u16, template: Option<&Path>) -> Result<Self, String> {
        let arguments = [&port.to_string(), "tiny", "65536", "1"].map(OsString::from).into_iter();
        let arguments = arguments.chain(template.map(OsString::from));
        let running = shared::Server::start(folder, ("llama", "KLBR_LLAMA_DIR"), arguments)?;
        Ok(Server { address: format!("http://127.0.0.1:{port}"), _running: running })
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }
}
