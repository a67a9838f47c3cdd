"""Commands under a limit on a process's memory: they work, or say so in a line; nothing hangs or is a traceback."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import click
import pytest
from support.children import environment
from support.journals import Synthetic, write

from esper_ab.commands import _exit_status
from esper_ab.commands._exit_status import LEAST_BYTES, LOADING, invoke
from esper_ab.commands.cli import TABLE

PATIENCE_S = 120
ASKED = {
    "launch": ("--groups", "wait,random", "--task", "synthetic"), "status": ("EXPERIMENT",), "list": (".",),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("little")
    write(folder / "EXPERIMENT", Synthetic(replicates=6).events())
    return folder


def under(folder: Path, limit: int, name: str, *args: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "esper_ab.commands.cli", name, *args]
    return subprocess.run(
        line, cwd=folder, env=environment(), capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY)),
    )  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_a_command_without_room_for_its_libraries_works_or_is_refused(folder: Path, name: str) -> None:
    ended = under(folder, 150_000_000, name, *ASKED[name])
    if name in LOADING:
        assert ended.returncode == 2
        assert ended.stderr.count("\n") == 1
        assert "0.14 GiB of" in ended.stderr
    else:
        assert ended.returncode == 0, ended.stderr
    assert not list(folder.glob("experiments/*"))


def test_commands_that_load_libraries_are_commands_and_their_help_needs_no_room(folder: Path) -> None:
    assert set(TABLE) >= LOADING
    assert under(folder, 250_000_000, "launch", "--help").returncode == 0


def calling(error: Exception) -> int:
    @click.command()
    def command() -> None:
        raise error

    return invoke(command, [], "esper-ab")


def test_a_lack_of_memory_is_a_line_with_what_would_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert calling(MemoryError("array of 3 TiB")) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: out of memory (array of 3 TiB); free some")
    assert said.count("\n") == 1


def test_a_library_that_cannot_be_loaded_under_a_limit_is_told_with_the_limit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_exit_status.resource, "getrlimit", lambda number: (2 << 30, -1))
    assert calling(ImportError("lib.so: failed to map segment")) == 2
    assert "failed to map segment" in (said := capsys.readouterr().err)
    assert "ulimit -v 2097152" in said


def test_a_library_that_cannot_be_loaded_without_a_limit_is_a_mistake_of_ours() -> None:
    with pytest.raises(ImportError):
        calling(ImportError("no such module"))


@pytest.mark.slow
@pytest.mark.parametrize("above", [1.0, 1.5])
def test_what_is_not_refused_trains(folder: Path, above: float) -> None:
    ended = under(
        folder, int(above * LEAST_BYTES), "launch", *ASKED["launch"], "--episodes", "1",
        "--steps", "2", "--seeds", "1", "--quiet", "--output-dir", f"with-{above}",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
