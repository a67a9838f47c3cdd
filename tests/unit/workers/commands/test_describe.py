"""What the preflight process decides itself; the preflight's tests use a real machine."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from support.workers import trainers

from esper_ab.contracts.machine import Machine, Questions
from esper_ab.contracts.measures import Measure
from workers.commands import describe

QUESTIONS = Questions(task="trainer:train", data_dir="", user_rewards=())
MEASURE = Measure(name="outcome", label="return", better="higher")
IMPORTS_TORCH = """
import sys, msgspec
from esper_ab.contracts.machine import Questions
from workers.commands import describe
describe.gpu_is_there = lambda: False
machine = describe.describe(msgspec.json.decode(sys.argv[1], type=Questions))
print(msgspec.json.encode(machine).decode())
print("torch" in sys.modules)
"""


@pytest.mark.parametrize(
    ("reference", "gpu_there", "needed"),
    [
        ("python train.py {seed}", False, False),
        ("/lab/train.py:train", False, False),
        ("python train.py {seed}", True, True),
        ("/lab/train.py", False, True),
    ],
)
def test_the_preflight_needs_torch_only_for_python_trainers_or_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str, gpu_there: bool, needed: bool
) -> None:
    monkeypatch.setattr(describe, "gpu_is_there", lambda: gpu_there)
    trainer = trainers.question(reference, tmp_path)
    assert describe.needs_torch(msgspec.structs.replace(QUESTIONS, trainer=trainer)) == needed
    assert describe.needs_torch(QUESTIONS)


def test_the_preflight_of_a_command_imports_no_torch_without_a_gpu(tmp_path: Path) -> None:
    trainer = trainers.question(trainers.command(tmp_path), tmp_path, gpus=("cuda",))
    questions = msgspec.structs.replace(QUESTIONS, trainer=trainer, trainer_outcome=MEASURE)
    said = subprocess.run(
        [sys.executable, "-c", IMPORTS_TORCH, msgspec.json.encode(questions).decode()],
        capture_output=True,
        text=True,
        check=True,
    )
    answer, imported = said.stdout.splitlines()
    machine = msgspec.json.decode(answer, type=Machine)
    assert imported == "False"
    assert machine.trainer is not None
    assert (machine.trainer.problem, machine.gpu_problem, machine.torch_version != "") == ("", "", True)
    assert {device.name.partition(":")[0] for device in machine.devices} == {"cpu"}
