from pathlib import Path

import msgspec
import pytest
from support.workers import trainers

from esper_ab.contracts.trainer import TrainerOrder
from workers.kinds.trainer.interrupted import prepare_folder
from workers.kinds.trainer.words import CommandLine

RESUMES = "python train.py {seed} {lr} --out {out} --resume {resume}/state"


def order_of(tmp_path: Path, command: str = RESUMES) -> TrainerOrder:
    trainers.command(tmp_path)
    spec = trainers.spec(command, tmp_path, {"lr": "1"}, directory=tmp_path)
    assert spec.trainer is not None
    return spec.trainer


def begin(tmp_path: Path, order: TrainerOrder) -> Path:
    """Begin an attempt of a run; return its folder."""
    out = tmp_path / order.out
    line = CommandLine(order.reference, tmp_path, out)
    prepare_folder(tmp_path, order, line, line.own_values(3, "a-0", "cpu"))
    return out


def files_after_an_attempt(tmp_path: Path, order: TrainerOrder, next_order: TrainerOrder) -> list[str]:
    """Return the names of the files with which the second attempt begins."""
    out = begin(tmp_path, order)
    (out / "state").write_text("half")
    (out / "log.csv").write_text("x")
    return sorted(path.name for path in begin(tmp_path, next_order).iterdir())


def test_a_resuming_command_keeps_the_files_of_an_interrupted_attempt(tmp_path: Path) -> None:
    order = order_of(tmp_path)
    assert files_after_an_attempt(tmp_path, order, order) == ["log.csv", "state"]


@pytest.mark.parametrize("command", ["python train.py {seed} {lr} {out}", RESUMES.replace("/state", "/other")])
def test_a_command_without_a_state_to_resume_gets_an_empty_folder(tmp_path: Path, command: str) -> None:
    order = order_of(tmp_path, command)
    assert files_after_an_attempt(tmp_path, order, order) == []


def test_a_run_does_not_resume_after_the_files_of_the_command_changed(tmp_path: Path) -> None:
    order = order_of(tmp_path)
    mended = msgspec.structs.replace(order, sha256="1" * 64)
    assert files_after_an_attempt(tmp_path, order, mended) == []
    assert files_after_an_attempt(tmp_path, mended, mended) == ["log.csv", "state"]


def test_a_run_does_not_resume_from_foreign_files(tmp_path: Path) -> None:
    order = order_of(tmp_path)
    (tmp_path / order.out).mkdir(parents=True)
    (tmp_path / order.out / "state").touch()
    assert list(begin(tmp_path, order).iterdir()) == []
