"""What the callback writes after each evaluation, also where Stable-Baselines3 is not installed."""

import importlib
import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from esper_ab.contracts.trainer import read_source
from workers.kinds.trainer.outcome_sources.left import Left
from workers.kinds.trainer.outcome_sources.read import find_outcome

PACKAGES = ("stable_baselines3", "stable_baselines3.common", "stable_baselines3.common.callbacks")


@pytest.fixture
def make_writer(monkeypatch):
    """Return the class of the callback, whose base class has nothing but its name."""
    modules = {name: ModuleType(name) for name in PACKAGES}
    modules[PACKAGES[-1]].BaseCallback = type("BaseCallback", (), {})
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "esper_ab.callbacks.stable_baselines3", raising=False)
    callback_module = importlib.import_module("esper_ab.callbacks.stable_baselines3")
    monkeypatch.delitem(sys.modules, "esper_ab.callbacks.stable_baselines3")
    return callback_module.WriteEvaluations


def evaluated(writer, mean_reward, best_mean_reward, timesteps):
    """Call the callback as EvalCallback does, which is its parent."""
    writer.parent = SimpleNamespace(last_mean_reward=mean_reward, best_mean_reward=best_mean_reward)
    writer.num_timesteps = timesteps
    return writer._on_step()


def test_the_result_is_the_last_evaluation_with_the_curve_of_all(make_writer, tmp_path):
    writer = make_writer(tmp_path)
    assert evaluated(writer, 10.0, 10.0, 64) is True, "else the training would end"
    assert evaluated(writer, 7.5, 10.0, 128) is True
    assert json.loads((tmp_path / "result.json").read_text()) == {
        "mean_reward": 7.5,
        "best_mean_reward": 10.0,
        "timesteps": 128.0,
        "curve": [10.0, 7.5],
    }


@pytest.mark.parametrize(("name", "value"), [("mean_reward", 7.5), ("best_mean_reward", 10.0)])
def test_a_run_finds_the_outcome_by_its_name(make_writer, tmp_path, name, value):
    writer = make_writer(tmp_path)
    evaluated(writer, 10.0, 10.0, 64)
    evaluated(writer, 7.5, 10.0, 128)
    (tmp_path / "log").touch()
    assert find_outcome(read_source(name), Left(tmp_path, tmp_path / "log", 0)).value == value


def test_by_default_the_result_is_written_where_the_program_runs(make_writer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evaluated(make_writer(), 1.0, 1.0, 1)
    assert (tmp_path / "result.json").exists()
