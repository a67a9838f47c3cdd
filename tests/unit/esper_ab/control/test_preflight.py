"""The preflight as a process: what it waits for is named, and what is lacking for a moment is waited for."""

from __future__ import annotations

import os
import resource
import sys
import time

import pytest

from esper_ab.contracts.errors import UsageError, WorkerHung
from esper_ab.contracts.machine import ControllerQuestion, Questions
from esper_ab.contracts.settings import ControllerSettings
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


REWARD = "\n\ndef reward(facts, settings):\n    return facts.best_val_acc\n"


def rewarding(folder, *lines):
    (folder / "mine.py").write_text("\n".join(lines) + REWARD)
    return Questions(task="synthetic", data_dir="", user_rewards=(f"{folder}/mine.py:reward",))


def test_what_a_users_code_prints_is_no_part_of_the_answer(tmp_path):
    """Half a line, bytes that are no text, by any descriptor; and it cannot read the questions."""
    questions = rewarding(
        tmp_path, "import os, sys", "sys.stdout.write('half')", "os.write(1, b'\\xff{')", "assert not sys.stdin.read()",
        "import atexit; atexit.register(os._exit, 3)",
    )  # fmt: skip
    (found,) = examine(questions).user_rewards
    assert found.problem == ""


@pytest.mark.parametrize(("line", "how"), [
    ("import os; os._exit(0)", "ended with exit status 0 and said nothing"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV and said nothing"),
    ("print('why', flush=True); import os; os._exit(7)", "ended with exit status 7; its last line: why"),
])  # fmt: skip
def test_the_death_of_the_preflight_by_a_users_code_is_told_of_that_code(tmp_path, line, how):
    questions = rewarding(tmp_path, line)
    with pytest.raises(UsageError) as raised:
        examine(questions)
    doing = f"the preflight was rehearsing {questions.user_rewards[0]}"
    assert str(raised.value) == f"your code ended its process: {doing}, and {how}"


def test_a_reward_with_randomness_of_its_own_is_noticed(tmp_path):
    questions = rewarding(tmp_path, "import numpy as np", "draw = np.random.default_rng().normal")
    own = tmp_path / "mine.py"
    own.write_text(own.read_text().replace("facts.best_val_acc", "draw(size=len(facts.best_val_acc))"))
    assert [(one.problem, one.repeats) for one in examine(questions).user_rewards] == [("", False)]


def test_many_questions_can_be_asked(tmp_path):
    """More than the system takes as an argument."""
    settings = ControllerSettings(name="wait")
    asked = tuple(ControllerQuestion(group=f"g{number}", settings=settings, blueprints=("norm",) * 8)
                  for number in range(3000))  # fmt: skip
    assert examine(Questions(task="synthetic", data_dir="", user_rewards=(), controllers=asked)).torch_version


TELLS_THE_TIME = """
import pathlib, time
pathlib.Path({file!r}).write_text(str(time.monotonic()))


def reward(facts, settings):
    return facts.best_val_acc
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
