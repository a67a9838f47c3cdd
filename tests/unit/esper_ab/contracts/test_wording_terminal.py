"""Text that others chose is shown, and obeyed by no terminal."""

from __future__ import annotations

import re
import shlex
import signal
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.evil_text import acts
from support.journals import planted_effect, write

from esper_ab.commands._removable import removable
from esper_ab.contracts.errors import DiskFull
from esper_ab.contracts.messages import Progress
from esper_ab.contracts.records import RunRef
from esper_ab.contracts.wording import how_ended, name_of_signal, shell_command, visible, visible_line
from esper_ab.control.event_sink import PHASE, DiskSpaceWait
from esper_ab.control.signals import CaughtSignals
from esper_ab.execution.detach import Detached
from esper_ab.journal.load import load
from esper_ab.readers.status import status_text


@given(st.text())
def test_visible_text_obeys_nothing_and_keeps_what_is_plain(text):
    assert not acts(visible(text))
    assert not set(visible_line(text)) & set("\n\t\r")
    if not acts(text) and text.isascii():
        assert visible(text) == text
    assert len(visible_line(text, 10)) <= 11


def test_escapes_say_what_was_there():
    assert visible("a\x1b[31mb\x9b\u202e\ud800") == r"a\x1b[31mb\x9b\u202e\ud800"
    assert visible_line("a\n\tb") == r"a\n\tb"
    assert re.fullmatch(r"x{9}\\…", visible_line("x" * 9 + "\n" * 20, 10))


# Commands that a user is told to type work as they stand, whatever the experiment directory is called.


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


# The end of any process has words, whatever ended it.


@pytest.mark.parametrize("number", range(1, signal.NSIG))
def test_every_signal_has_a_name(number):
    name = name_of_signal(number)
    assert name == f"signal {number}" or signal.Signals[name] == number
    assert how_ended(-number) == f"was killed by {name}"


def test_one_for_real_time_has_its_number():
    assert how_ended(-40) == "was killed by signal 40"
    assert how_ended(-signal.SIGKILL) == "was killed by SIGKILL"
    assert how_ended(3) == "ended with exit status 3"
