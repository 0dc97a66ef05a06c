//! Both sides of the protocol, where they could part.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use klbr_core::ids::Epoch;
use klbr_core::policy::{HookFailure, Slot};
use klbr_core::runtime::policy::Policy as _;
use klbr_pyhost::*;

use crate::support::*;

/// The Python side of the framing, against bytes cut anywhere.
#[test]
fn python_cuts_frames_as_rust_does() {
    let Some(world) = World::new() else { return };
    let code = r#"
import sys
sys.path.insert(0, sys.argv[1])
from klbr._protocol import Decoder, ProtocolError, encode
frames = [{"t": "a"}, {"t": "b", "text": "ä\u0000\n\ud800"}]
data = b"".join(encode(frame) for frame in frames)
for size in range(1, len(data) + 1):
    decoder, heard = Decoder(), []
    for start in range(0, len(data), size):
        heard += decoder.feed(data[start:start + size])
    assert [f["t"] for f in heard] == ["a", "b"] and heard[1]["text"] == "ä\u0000\n?", heard
for bad in (b"printed in between", b"\0\0\0\x02[]"):
    try:
        Decoder().feed(bad)
    except ProtocolError:
        continue
    raise AssertionError(bad)
"#;
    let out = Command::new(&world.program.python)
        .args(["-I", "-c", code])
        .arg(&world.program.package)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// The package with another version of the protocol.
fn package(world: &World, protocol: u32) -> PathBuf {
    let package = world.path().join(format!("speaks-{protocol}"));
    for (name, text) in Sources.files() {
        let path = package.join("klbr").join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        let spoken = format!("PROTOCOL = {PROTOCOL}\n");
        std::fs::write(path, text.replace(&spoken, &format!("PROTOCOL = {protocol}\n"))).unwrap();
    }
    package
}

/// A Python side of another version, newer or older, is refused by name, and no call reaches it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_version_of_the_protocol_is_refused_clearly() {
    for protocol in [PROTOCOL + 1, PROTOCOL - 1] {
        let Some(world) = World::new() else { return };
        let package = package(&world, protocol);
        let code = "open('imported', 'w').close()\ndef f(question):\n    return True\n";
        let deadline = Duration::from_secs(2);
        let policy = world.owner_with(Slot::Wake, code, deadline, |spec| spec.program.package = package);
        let change = world.until(|change| matches!(change, Change::Died { .. })).await;
        let Change::Died { reason, .. } = change else { unreachable!() };
        let expected = format!("it speaks protocol {protocol}, and the host {PROTOCOL}");
        assert!(reason.contains(&expected), "{reason}");
        let failure = policy.decide(Epoch(1), wake()).await.unwrap_err();
        assert!(matches!(failure, HookFailure::Unavailable { .. } | HookFailure::Deadline), "{failure:?}");
        assert!(!world.path().join("imported").exists(), "nothing of it is imported");
    }
}
