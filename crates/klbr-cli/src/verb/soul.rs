//! `klbr soul`: who the agent is.

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use klbr_server::api::{self, path};

use crate::args::Soul;
use crate::client::fresh_key;
use crate::context::{Context, Reach};
use crate::error::{CommandError, Outcome};
use crate::{text, wiring};

/// Shows or replaces it.
pub(super) async fn run(context: &Context, soul: &Soul) -> Outcome {
    match soul {
        Soul::Show => {
            let soul = current(context).await?;
            context.print(&soul, || {
                if io::stdout().is_terminal() { text::clean(&soul.text) } else { soul.text.clone() }
            })
        }
        Soul::Edit { file } => edit(context, file.as_deref()).await,
    }
}

async fn current(context: &Context) -> Outcome<api::Soul> {
    Ok(match context.reach().await? {
        Reach::Daemon(client) => client.get(path::SOUL, &()).await?,
        Reach::Kept(offline) => api::Soul { text: offline.agent.soul().to_string() },
    })
}

async fn edit(context: &Context, file: Option<&Path>) -> Outcome {
    let new = match file {
        Some(file) if file != Path::new("-") => read(file)?,
        None if io::stdin().is_terminal() => {
            let old = current(context).await?.text;
            let new = in_editor(&old)?;
            if new == old {
                return context
                    .print(&serde_json::json!({ "changed": false }), || "nothing was changed".to_owned());
            }
            new
        }
        _ => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map_err(|error| not_text("standard input", error))?;
            text
        }
    };
    if new.trim().is_empty() {
        return Err(CommandError::user(
            "the new soul is empty",
            "nothing was changed; klbr soul show prints the old one",
        ));
    }
    let soul = api::Soul { text: new };
    let accepted: api::Accepted = context
        .through_api(async |client| Ok(client.put(path::SOUL, &fresh_key("soul"), &soul).await?))
        .await?;
    context.print(&accepted, || format!("the soul is replaced from the next turn on ({})", accepted.event))
}

fn read(file: &Path) -> Outcome<String> {
    std::fs::read_to_string(file).map_err(|error| not_text(&file.display().to_string(), error))
}

fn not_text(what: &str, error: io::Error) -> CommandError {
    CommandError::user(
        format!("{what} cannot be read"),
        "name a readable file of UTF-8 text; nothing was changed",
    )
    .because(error)
}

/// Has the operator edit a text.
fn in_editor(old: &str) -> Outcome<String> {
    let editor = wiring::editor().ok_or_else(|| {
        CommandError::user(
            "no editor is known: neither VISUAL nor EDITOR is set",
            "set EDITOR, or use --file FILE",
        )
    })?;
    let draft = Draft(std::env::temp_dir().join(format!("{}.md", fresh_key("klbr-soul"))));
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft.0)?
        .write_all(old.as_bytes())?;
    // An editor may come with arguments, as in "code --wait"; the file's name is handed over as it is.
    let status = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(&draft.0).status()?;
    if !status.success() {
        return Err(CommandError::user(format!("{editor:?} ended with {status}"), "nothing was changed"));
    }
    read(&draft.0)
}

struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        // It may have been moved by the editor; then there is nothing to remove.
        let _ = std::fs::remove_file(&self.0);
    }
}
