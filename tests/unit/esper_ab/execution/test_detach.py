"""A detached command that does not come to its run leaves its name to others, however it was ended."""

from __future__ import annotations

import os
import signal

import pytest
from support import children

from esper_ab.contracts.errors import Interrupted
from esper_ab.execution import detach as detaching
from esper_ab.execution.detach import NotStarted, detach, reserve, reserved

STOPPED = (Interrupted, KeyboardInterrupt)  # the latter while the process is being started
# which then nobody waits for, as for one that is detached
pytestmark = pytest.mark.filterwarnings("ignore:subprocess [0-9]+ is still running:ResourceWarning")


@pytest.mark.parametrize(
    ("module", "args", "told"),
    [
        ("support.interrupts", (), STOPPED),
        ("support.interrupts", ("x" * (1 << 18),), OSError),  # no process can be started with that
        ("support.nobody", (), NotStarted),
    ],
    ids=["ctrl-c", "no process", "ended"],
)
def test_a_name_is_free_again_when_nothing_was_detached(tmp_path, monkeypatch, module, args, told):
    monkeypatch.setenv("PYTHONPATH", children.environment()["PYTHONPATH"])
    reserve(tmp_path / "run")
    assert reserved(tmp_path / "run")
    with pytest.raises(told):
        detach(module, args, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    reserve(tmp_path / "run")


def test_the_console_of_an_experiment_that_is_there_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", children.environment()["PYTHONPATH"])
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "console.log").write_text("before\n")
    with pytest.raises(STOPPED):
        detach("support.interrupts", (), tmp_path / "run")
    assert (tmp_path / "run" / "console.log").read_text() == "before\n"


def test_a_command_that_takes_long_to_begin_is_waited_for(tmp_path, monkeypatch, capsys):
    """As one does that rehearses a trainer, or waits for a cluster; it is said that nothing has begun, once."""
    monkeypatch.setenv("PYTHONPATH", children.environment()["PYTHONPATH"])
    monkeypatch.setattr(detaching, "_LONG_S", 0.0)
    found = detach("support.beginning", (str(tmp_path / "run"),), tmp_path / "run")
    os.kill(found.pid, signal.SIGKILL)
    os.waitpid(found.pid, 0)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"process {found.pid} has not begun yet; its output is in {tmp_path}/.run.console.log; ")
