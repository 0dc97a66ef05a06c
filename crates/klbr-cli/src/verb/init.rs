//! `klbr init`: makes a home. Asks nothing, overwrites nothing.

use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use klbr_server::Home;
use klbr_server::home::Token;
use serde_json::json;

use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// The file that a home begins with: every setting, each with what it is without it.
const SETTINGS: &str = include_str!("init/klbr.toml");

/// Makes what is missing, and says what was there.
pub(super) fn run(context: &Context) -> Outcome {
    let refused = |error: io::Error| {
        let message = format!("no home can be made at {}", context.home.display());
        CommandError::config(message, "name a folder of yours with --home").because(error)
    };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&context.home).map_err(refused)?;
    let home = Home::new(&context.home);
    let settings = context.home.join("klbr.toml");
    let (mut made, mut kept) = (Vec::new(), Vec::new());
    let mut put = |path: &Path, is_new: bool| {
        if is_new { made.push(path.to_owned()) } else { kept.push(path.to_owned()) }
    };
    put(&settings, write_new(&settings).map_err(refused)?);
    let is_new = !home.token().exists();
    Token::read_or_make(&home.token())?;
    put(&home.token(), is_new);
    context.print(&json!({ "home": context.home, "made": made, "kept": kept }), || {
        let line = |word: &str, path: &Path| format!("{word} {}\n", path.display());
        let made = made.iter().map(|path| line("made", path));
        let kept = kept.iter().map(|path| line("kept", path));
        let next =
            "next: klbr doctor says whether a model answers, klbr chat talks to the agent\n".to_owned();
        made.chain(kept).chain([next]).collect()
    })
}

/// Writes the settings, unless there are some.
fn write_new(path: &Path) -> io::Result<bool> {
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => file.write_all(SETTINGS.as_bytes()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::SETTINGS;

    /// The settings with each `#key = value` switched on.
    fn switched_on() -> String {
        let is_setting =
            |line: &str| line.starts_with('#') && !line.starts_with("# ") && line.contains(" = ");
        let line = |line: &str| if is_setting(line) { line[1..].to_owned() } else { line.to_owned() };
        SETTINGS.lines().map(|text| line(text) + "\n").collect()
    }

    #[test]
    fn every_setting_is_there_and_each_can_be_used() {
        let text = switched_on();
        let mut table = "";
        let mut keys: Vec<String> = Vec::new();
        for line in text.lines() {
            match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                Some(name) => table = name,
                None if line.starts_with('#') => {}
                None => keys.extend(line.split_once(" = ").map(|(key, _)| format!("{table}.{key}"))),
            }
        }
        let mut known: Vec<&str> = klbr_server::config::SETTINGS.iter().map(|(key, _)| *key).collect();
        keys.sort();
        known.sort_unstable();
        assert_eq!(keys, known);
    }
}
