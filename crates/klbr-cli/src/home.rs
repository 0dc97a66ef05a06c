//! Who holds a home, and how that one is reached (`C-HOME`).

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use klbr_server::api::Address;
use klbr_server::home::Home;
use klbr_store::{HomeLock, LockError};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::error::{CommandError, Outcome};

/// What this program calls itself, to whoever finds a home in use.
pub(crate) const PROGRAM: &str = concat!("klbr ", env!("CARGO_PKG_VERSION"));

/// How long a daemon that has just begun is given to say where it listens.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who holds a home.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A daemon that listens there.
    Daemon(Address),
    /// Nobody, as far as is known.
    Nobody,
}

/// Finds out who holds a home. The lock is tried only where a living process claims it, so that looking is
/// in no starting daemon's way.
///
/// # Errors
///
/// Fails when somebody holds it who does not listen.
pub(crate) fn holder(dir: &Path) -> Outcome<Holder> {
    let home = Home::new(dir);
    let until = Instant::now() + PATIENCE;
    loop {
        let Some(claimed) = claimed_by(&home) else { return Ok(Holder::Nobody) };
        match HomeLock::acquire(dir, PROGRAM) {
            Ok(_free) => return Ok(Holder::Nobody),
            Err(LockError::Held { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(address) = address_of(&home, claimed.pid) {
            return Ok(Holder::Daemon(address));
        }
        if Instant::now() > until {
            return Err(CommandError::config(
                format!("{} is in use by {claimed}, which does not listen", dir.display()),
                "another command may be at work there: try again, or end that process",
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The living process that claims a home, if there is one.
fn claimed_by(home: &Home) -> Option<klbr_store::Holder> {
    let claim: klbr_store::Holder = serde_json::from_slice(&std::fs::read(home.lock()).ok()?).ok()?;
    let pid = i32::try_from(claim.pid).ok().and_then(Pid::from_raw)?;
    let lives = !matches!(test_kill_process(pid), Err(Errno::SRCH));
    lives.then_some(claim)
}

/// Where a process listens. An address that another one left behind is nobody's: a token must never go there.
fn address_of(home: &Home, pid: u32) -> Option<Address> {
    home.read_address().filter(|address| address.pid == pid)
}

/// Where the daemon that holds a home listens, and the token that it takes.
pub(crate) fn contact(dir: &Path) -> io::Result<(Address, String)> {
    let home = Home::new(dir);
    let absent =
        || io::Error::new(io::ErrorKind::NotFound, format!("no daemon listens for {}", dir.display()));
    let claimed = claimed_by(&home).ok_or_else(absent)?;
    let address = address_of(&home, claimed.pid).ok_or_else(absent)?;
    let token = std::fs::read_to_string(home.token())
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", home.token().display())))?;
    Ok((address, token.trim().to_owned()))
}

/// Fails when there is no home.
pub(crate) fn require(dir: &Path) -> Outcome {
    match std::fs::metadata(dir) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(CommandError::config(
            format!("{} is not a folder", dir.display()),
            "--home or KLBR_HOME names the home",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(CommandError::config(
            format!("there is no home at {}", dir.display()),
            "klbr init makes one; --home or KLBR_HOME names another",
        )),
        Err(error) => Err(CommandError::config(
            format!("{} cannot be looked into", dir.display()),
            "make it readable for you, or name another with --home",
        )
        .because(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_was_left_behind_is_given_no_token() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        std::fs::create_dir(home.run()).unwrap();
        std::fs::write(home.token(), "secret").unwrap();
        let claim = |pid: u32| format!(r#"{{"pid":{pid},"since":0,"program":"klbrd"}}"#);
        let address = |pid: u32| format!(r#"{{"addr":"127.0.0.1:9","pid":{pid}}}"#);
        let here = std::process::id();
        let gone = i32::MAX as u32;
        for (claimed, listens, told) in [(here, here, true), (here, gone, false), (gone, gone, false)] {
            std::fs::write(home.lock(), claim(claimed)).unwrap();
            std::fs::write(home.address(), address(listens)).unwrap();
            assert_eq!(contact(folder.path()).is_ok(), told, "{claimed} {listens}");
            // Nobody holds the lock, whatever the files say.
            assert_eq!(holder(folder.path()).unwrap(), Holder::Nobody);
        }
    }
}
