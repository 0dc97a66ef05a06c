//! The areas of klbr-workspace: `fs_access`, `instructions`, `chunk_tokens`.

use std::collections::BTreeMap;

use klbr_workspace::chunk::{self, Cut, Estimate, Words};
use klbr_workspace::instructions::chain;
use klbr_workspace::view::{Denied, Kind, Level, MemoryTree, Tree, View};
use serde::Deserialize;
use serde_json::{Value, json};

use super::read;

pub(super) fn chunk_tokens(case: &str) -> Result<Value, String> {
    #[derive(Deserialize)]
    struct Case {
        tokenizer: String,
        size: usize,
        overlap: usize,
        text: String,
    }
    let Case { tokenizer, size, overlap, text } = read(case)?;
    let cut = Cut { size, overlap };
    match tokenizer.as_str() {
        "words" => Ok(chunk::chunks(&text, cut, &Words).into()),
        "estimate" => Ok(chunk::chunks(&text, cut, &Estimate).into()),
        other => Err(format!("unknown tokenizer {other:?}")),
    }
}

pub(super) fn instructions(case: &str) -> Result<Value, String> {
    #[derive(Deserialize)]
    struct Case {
        files: Vec<String>,
        boundary: String,
        start: String,
        grants: Option<BTreeMap<String, Level>>,
    }
    let case: Case = read(case)?;
    let view = match case.grants {
        Some(grants) => grants.iter().fold(View::new(), |view, (path, level)| view.grant(path, *level)),
        None => View::new().grant("/", Level::Ro),
    };
    let tree = tree(&case.files, &[]);
    let is_readable = |file: &str| tree.kind(file) == Some(Kind::File) && view.level(file) >= Level::Ro;
    Ok(chain(&case.boundary, &case.start, is_readable).into())
}

pub(super) fn fs_access(case: &str) -> Result<Value, String> {
    #[derive(Deserialize)]
    struct Case {
        tree: Vec<String>,
        #[serde(default)]
        mounts: Vec<String>,
        #[serde(default)]
        grants: BTreeMap<String, Level>,
        #[serde(default)]
        floor: BTreeMap<String, Level>,
        cwd: Option<String>,
        op: String,
        path: String,
    }
    let case: Case = read(case)?;
    let view = case.grants.iter().fold(View::new(), |view, (path, level)| view.grant(path, *level));
    let view = case.floor.iter().fold(view, |view, (path, most)| view.floor(path, *most));
    let tree = tree(&case.tree, &case.mounts);
    let cwd = case.cwd.as_deref().unwrap_or("/");
    let path = case.path.as_str();
    let done = |answer: Result<String, Denied>| answer.map(|_| json!({"ok": true}));
    let answer = match case.op.as_str() {
        "level" => {
            let path = klbr_core::context::paths::resolve(cwd, path);
            Ok(json!({"level": view.level(&path), "passage": view.is_passage(&path)}))
        }
        "list" => view.list(&tree, cwd, path).map(|entries| json!({"entries": entries})),
        "read" => match view.read(&tree, cwd, path) {
            // A directory given to the read tool is listed.
            Err(Denied::IsDirectory(path)) => {
                view.list(&tree, cwd, &path).map(|entries| json!({"entries": entries}))
            }
            answer => done(answer),
        },
        "write" => done(view.write(&tree, cwd, path)),
        "mkdir" => done(view.mkdir(&tree, cwd, path)),
        "rm" => done(view.rm(&tree, cwd, path)),
        "commit" => done(view.commit(&tree, cwd, path)),
        other => return Err(format!("unknown op {other:?}")),
    };
    Ok(answer.unwrap_or_else(|denied| json!({"error": denied.to_string()})))
}

fn tree(paths: &[String], mounts: &[String]) -> MemoryTree {
    let tree = paths.iter().fold(MemoryTree::new(), |tree, path| {
        tree.with(path, if path.ends_with('/') { Kind::Dir } else { Kind::File })
    });
    mounts.iter().fold(tree, |tree, mount| tree.with(mount, Kind::Mount))
}
