"""A detached command that does not come to its run leaves its name to others, however it was ended."""

from __future__ import annotations

import pytest
from support import children

from esper_ab.contracts.errors import Interrupted
from esper_ab.execution.detach import NotStarted, detach, reserve, reserved

STOPPED = (Interrupted, KeyboardInterrupt)  # the latter while the process is being started


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
