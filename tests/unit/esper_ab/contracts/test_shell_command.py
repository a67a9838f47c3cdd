"""Commands that a user is told to type work as they stand, whatever the experiment directory is called."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.journals import planted_effect, write

from esper_ab.commands._removable import removable
from esper_ab.contracts.errors import DiskFull
from esper_ab.contracts.messages import Progress
from esper_ab.contracts.records import RunRef
from esper_ab.contracts.shell_command import shell_command
from esper_ab.control.disk import PHASE, DiskSpaceWait
from esper_ab.control.signals import CaughtSignals
from esper_ab.execution.detach import Detached
from esper_ab.journal.load import load
from esper_ab.live.status import status_text


@given(st.lists(st.text()))
@example(["my runs/one", "it's", "$HOME", "a;b", "*"])
def test_a_shell_reads_back_what_was_meant(arguments):
    assert shlex.split(shell_command("logs", *arguments)) == ["esper-ab", "logs", *arguments]


def quoted(text, command):
    """The command line between backquotes that begins with `esper-ab COMMAND`, as a shell reads it."""
    return shlex.split(text.partition(f"`esper-ab {command}")[2].partition("`")[0])


def test_a_path_with_a_space_can_be_typed_as_it_is_printed(tmp_path):
    experiment_dir = write(tmp_path / "my runs" / "one", planted_effect()[:30])
    assert quoted(status_text(experiment_dir), "resume") == [str(experiment_dir)]
    assert quoted(removable(experiment_dir, load(experiment_dir).history).kept, "resume") == [str(experiment_dir)]
    shown = Detached(experiment_dir=experiment_dir, pid=1, console=experiment_dir / "console.log").shown(as_json=False)
    commands = [shlex.split(line.partition(":")[2]) for line in shown.splitlines()[1:]]
    assert commands == [
        ["esper-ab", "status", str(experiment_dir), "--follow"], ["esper-ab", "stop", str(experiment_dir)],
    ]  # fmt: skip


def test_so_can_that_of_a_run_without_room():
    ref = RunRef(name="a/0", group_id="a", replicate=0, reward_mode="shaped", controller="ppo", device="cpu:0")
    room = DiskSpaceWait(Path("my runs/one"), lambda _: None)
    room.await_for(lambda: None)  # a first line is recorded
    with CaughtSignals() as signals, room.heeding(signals, 0.0), pytest.raises(DiskFull) as caught:
        room.note(Progress(run=ref, milestone=1, step=0, phase=PHASE))
    assert quoted(str(caught.value), "resume") == ["my runs/one"]
