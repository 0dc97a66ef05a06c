//! A real llama.cpp server for as long as a proof needs it, where the shared folder that starts one is there.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the script that starts a server, and its chat templates.
pub fn folder() -> Option<PathBuf> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
    let shared = std::env::var_os("KLBR_SHARED").map_or_else(|| root.into(), PathBuf::from);
    Some(shared.join("real/llm")).filter(|folder| folder.join("up.sh").exists())
}

/// A server that ends with the run.
#[derive(Debug)]
pub struct Server {
    pid: String,
    address: String,
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
        let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/llama");
        let home = std::env::var_os("KLBR_LLAMA_DIR").map_or_else(|| kept.into(), PathBuf::from);
        let script = folder.join("up.sh");
        let mut command = Command::new("bash");
        command.arg(&script).arg(&home).args([&port.to_string(), "tiny", "65536", "1"]).args(template);
        let status = command.status().map_err(|error| error.to_string())?;
        let pid = std::fs::read_to_string(home.join("server.pid")).map_err(|error| error.to_string())?;
        let address = format!("http://127.0.0.1:{port}");
        let server = Server { pid: pid.trim().to_owned(), address };
        if status.success() { Ok(server) } else { Err(format!("{} ended with {status}", script.display())) }
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = Command::new("kill").arg(&self.pid).status();
    }
}
