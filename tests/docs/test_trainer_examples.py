"""The trainers in docs/examples train, resume from a checkpoint to the same bits, and evaluate."""

import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.workers import trainers
from support.worlds.tensor_world import quiet

from workers.kinds.trainer.kind import open_session

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples" / "trainers"
NO_SB3 = pytest.mark.skipif(find_spec("stable_baselines3") is None, reason="stable-baselines3 is not installed")


@pytest.mark.parametrize(
    ("name", "outcome", "metrics", "settings"),
    [
        ("supervised.py", "error", {"loss": "loss"}, {"steps": 5, "lr": 0.1, "width": 4}),
        pytest.param("sb3.py", "return", {}, {"steps": 128, "rollout": 128}, marks=NO_SB3),
    ],
)
def test_a_resumed_example_trainer_gives_bit_identical_results(tmp_path, name, outcome, metrics, settings):
    spec = trainers.spec(str(EXAMPLES / name), tmp_path, settings, episodes=2, eval_episodes=1)
    spec = replace(spec, trainer=replace(spec.trainer, outcome=outcome, metrics=metrics))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from third-party packages
        whole = open_session(spec, tmp_path, ("",))
        first_record = whole.train(0, quiet, quiet)
        checkpoint = whole.checkpoint()
        second_record = whole.train(1, quiet, quiet)
        evaluation = whole.evaluate(tmp_path, quiet)
        resumed_session = open_session(spec, tmp_path, ("",))
        resumed_session.resume_from(checkpoint)
        assert resumed_session.train(1, quiet, quiet).digest == second_record.digest != first_record.digest
        assert resumed_session.evaluate(tmp_path, quiet).digest == evaluation.digest
