//! Both sides of the protocol, where they could part.

use std::process::Command;

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
