"""The preflight as a process: what it waits for is named, and what is lacking for a moment is waited for."""

import os
from pathlib import Path

import msgspec
import pytest
from support.processes import leftover_processes
from support.workers import trainers

from esper_ab.contracts.errors import UsageError, WorkerHung
from esper_ab.contracts.machine import ControllerQuestion, Questions
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.settings import ControllerSettings
from esper_ab.contracts.trainer import TRAINER_PREFIX
from esper_ab.control.preflight import examine

REWARD = "\n\ndef reward(facts, settings):\n    return facts.best_val_acc\n"


def rewarding(folder, line):
    (folder / "mine.py").write_text(line + REWARD)
    return Questions(task="synthetic", data_dir="", user_rewards=(f"{folder}/mine.py:reward",))


def test_a_preflight_that_hangs_is_told_of_with_what_it_was_doing(tmp_path):
    """And as what it is: nothing of ours has failed, and its status is that of a worker that hangs."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    questions = rewarding(tmp_path, f"import time\nopen({str(pipe)!r}, 'w').write('!')\ntime.sleep(1e6)")

    def until_it_hangs():
        assert pipe.read_text() == "!"

    with pytest.raises(WorkerHung, match=r"gave no answer within \d+ s; it was still rehearsing") as raised:
        examine(questions, until_it_hangs, limit_s=0.1)
    assert questions.user_rewards[0] in str(raised.value)
    assert raised.value.exit_code == 11


@pytest.mark.parametrize(
    ("line", "how"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV and printed nothing"),
        ("print('why', flush=True); import os; os._exit(7)", "ended with exit status 7; its last line: why"),
    ],
)
def test_the_death_of_the_preflight_by_a_users_code_is_told_of_that_code(tmp_path, line, how):
    """Nobody waits for what the code has left before."""
    with leftover_processes.leftover_helpers(tmp_path) as leaves:
        questions = rewarding(tmp_path, leaves + line)
        with pytest.raises(UsageError) as raised:
            examine(questions)
    doing = f"which was rehearsing {questions.user_rewards[0]}"
    assert str(raised.value) == f"your code ended the preflight, {doing}: the process {how}"


PRINTS = """import atexit, os, sys
sys.stdout.write('half')
os.write(1, b'\\xff{')
assert not sys.stdin.read()
atexit.register(os._exit, 3)
"""
DRAWS = "import numpy as np\ndraw = np.random.default_rng().normal\n"


def test_the_answer_is_whole_whatever_a_users_code_prints_and_however_much_was_asked(tmp_path):
    """Half a line, bytes that are no text, by any descriptor; more questions than the system takes as an argument."""
    (tmp_path / "prints.py").write_text(PRINTS + REWARD)
    (tmp_path / "draws.py").write_text(DRAWS + REWARD.replace("return ", "return draw() + "))
    settings = ControllerSettings(name="wait")
    asked = tuple(ControllerQuestion(group=f"{n:0250}", settings=settings, blueprints=("norm",)) for n in range(600))
    rewards = tuple(f"{tmp_path}/{name}.py:reward" for name in ("prints", "draws"))
    questions = Questions(task="synthetic", data_dir="", user_rewards=rewards, controllers=asked)
    assert len(msgspec.json.encode(questions)) > 1 << 17
    found = examine(questions)
    assert [(one.problem, one.repeats) for one in found.user_rewards] == [("", True), ("", False)]
    assert found.controller_problems == {}


def test_nothing_waits_for_the_processes_and_threads_that_a_trainer_leaves(tmp_path):
    """Not the rehearsal, the preflight or this process, whose pipes they inherit; its code at exit runs."""
    path = Path(trainers.python_file(tmp_path))
    with leftover_processes.leftover_helpers(tmp_path) as leaves:
        at_exit = f"import atexit\natexit.register(pathlib.Path({str(tmp_path / 'left')!r}).touch)\n"
        path.write_text(f"{leaves}{at_exit}{path.read_text()}")
        questions = Questions(
            task=f"{TRAINER_PREFIX}mine",
            data_dir="",
            user_rewards=(),
            trainer=trainers.question(str(path), tmp_path),
            trainer_outcome=Measure(name="outcome", label="score", better="higher"),
        )
        found = examine(questions).trainer
    assert found is not None
    assert (found.problem, found.resumption) == ("", "exactly")
    assert (tmp_path / "left").exists()
