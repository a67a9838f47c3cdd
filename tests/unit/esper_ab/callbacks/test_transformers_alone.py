"""What the callback keeps of a Trainer's logs, also where transformers is not installed."""

import importlib
import json
import math
import sys
from types import ModuleType, SimpleNamespace

import pytest

MAIN = SimpleNamespace(is_world_process_zero=True)
OTHER = SimpleNamespace(is_world_process_zero=False)


@pytest.fixture
def writer(tmp_path, monkeypatch):
    """Return the callback, whose base class has nothing but its name."""
    library = ModuleType("transformers")
    library.TrainerCallback = type("TrainerCallback", (), {})
    monkeypatch.setitem(sys.modules, "transformers", library)
    monkeypatch.delitem(sys.modules, "esper_ab.callbacks.transformers", raising=False)
    module = importlib.import_module("esper_ab.callbacks.transformers")
    monkeypatch.delitem(sys.modules, "esper_ab.callbacks.transformers")
    return module.WriteLogs(tmp_path)


def log(writer, numbers, state=MAIN):
    writer.on_log(None, state, None, logs=numbers, model=None)


def result(tmp_path):
    return json.loads((tmp_path / "result.json").read_text())


def test_the_result_has_the_last_of_each_number(writer, tmp_path):
    for numbers in ({"loss": 3.0, "epoch": 1}, {"eval_loss": 2.0}, {"loss": 1.0, "epoch": 2}):
        log(writer, numbers)
    assert result(tmp_path) == {"loss": 1.0, "epoch": 2.0, "eval_loss": 2.0}
    assert writer.curves["loss"] == [3.0, 1.0]


def test_texts_are_left_out(writer, tmp_path):
    log(writer, {"loss": 1.0, "note": "resumed", "table": [1.0]})
    assert result(tmp_path) == {"loss": 1.0}


def test_a_loss_that_is_no_number_is_written(writer, tmp_path):
    log(writer, {"loss": float("nan")})
    assert math.isnan(result(tmp_path)["loss"])


def test_only_the_main_process_writes(writer, tmp_path):
    log(writer, {"loss": 9.0}, OTHER)
    assert list(tmp_path.iterdir()) == []
    log(writer, {"loss": 1.0})
    log(writer, {"loss": 9.0}, OTHER)
    assert result(tmp_path) == {"loss": 1.0}


def test_a_log_without_numbers_is_no_error(writer, tmp_path):
    log(writer, None)
    assert result(tmp_path) == {}
