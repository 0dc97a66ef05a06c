//! The demo's daemon: this program again, as a child that does not outlive the demo.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use tokio::process::Command;

use crate::client::fresh_key;
use crate::error::{CommandError, Outcome};

pub(super) struct Child(tokio::process::Child);

impl Child {
    /// Starts a daemon with the scripted model on a home.
    pub(super) fn start(home: &Path) -> Outcome<Self> {
        let program = std::env::current_exe()?;
        let child = Command::new(program)
            .arg("demo-daemon")
            .arg("--home")
            .arg(home)
            .args(["--agent", "demo"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Child(child))
    }

    /// How it ended, once it has.
    pub(super) async fn ended(&mut self) -> Outcome<ExitStatus> {
        let status = self.0.wait().await?;
        if !status.success() {
            return Err(CommandError::internal(
                format!("the daemon ended with {status}"),
                "please report this; klbr demo --keep keeps its home",
            ));
        }
        Ok(status)
    }

    /// Ends it without asking.
    pub(super) async fn kill(&mut self) -> Outcome {
        Ok(self.0.kill().await?)
    }
}

/// A new folder that nobody else can look into.
pub(super) fn temporary_home() -> Outcome<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let home = std::env::temp_dir().join(fresh_key("klbr-demo"));
    std::fs::DirBuilder::new().mode(0o700).create(&home)?;
    Ok(home)
}
