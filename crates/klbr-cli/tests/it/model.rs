//! The scripted model's server, in a thread of the test.

use std::sync::mpsc;

use klbr_tests::fake_model::{Options, Ready, serve};
use serde_json::{Value, json};

/// A server that answers by these rules until the test's process ends.
pub(crate) fn scripted(rules: &Value) -> Ready {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.json");
    let script = json!({ "model": "scripted", "context_tokens": 32768, "rules": rules });
    std::fs::write(&path, script.to_string()).unwrap();
    let (sender, ready) = mpsc::channel();
    std::thread::spawn(move || {
        let _folder = folder;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let options = Options { script: Some(path), ..Options::default() };
        let announce = |ready: &Ready| sender.send(ready.clone()).map_err(std::io::Error::other);
        runtime.block_on(serve(options, announce)).unwrap();
    });
    ready.recv().unwrap()
}

/// A rule that answers what contains this by saying something and waiting.
pub(crate) fn says(when: &str, think: &str, scratch: &str, content: &str) -> Value {
    json!({
        "when": { "last_contains": when },
        "answer": { "body": { "reply": { "parts": [
            { "think": { "say": think } },
            { "text": { "say": scratch } },
            { "call": { "name": "local_send", "arguments": { "content": content } } },
            { "call": { "name": "wait_and_continue", "arguments": { "duration": "10m", "reason": "the next word" } } },
        ] } } },
    })
}
