from pathlib import Path
from typing import Any

import pytest
from support.workers import trainers

from esper_ab.contracts.measures import Measure
from esper_ab.contracts.trainer import TrainerFacts
from workers.kinds.trainer.rehearsal import rehearse

MEASURE = Measure(name="outcome", label="score", better="higher")


def rehearsed(folder: Path, code: str = "", measure: Measure = MEASURE, **changes: Any) -> TrainerFacts:
    """Rehearse the function of `trainers`, or `train` in a file with this code."""
    reference = trainers.function(folder)
    if code:
        (folder / "of mine.py").write_text(code)
    fields = {"points": 100, "groups": {"a": {"lr": "1"}, "b": {}}} | changes
    return rehearse(trainers.question(reference, folder, **fields), measure, lambda message: None)


def test_a_rehearsal_of_a_function_returns_all_facts_for_the_plan(tmp_path: Path) -> None:
    facts = rehearsed(tmp_path)
    assert facts.problem == ""
    assert facts.settings == {"a": {"lr": 1.0, "fault": ""}, "b": {"lr": 0.1, "fault": ""}}
    assert (facts.root, facts.files) == (str(tmp_path), ("of mine.py",))
    assert (facts.points, facts.evaluations, facts.metrics) == (3, 1, {"Loss/train": "loss_train"})
    assert (facts.repeats, facts.resumption) == (True, "anew")


def test_a_curve_longer_than_requested_is_thinned(tmp_path: Path) -> None:
    assert rehearsed(tmp_path, points=2).points == 2


def test_a_rehearsal_detects_a_nondeterministic_function(tmp_path: Path) -> None:
    assert not rehearsed(tmp_path, groups={"a": {"fault": "does not repeat"}}).repeats


def test_curves_of_different_seeds_may_have_different_lengths(tmp_path: Path) -> None:
    facts = rehearsed(tmp_path, "def train(seed): return [seed] * (1 + seed % 7)", groups={"a": {}})
    assert (facts.problem, facts.repeats) == ("", True)
    assert facts.points > 1


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (
            "def train(seed): return 0.5",
            "3 seeds gave the same result (score 0.5), so every seed would repeat the same run; draw all that is "
            "random in train from its seed",
        ),
        (
            "def train(seed): return {'score': 1.0, str(seed): 1.0}",
            "train returned numbers of other names for another seed; return the same in every run",
        ),
        (
            "def train(seed): return {'loss': 1.0}",
            "train returned no 'score', but 'loss'; name one of these as higher or lower",
        ),
        ("def train(seed): return float('nan')", "score was nan in the rehearsal, not a number from -1e+40 to 1e+40; "),
        (
            "def train(seed, lr): return seed",
            "train needs a value for its parameter 'lr'; give every group one, or a default",
        ),
        ("def train(seed): raise OSError('full')", "train failed: OSError: full (of mine.py, line 1)"),
    ],
)
def test_a_function_with_incomparable_runs_is_refused(tmp_path: Path, code: str, problem: str) -> None:
    assert rehearsed(tmp_path, code, groups={"a": {}}).problem.startswith(problem)


def test_function_outcomes_outside_the_declared_range_are_refused(tmp_path: Path) -> None:
    narrow = Measure(name="outcome", label="score", better="higher", low=0.0, high=1.0)
    facts = rehearsed(tmp_path, "def train(seed): return 2 + seed", narrow, groups={"a": {}})
    assert "outside ⟦outcome_range=0..1⟧" in facts.problem


def test_the_settings_that_shorten_a_rehearsal_are_named(tmp_path: Path) -> None:
    code = "def train(seed, steps=100):\n    assert steps == 2\n    return seed"
    facts = rehearsed(tmp_path, code, groups={"a": {}}, rehearsal={"steps": 2})
    assert (facts.problem, facts.shortened, facts.settings) == ("", "steps=2", {"a": {"steps": 100}})


def test_a_function_that_fails_for_a_further_group_is_refused_with_its_name(tmp_path: Path) -> None:
    problem = rehearsed(tmp_path, groups={"a": {}, "b": {"lr": "1"}, "bad": {"fault": "raises"}}).problem
    assert problem == "group 'bad': train failed: ValueError: lr must be positive (of mine.py, line 7)"
