//! The token: whoever can read it is the operator (`C-TRUST`).

use std::fmt;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::{hex, write_atomically};

/// The operator's token. It is never printed.
#[derive(Clone)]
pub struct Token(String);

/// A token that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file is there and cannot be read, or cannot be made.
    #[error("{} cannot be used as the token's file", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{} does not hold a token of at least 32 visible characters", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// The system gives no randomness.
    #[error("no randomness for a token: {0}")]
    Randomness(getrandom::Error),
}

impl Token {
    /// Reads the token, or makes one that only its owner may read.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or made, or holds something else; it is left as it is.
    pub fn read_or_make(path: &Path) -> Result<Self, TokenError> {
        let unusable = |source| TokenError::Unusable { path: path.into(), source };
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let token = text.trim();
                if token.len() < 32 || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                    return Err(TokenError::Malformed { path: path.into() });
                }
                let mode = std::fs::metadata(path).map_err(unusable)?.permissions().mode();
                if mode & 0o077 != 0 {
                    tracing::warn!(path = %path.display(), "the token could be read by others; it no longer can");
                    std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(unusable)?;
                }
                Ok(Token(token.to_owned()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let token = random_hex(32).map_err(TokenError::Randomness)?;
                write_atomically(path, format!("{token}\n").as_bytes()).map_err(unusable)?;
                Ok(Token(token))
            }
            Err(source) => Err(unusable(source)),
        }
    }

    /// The token itself, to be sent in `Authorization: Bearer …`.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether this is the token. Takes as long whichever part of it differs.
    pub(crate) fn is(&self, offered: &str) -> bool {
        Sha256::digest(&self.0) == Sha256::digest(offered)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// So many random bytes of the system's, in hexadecimal digits.
pub(crate) fn random_hex(bytes: usize) -> Result<String, getrandom::Error> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random)?;
    Ok(hex(&random))
}
