//! Real counterparts that a shared folder starts: a model server, a server that speaks Discord's API.
//!
//! Owns where they are found and their lives. Refuses to know what they do.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of a counterpart, such as `real/llm`, with the script that starts it; in `KLBR_SHARED`, else beside the
/// repository.
pub fn folder(place: &str) -> Option<PathBuf> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
    let shared = std::env::var_os("KLBR_SHARED").map_or_else(|| root.into(), PathBuf::from);
    Some(shared.join(place)).filter(|folder| folder.join("up.sh").exists())
}

/// A server that ends with the run.
#[derive(Debug)]
pub struct Server {
    pid: String,
}

impl Server {
    /// Runs the script with these arguments behind the folder in which it keeps what it installs: that of the variable
    /// `kept_in`, else `name` below `target/`.
    ///
    /// # Errors
    ///
    /// Says what the script did not manage.
    pub fn start<A: AsRef<OsStr>>(
        folder: &Path,
        (name, kept_in): (&str, &str),
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Server, String> {
        let kept = || Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target")).join(name);
        let home = std::env::var_os(kept_in).map_or_else(kept, PathBuf::from);
        let script = folder.join("up.sh");
        let mut command = Command::new("bash");
        command.arg(&script).arg(&home).args(arguments);
        let status = command.status().map_err(|error| error.to_string())?;
        let pid = std::fs::read_to_string(home.join("server.pid")).map_err(|error| error.to_string())?;
        let server = Server { pid: pid.trim().to_owned() };
        if status.success() { Ok(server) } else { Err(format!("{} ended with {status}", script.display())) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = Command::new("kill").arg(&self.pid).status();
    }
}
