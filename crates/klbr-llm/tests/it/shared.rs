//! The folder of cases and recordings that stands beside a checkout.

use std::path::{Path, PathBuf};

/// A folder of what is shared, or `None`, said loudly, where this checkout has none beside it.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("KLBR_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let folder = root.join(name);
    if folder.exists() {
        return Some(folder);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is absent, and CI must have it", folder.display());
    println!("SKIPPED: {} is absent (set KLBR_SHARED)", folder.display());
    None
}
