"""The preflight as a process: what it waits for is named, and what is lacking for a moment is waited for."""

from __future__ import annotations

import os
import resource
import sys
import time

import pytest

from esper_ab.contracts.errors import WorkerHung
from esper_ab.contracts.machine import Questions
from esper_ab.control.preflight import examine

HANGS = """
import time
with open({pipe!r}, "w") as told:
    told.write("!")
time.sleep(1e6)
"""


def test_a_preflight_that_hangs_is_told_of_with_what_it_was_doing(tmp_path):
    """And as what it is: nothing of ours has failed, and its status is that of a worker that hangs."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "mine.py").write_text(HANGS.format(pipe=str(tmp_path / "pipe")))
    reference = f"{tmp_path}/mine.py:reward"

    def until_it_hangs():
        assert (tmp_path / "pipe").read_text() == "!"

    with pytest.raises(WorkerHung, match=r"gave no answer within \d+ s; it was still rehearsing") as raised:
        examine(Questions(task="synthetic", data_dir="", user_rewards=(reference,)), until_it_hangs, limit_s=0.1)
    assert reference in str(raised.value)
    assert raised.value.exit_code == 11


TELLS_THE_TIME = """
import pathlib, time
pathlib.Path({file!r}).write_text(str(time.monotonic()))


def reward(facts, settings):
    return facts.accuracy
"""


def test_the_start_of_a_process_is_measured_without_what_it_rehearses(tmp_path):
    """A worker that starts loads torch, and rehearses nothing."""
    (tmp_path / "mine.py").write_text(TELLS_THE_TIME.format(file=str(tmp_path / "told")))
    began = time.monotonic()
    found = examine(Questions(task="synthetic", data_dir="", user_rewards=(f"{tmp_path}/mine.py:reward",)))
    rehearsed = float((tmp_path / "told").read_text())
    assert 0.0 < found.start_s < rehearsed - began


class Restoring:
    """A stderr whose first line makes descriptors free again."""

    def __init__(self, limits):
        self.said = ""
        self._limits = limits

    def write(self, text):
        self.said += text
        resource.setrlimit(resource.RLIMIT_NOFILE, self._limits)
        return len(text)

    def flush(self): ...


def test_a_lack_of_descriptors_that_passes_is_named_and_waited_for(monkeypatch):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    restoring = Restoring(limits)
    monkeypatch.setattr(sys, "stderr", restoring)
    os.close(lowest_free := os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))  # the limit is of numbers, not of a count
    try:
        found = examine(Questions(task="synthetic", data_dir="", user_rewards=()))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert found.torch_version
    lack = "no file descriptor was free (ulimit -n)"
    assert restoring.said.startswith(f"warning: the preflight cannot be started: {lack}; trying again")
