//! Policy in Python with a live agent around it: what breaks there must not reach the agent.
//!
//! - [`failures`]: every way in which a hook can fail, a row each, while an agent is spoken to, interrupted, rolled back.
//! - [`observing`], [`changing`]: observers that fail and processes that end under them; policy that changes while it is
//!   asked.
//! - [`trials`]: a required hook whose worker is killed, or whose connection is cut at a frame's boundary, again and
//!   again (`hook-trials`).
//! - [`cut`]: what stands between the host and Python and cuts (`cut-wire`).
//! - [`judge`]: what an executor really ran, against what was decided. It stands outside (`C-PRF-1`).
//!
//! Owns the home that such an agent lives in. Refuses to know how the host does it: it sees what a model, an executor and
//! a reader of the store see.

pub mod changing;
pub mod cut;
pub mod failures;
pub(crate) mod home;
pub mod judge;
mod model;
pub mod observing;
pub mod trials;

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

pub use home::HomeError;

/// The interpreter: `KLBR_PYTHON`, else what `python3` really is; none where it is older than 3.11 or there is none.
pub fn python() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let named = std::env::var_os("KLBR_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
        let code = "import sys; assert sys.version_info >= (3, 11); print(sys.executable)";
        let out = Command::new(named).args(["-I", "-c", code]).output().ok()?;
        out.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()))
    };
    FOUND.get_or_init(find).clone()
}
