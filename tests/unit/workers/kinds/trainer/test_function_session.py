from pathlib import Path
from typing import Any

import pytest
from support.workers import trainers
from support.worlds.tensor_world import quiet

from esper_ab.contracts.errors import CodeChanged
from workers.kinds.trainer.kind import open_session
from workers.kinds.trainer.running import ScriptFailed
from workers.kinds.trainer.session import TrainerSession


def session(tmp_path: Path, settings: dict[str, Any], **changes: Any) -> TrainerSession:
    fields = {"eval_episodes": 1, "resumes": False} | changes
    spec = trainers.spec(trainers.function(tmp_path), tmp_path, settings, **fields)
    return open_session(spec, tmp_path, ("",))


def test_a_run_of_a_function_has_a_record_per_value_of_its_curve(tmp_path: Path) -> None:
    run = session(tmp_path, {"lr": 2.0})
    points = [run.train(point, quiet, quiet) for point in range(3)]
    outcomes = [point.envs[0].outcome for point in points]
    assert [int(outcome / 2) for outcome in outcomes] == [0, 1, 2]
    assert [point.envs[0].measures for point in points] == [{"loss_train": -outcome} for outcome in outcomes]
    assert [episode.result.outcome for episode in run.evaluate(tmp_path, quiet).episodes] == [outcomes[-1]]


def test_a_run_resumed_after_its_last_point_does_not_call_the_function(tmp_path: Path) -> None:
    run = session(tmp_path, {})
    checkpoints = [run.train(point, quiet, quiet) and run.checkpoint() for point in range(3)]
    assert checkpoints[:2] == [None, None]
    assert checkpoints[2] is not None
    resumed = session(tmp_path, {"fault": "raises"})
    resumed.resume_from(checkpoints[2])
    assert resumed.evaluate(tmp_path, quiet).digest == run.evaluate(tmp_path, quiet).digest


def test_records_of_a_function_depend_on_settings_and_seed(tmp_path: Path) -> None:
    digests = [
        session(tmp_path, settings, **changes).train(0, quiet, quiet).digest
        for settings, changes in (({"lr": 0.1}, {}), ({}, {}), ({}, {"rng_seed": 1}))
    ]
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


def test_the_error_of_a_raising_function_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(ScriptFailed, match=r"^train failed: ValueError: lr must be positive \(of mine\.py, line 7\)$"):
        session(tmp_path, {"fault": "raises"}).train(0, quiet, quiet)


def test_a_run_that_returns_unplanned_numbers_fails(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"^train returned the numbers Loss/train besides the outcome, but none in the"
    ):
        session(tmp_path, {}, metrics={}).train(0, quiet, quiet)
    with pytest.raises(ValueError, match=r"^train returned no 'return', but 'score' and 'Loss/train'; name one"):
        session(tmp_path, {}, outcome="return").train(0, quiet, quiet)


def test_only_a_changed_copy_of_a_function_is_refused(tmp_path: Path) -> None:
    run = session(tmp_path, {})
    (tmp_path / "of mine.py").write_text("raise RuntimeError('the next idea')")
    assert run.train(0, quiet, quiet).episode == 0
    spec = run.spec
    (tmp_path / "copy" / "of mine.py").write_text("pass")
    with pytest.raises(
        CodeChanged, match=r"of mine\.py:train: its copy in .* was changed since the experiment was planned"
    ):
        open_session(spec, tmp_path, ("",))


SEEN = """
import os


def train(seed, device):
    return float(device == "cuda") + len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))
"""


def test_a_run_of_a_function_on_two_gpus_sees_both(tmp_path: Path) -> None:
    reference = trainers.function(tmp_path)
    (tmp_path / "of mine.py").write_text(SEEN)
    spec = trainers.spec(reference, tmp_path, {}, eval_episodes=1, resumes=False, metrics={}, episodes=1)
    point = open_session(spec, tmp_path, ("GPU-a", "GPU-b")).train(0, quiet, quiet)
    assert point.envs[0].outcome == 3.0
