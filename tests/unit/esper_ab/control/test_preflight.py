"""The preflight as a process: hangs and deaths in user code are reported by name."""

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


def question_with_reward(folder, line):
    (folder / "mine.py").write_text(line + REWARD)
    return Questions(task="synthetic", data_dir="", user_rewards=(f"{folder}/mine.py:reward",))


@pytest.mark.usefixtures("warm_children")
def test_a_hanging_preflight_is_reported_with_its_current_step(tmp_path):
    """Its exit status is that of a hung worker, not of an internal error."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    questions = question_with_reward(tmp_path, f"import time\nopen({str(pipe)!r}, 'w').write('!')\ntime.sleep(1e6)")

    def wait_until_it_hangs():
        assert pipe.read_text() == "!"

    with pytest.raises(WorkerHung, match=r"gave no answer within \d+ s; it was still rehearsing") as hang_error:
        examine(questions, wait_until_it_hangs, limit_s=0.1)
    assert questions.user_rewards[0] in str(hang_error.value)
    assert hang_error.value.exit_code == 11


@pytest.mark.parametrize(
    ("line", "exit_words"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV and printed nothing"),
        ("print('why', flush=True); import os; os._exit(7)", "ended with exit status 7; its last line: why"),
    ],
)
def test_a_preflight_killed_by_user_code_is_reported_with_the_code(tmp_path, line, exit_words):
    """The preflight does not wait for processes that the code left."""
    with leftover_processes.leftover_helpers(tmp_path) as leaves:
        questions = question_with_reward(tmp_path, leaves + line)
        with pytest.raises(UsageError) as refusal:
            examine(questions)
    current_work = f"which was rehearsing {questions.user_rewards[0]}"
    assert str(refusal.value) == f"your code ended the preflight, {current_work}: the process {exit_words}"


PRINTS = """import atexit, os, sys
sys.stdout.write('half')
os.write(1, b'\\xff{')
assert not sys.stdin.read()
atexit.register(os._exit, 3)
"""
DRAWS = "import numpy as np\ndraw = np.random.default_rng().normal\n"


@pytest.mark.usefixtures("warm_children")
def test_the_answer_of_the_preflight_is_complete_despite_output_of_user_code(tmp_path):
    """User code writes half a line and invalid UTF-8; the questions exceed the length limit of an argument."""
    (tmp_path / "prints.py").write_text(PRINTS + REWARD)
    (tmp_path / "draws.py").write_text(DRAWS + REWARD.replace("return ", "return draw() + "))
    settings = ControllerSettings(name="wait")
    controllers = tuple(
        ControllerQuestion(group=f"{n:0250}", settings=settings, blueprints=("norm",)) for n in range(600)
    )
    rewards = tuple(f"{tmp_path}/{name}.py:reward" for name in ("prints", "draws"))
    questions = Questions(task="synthetic", data_dir="", user_rewards=rewards, controllers=controllers)
    assert len(msgspec.json.encode(questions)) > 1 << 17
    facts = examine(questions)
    assert [(reward.problem, reward.repeats) for reward in facts.user_rewards] == [("", True), ("", False)]
    assert facts.controller_problems == {}


@pytest.mark.usefixtures("warm_children")
def test_the_preflight_does_not_wait_for_processes_of_a_trainer(tmp_path):
    """The processes inherit the pipes of rehearsal, preflight and this process; code at exit runs."""
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
        facts = examine(questions).trainer
    assert facts is not None
    assert (facts.problem, facts.resumption) == ("", "exactly")
    assert (tmp_path / "left").exists()
