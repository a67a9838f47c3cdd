import re
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from workers.kinds.trainer import module
from workers.kinds.trainer.module import Point

WHOLE = """
from __future__ import annotations
from typing import Literal
import esper_ab

class Settings(esper_ab.TrainerSettings):
    lr: float = 0.1
    steps: int = 3
    clip: bool = True
    kind: Literal["a", "b"] = "a"

def train(run):
    yield run.Point({"return": 1.0}, state=b"")

def evaluate(run, state):
    return 1.0
"""


def load(tmp_path: Path, code: str) -> module.PythonTrainer:
    (tmp_path / "mine.py").write_text(code)
    return module.load(str(tmp_path / "mine.py"))[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {"lr": 0.1, "steps": 3, "clip": True, "kind": "a"}),
        (
            {"lr": "1e-3", "steps": "7", "clip": "false", "kind": "b"},
            {"lr": 1e-3, "steps": 7, "clip": False, "kind": "b"},
        ),
        ({"lr": 1, "steps": 7}, {"lr": 1.0, "steps": 7, "clip": True, "kind": "a"}),
    ],
)
def test_settings_of_a_trainer_are_typed_by_their_struct(tmp_path: Path, values: Any, expected: Any) -> None:
    assert module.flat(load(tmp_path, WHOLE).settings(values)) == expected


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"lrr": 1}, "no setting trainer.lrr; did you mean lr?"),
        ({"momentum": 1}, "no setting trainer.momentum; available settings: lr, steps, clip, kind"),
        ({"steps": "1.5"}, "trainer.steps: expected int, not '1.5'"),
        ({"steps": 1.5}, "trainer.steps: expected int, not 1.5"),
        ({"clip": "yes"}, "trainer.clip: expected bool, not 'yes'"),
        ({"kind": "c"}, "trainer.kind"),
        ({"lr": "nan"}, "trainer.lr: expected a finite number, not nan"),
        ({"lr": "-inf"}, "trainer.lr: expected a finite number, not -inf"),
        (
            {"steps": str(2**63)},
            "trainer.steps: expected a whole number from -2^63 to 2^63 - 1, not 9223372036854775808",
        ),
    ],
)
def test_unknown_or_invalid_trainer_settings_are_refused(tmp_path: Path, values: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        load(tmp_path, WHOLE).settings(values)


SCRIPT = r'if it is a script, write "python /.*/mine\.py --seed {seed} … --out {out}"$'


@pytest.mark.parametrize(
    ("old_text", "new_text", "complaint"),
    [
        (
            "def train(run)",
            "def learn(run)",
            "trainer mine.py: no function 'train'; available: Settings, evaluate, learn",
        ),
        ("def evaluate(run, state)", "def evaluate(run)", r"evaluate must accept the arguments \(run, state\)"),
        ("yield run.Point", "return run.Point", "yields no points"),
        ("esper_ab.TrainerSettings", "object", "Settings must be a class Settings"),
        ("lr: float = 0.1", "lr: float", "Settings.lr has no default"),
        ("import esper_ab", "import esper_abc", "No module named 'esper_abc'"),
        ("import esper_ab", "import esper_ab; raise SystemExit(2)", f"SystemExit: 2; {SCRIPT}"),
        ("def evaluate", "def test", f"no function 'evaluate', which a file with .* needs; {SCRIPT}"),
    ],
)
def test_a_file_that_is_not_a_trainer_is_refused(tmp_path: Path, old_text: str, new_text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        load(tmp_path, WHOLE.replace(old_text, new_text))


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), torch.tensor(3.0), np.array(3)])
def test_numbers_of_any_library_are_accepted(value: Any) -> None:
    assert module.metrics_of(Point({"return": value}, b""), "return") == {"return": 3.0}
    assert module.outcomes_of(value, "return") == [3.0]
    assert module.outcomes_of([{"return": value, "length": 5}, value], "return") == [3.0, 3.0]


@pytest.mark.parametrize("value", [True, np.True_, torch.tensor(True)])
def test_booleans_are_read_as_0_and_1(value: Any) -> None:
    assert module.outcomes_of([value, not value], "return") == [1.0, 0.0]
    assert module.metrics_of(Point({"return": value}, b""), "return") == {"return": 1.0}


@pytest.mark.parametrize("value", ["3", None, [1.0, 2.0], torch.ones(2)])
def test_a_metric_that_is_not_a_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="metric 'return' of a point is"):
        module.metrics_of(Point({"return": value}, b""), "return")


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (
            lambda: module.metrics_of(Point({"loss": 1.0}, b""), "return"),
            r"no metric 'return'.*; it has loss; add it, or name another as higher or lower",
        ),
        (lambda: module.next_point(iter([{"return": 1.0}]), 0, None, "return"), "yielded dict; yield run.Point"),
        (lambda: module.next_point(iter([None]), 0, None, "return"), "yielded NoneType; yield run.Point"),
        (lambda: module.outcomes_of({"length": 1.0}, "return"), "evaluate returned length, but no 'return'"),
        (lambda: module.outcomes_of([], "return"), "empty list"),
    ],
)
def test_a_result_without_the_outcome_is_refused(call: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        call()


@pytest.mark.parametrize(
    "state",
    [
        b"\x00any bytes",
        {},
        {"a": [1, 2.5, None, "x", (True, b"y")], 3: {"deep": torch.arange(3)}},
    ],
)
def test_a_state_is_restored_unchanged(state: Any) -> None:
    assert repr(module.restored(module.saved(state))) == repr(state)


@pytest.mark.parametrize(
    ("state", "complaint"),
    [
        (None, "the state of a point is NoneType"),
        ({"net": torch.nn.Linear(1, 1)}, r"state\['net'\] is torch.nn.*Linear, which cannot be restored"),
        ({"a": [np.ones(2)]}, r"state\['a'\]\[0\] is numpy.ndarray.*torch.from_numpy"),
        ({"a": np.float64(1)}, r"numpy.float64.*float\(number\)"),
        ({np.int64(3): 1}, r"the key .*3.* of state is numpy.int64"),
        ({"a": namedtuple("P", "x y")(1, 2)}, r"state\['a'\] is .*\.P, which cannot be restored"),
    ],
)
def test_a_state_that_needs_code_to_restore_is_refused(state: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        module.saved(state)
