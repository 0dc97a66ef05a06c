"""The package itself: what it imports, what its stubs say, its fork guard, and that the README tells the truth."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
from types import ModuleType

import pytest

import klbr
from conftest import ModelServer, run
from klbr import _native, code, errors

HERE = pathlib.Path(__file__).parents[1]
README = HERE / "README.md"


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs this interpreter."""
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, env={**os.environ, **environment}
    )


def blocks(kind: str) -> list[str]:
    """The README's blocks of one kind."""
    return [part.split("```", 1)[0] for part in README.read_text().split(f"```{kind}\n")[1:]]


def test_the_pure_half_needs_no_native_module() -> None:
    check = (
        "import sys, klbr, klbr.hooks, klbr.policy, klbr.errors, klbr.updates, klbr._tool, klbr._channel, klbr._model\n"
        "assert 'klbr._native' not in sys.modules and 'asyncio' in sys.modules\n"
        "assert klbr.ToolError and klbr.tool and 'klbr._native' not in sys.modules\n"
        "assert klbr.Agent and 'klbr._native' in sys.modules"
    )
    done = python("-c", check)
    assert done.returncode == 0, done.stderr


def test_everything_that_is_promised_is_there() -> None:
    for name in klbr.__all__:
        assert getattr(klbr, name) is not None, name
    assert klbr.__version__ == _native.__version__
    with pytest.raises(AttributeError, match="nonsense"):
        klbr.nonsense  # noqa: B018
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), klbr.KlbrError), name


def test_the_stubs_say_what_is_there() -> None:
    pytest.importorskip("mypy")
    modules = [f"klbr.{name}" for name in ("_native", "_channel", "_model", "_store", "code", "context", "errors")]
    done = python("-m", "mypy.stubtest", "--concise", *modules)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_and_its_tests_are_typed(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("mypy")
    tests = [str(path) for path in sorted((HERE / "tests").glob("*.py"))]
    configuration = ["--config-file", str(HERE.parents[1] / "pyproject.toml"), "--cache-dir", str(tmp_path)]
    # The sources: what is installed would be passed over.
    sources = str(HERE.parent / "klbr-pyhost" / "python" / "klbr")
    done = python("-m", "mypy", *configuration, sources)
    assert done.returncode == 0, done.stdout + done.stderr
    done = python("-m", "mypy", *configuration, *tests)
    assert done.returncode == 0, done.stdout + done.stderr


def generator() -> ModuleType:
    """The script that writes `klbr.updates`."""
    spec = importlib.util.spec_from_file_location("generate_updates", HERE / "scripts" / "generate_updates.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_updates_are_those_of_the_rust_type() -> None:
    from klbr import updates

    module = generator()
    text = pathlib.Path(updates.__file__).read_text()
    assert text == module.generate(_native.update_schema()), "run scripts/generate_updates.py"


def test_a_fork_is_told_instead_of_hanging(tmp_path: pathlib.Path) -> None:
    async def start() -> None:
        async with klbr.Agent("ada", model=klbr.ScriptedModel(), store=tmp_path / "ada.db") as agent:
            await agent.say("Hello!")

    run(start())
    store = klbr.Store.open(tmp_path / "ada.db")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        told = []
        for attempt in (lambda: run(start()), store.agents, lambda: klbr.Store.open(tmp_path / "ada.db")):
            try:
                attempt()
                told.append("went on")
            except klbr.ForkError as error:
                told.append("refused" if "spawn" in str(error) else str(error))
            except BaseException as error:
                told.append(repr(error))
        # What needs no thread works here too.
        told.append(code.outline("def f(): pass", language="python").split()[1])
        os.write(writer, " ".join(told).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        told_here = answer.read().decode()
    os.waitpid(child, 0)
    assert told_here == "refused refused refused function"
    assert store.agents() == ["ada"]
    store.close()


def test_the_readme_shows_what_happens(tmp_path: pathlib.Path) -> None:
    script, *_ = blocks("python")
    assert len(script.splitlines()) <= 25
    (tmp_path / "agent.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "agent.py"], capture_output=True, text=True, timeout=60, cwd=tmp_path, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == blocks("text")[0]


def test_every_example_of_the_readme_runs(tmp_path: pathlib.Path, model_server: ModelServer) -> None:
    scripts = blocks("python")
    assert len(scripts) >= 6
    # In their order: one reads what the first has written.
    for number, script in enumerate(scripts):
        (tmp_path / f"{number}.py").write_text(script)
        done = subprocess.run(
            [sys.executable, f"{number}.py"],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={**os.environ, "KLBR_BASE_URL": model_server.url},
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"


def test_a_process_ends_in_order_whatever_is_under_way() -> None:
    """No thread holds the interpreter's lock, or waits for it, when the interpreter ends."""
    script = """
import asyncio, sys, klbr

async def main(how):
    agent = klbr.Agent("ada", model=klbr.ScriptedModel("one", "two"))
    async with agent:
        stream = agent.updates()
        await agent.say("Hello!")
        await anext(stream)
        pending = [asyncio.ensure_future(agent.status()) for _ in range(20)]
        await asyncio.sleep(0)
        if how == "exit":
            sys.exit(7)
    if how == "leak":
        other = await klbr.Agent("grace", model=klbr.ScriptedModel("x")).__aenter__()
        await other.say("left alone")

asyncio.run(main(sys.argv[1]))
"""
    for how, code_wanted in (("return", 0), ("exit", 7), ("leak", 0)):
        for _ in range(6):
            done = python("-c", script, how)
            assert done.returncode == code_wanted, (how, done.returncode, done.stderr)
