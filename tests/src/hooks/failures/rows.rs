//! The rows.

use std::time::Duration;

use super::{Fate, Row};

const HELD: &[Fate] = &[Fate::Held];

const USUAL: Row = Row { name: "", head: "", bad: "pass", becomes: HELD, comes_up: true, change: |_| {} };

/// Every row.
pub const ROWS: &[Row] = &[
    Row {
        name: "a worker that is dead at its start",
        comes_up: false,
        change: |spec| spec.program.python = "/nowhere/python".into(),
        ..USUAL
    },
    Row {
        name: "an interpreter that dies at once",
        comes_up: false,
        change: |spec| spec.program.python = "/bin/false".into(),
        ..USUAL
    },
    Row {
        name: "an import that hangs",
        head: "import itertools\nsum(itertools.repeat(0))",
        comes_up: false,
        change: |spec| spec.patience.start = Duration::from_millis(600),
        ..USUAL
    },
    Row { name: "an import error", head: "import nothing_of_this_name", comes_up: false, ..USUAL },
    Row { name: "a syntax error", head: "def g(:", comes_up: false, ..USUAL },
    Row { name: "an infinite loop in Python", bad: "while True:\n    pass", ..USUAL },
    Row { name: "an infinite loop in C", head: "import itertools", bad: "sum(itertools.repeat(0))", ..USUAL },
    Row { name: "a blocking sleep", head: "import time", bad: "time.sleep(1000)", ..USUAL },
    Row {
        name: "a sleep that can be cancelled",
        head: "import asyncio",
        bad: "await asyncio.sleep(1000)",
        ..USUAL
    },
    Row {
        name: "a deadline during garbage collection",
        head: "import gc",
        bad: "global kept\nkept = [[] for _ in range(400_000)]\nwhile True:\n    gc.collect()",
        ..USUAL
    },
    Row {
        name: "a memory blow-up",
        bad: "kept = []\nwhile True:\n    kept.append(bytearray(1 << 24))",
        ..USUAL
    },
    Row { name: "os._exit", bad: "os._exit(7)", ..USUAL },
    Row { name: "SIGKILL", head: "import signal", bad: "os.kill(os.getpid(), signal.SIGKILL)", ..USUAL },
    Row {
        name: "a process that is stopped",
        head: "import signal",
        bad: "os.kill(os.getpid(), signal.SIGSTOP)",
        ..USUAL
    },
    Row {
        name: "a fork whose copy answers too",
        bad: "os.fork()",
        // The hook itself allows it; what its copy says is nothing.
        becomes: &[Fate::Ran],
        ..USUAL
    },
    Row {
        name: "a fork whose copy spins",
        bad: "if os.fork() == 0:\n    while True:\n        pass",
        becomes: &[Fate::Ran],
        ..USUAL
    },
    Row {
        name: "100 MB of output",
        head: "import sys",
        bad: "for _ in range(50):\n    sys.stdout.write('x' * (1 << 20))\n    sys.stderr.write('y' * (1 << 20))",
        becomes: &[Fate::Ran, Fate::Held],
        ..USUAL
    },
    Row {
        name: "output in the midst of a frame",
        head: "import threading\n\
               def noise():\n    while True:\n        os.write(1, b'\\0\\0\\0\\5noise')\n        os.write(2, b'{\"t\":\"result\"}')\n\
               threading.Thread(target=noise, daemon=True).start()",
        becomes: &[Fate::Ran],
        change: |spec| spec.patience.grace = Duration::from_secs(1),
        ..USUAL
    },
    Row {
        name: "bytes that are no frame",
        head: "import gc, socket",
        bad: "for one in gc.get_objects():\n    if isinstance(one, socket.socket):\n        one.sendall(b'no frame')\n\
              while True:\n    pass",
        ..USUAL
    },
    Row {
        name: "a connection that the hook closes",
        bad: "os.closerange(3, 1024)\nwhile True:\n    pass",
        ..USUAL
    },
    Row { name: "a wrong answer type", bad: "return True", ..USUAL },
    Row { name: "no answer", bad: "return None", ..USUAL },
    Row { name: "an exception", bad: "raise ValueError('no idea')", ..USUAL },
    Row { name: "SystemExit", bad: "raise SystemExit(3)", ..USUAL },
    Row {
        name: "an answer after the deadline",
        head: "import asyncio",
        bad: "try:\n    await asyncio.sleep(1000)\nexcept asyncio.CancelledError:\n    return hooks.allow()",
        ..USUAL
    },
    Row { name: "a hook that calls the host in a loop", bad: "while True:\n    await host.peek()", ..USUAL },
];
