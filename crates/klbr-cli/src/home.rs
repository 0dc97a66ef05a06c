//! Who holds a home, and how that one is reached (`C-HOME`).

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use klbr_server::api::Address;
use klbr_server::home::Home;
use klbr_store::{HomeLock, LockError};

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

/// Finds out who holds a home. A home that nobody ever held is not touched.
///
/// # Errors
///
/// Fails when somebody holds it who does not listen.
pub(crate) fn holder(dir: &Path) -> Outcome<Holder> {
    let home = Home::new(dir);
    if !home.lock().exists() {
        return Ok(Holder::Nobody);
    }
    let until = Instant::now() + PATIENCE;
    loop {
        let holder = match HomeLock::acquire(dir, PROGRAM) {
            Ok(_free) => return Ok(Holder::Nobody),
            Err(LockError::Held { holder, .. }) => holder,
            Err(error) => return Err(error.into()),
        };
        // An address that another process left behind is nobody's; a token must never go there.
        let said = std::fs::read_to_string(home.lock()).unwrap_or_default();
        if let Some(address) = home.read_address().filter(|address| names(&said, address.pid)) {
            return Ok(Holder::Daemon(address));
        }
        if Instant::now() > until {
            let who = holder.map_or("another process".to_owned(), |holder| holder.to_string());
            return Err(CommandError::config(
                format!("{} is held by {who}, which does not listen", dir.display()),
                "another command may be at work there: try again, or end that process",
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a lock file names this process as its holder.
fn names(said: &str, pid: u32) -> bool {
    said.split(|c: char| !c.is_ascii_digit()).any(|number| number.parse() == Ok(pid))
}

/// Where the daemon that holds a home listens, and the token that it takes.
pub(crate) fn contact(dir: &Path) -> io::Result<(Address, String)> {
    let home = Home::new(dir);
    let absent = || io::Error::new(io::ErrorKind::NotFound, format!("no daemon listens for {}", dir.display()));
    let address = home.read_address().ok_or_else(absent)?;
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
    fn a_holder_is_known_by_its_number() {
        assert!(names("klbrd 0.1.0, process 4711", 4711));
        assert!(names(r#"{"pid":4711,"since":1,"program":"klbrd"}"#, 4711));
        assert!(!names("klbrd 0.1.0, process 47110", 4711));
        assert!(!names("", 4711));
    }
}
