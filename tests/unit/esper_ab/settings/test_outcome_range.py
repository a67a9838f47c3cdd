"""Ranges of outcomes, and settings of a user's trainer."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans.requests import asked, by_name, toml

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import GroupSettings
from esper_ab.contracts.trainer import TrainerValue
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.outcome_range import read_range, worst_outcome
from esper_ab.settings.trainer_settings import outcome_measure


@given(low=st.none() | st.integers(-9, 0), high=st.none() | st.integers(1, 9))
def test_both_ends_of_an_outcome_range_are_optional(low: int | None, high: int | None) -> None:
    text = f"{'' if low is None else low}..{'' if high is None else high}"
    if text == "..":
        with pytest.raises(UsageError, match="expected LOW"):
            read_range(text)
    else:
        assert read_range(text) == (low, high)


@pytest.mark.parametrize("text", ["1..1", "1..2..3", "nan..5", "-inf..5", "0..1e200", "1...2"])
def test_an_invalid_outcome_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected LOW\.\.HIGH"):
        read_range(text)


COMMAND = "python train.py --seed {seed} --lr {lr} --out {out}"
OUTCOME = {"outcome": "result.json:return", "outcome_better": "higher", "margin": 1.0}
GROUPS = ("slow:trainer.lr=1e-4", "fast:trainer.lr=1e-3")
PYTHON = {"trainer": "mine.py", "outcome_better": "lower", "margin": 1.0}


def trainer_settings(experiment: AskedExperiment) -> dict[str, dict[str, TrainerValue]]:
    return {name: settings.trainer for name, settings in by_name(experiment).items()}


def test_trainer_settings_of_groups_keep_their_spelling() -> None:
    experiment = asked(group=GROUPS, sets=("trainer.note=x y",), **PYTHON)
    assert trainer_settings(experiment) == {
        "slow": {"note": "x y", "lr": "1e-4"},
        "fast": {"note": "x y", "lr": "1e-3"},
    }
    assert (experiment.task, experiment.n_envs, experiment.steps) == ("trainer:mine", 1, 1)
    assert experiment.trainer == str(Path.cwd() / "mine.py")
    request_without_settings = asked("base", "fast", group=GROUPS[1:], **PYTHON)
    assert trainer_settings(request_without_settings) == {"base": {}, "fast": {"lr": "1e-3"}}


def test_a_command_runs_in_the_current_folder() -> None:
    experiment = asked(group=GROUPS, trainer=COMMAND, **OUTCOME)
    assert (experiment.episodes, experiment.eval_episodes, experiment.task) == (1, 1, "trainer:train")
    assert (experiment.trainer, experiment.trainer_folder) == (COMMAND, str(Path.cwd()))


def test_settings_of_a_trainer_in_a_file_keep_their_types(tmp_path: Path) -> None:
    experiment = asked(
        toml=toml(
            tmp_path,
            """
trainer = "mine.py"
outcome_better = "lower"
margin = 1.0
"trainer.note" = "x y"
[group.slow]
trainer.lr = 1e-4
[group.fast.trainer]
lr = 1e-3
deep = true
""",
        )
    )
    assert experiment.trainer == str(tmp_path / "mine.py")
    assert trainer_settings(experiment) == {
        "slow": {"note": "x y", "lr": 1e-4},
        "fast": {"note": "x y", "lr": 1e-3, "deep": True},
    }


def settings_with_lr(tmp_path: Path, value: str) -> GroupSettings:
    """Return the settings of a group whose file sets its learning rate to this TOML value."""
    file = toml(tmp_path, f"[group.slow.trainer]\nlr = 1.0\n[group.fast.trainer]\nlr = {value}")
    return by_name(asked(toml=file, trainer=COMMAND, **OUTCOME))["fast"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("nan", "expected a finite number, not nan; for a command, write the number as text, 'nan'"),
        (
            "9223372036854775808",
            "expected a whole number from -2^63 to 2^63 - 1, not 9223372036854775808; for a command",
        ),
        ('"a\\u0000b"', "expected text without NUL, not 'a\\x00b'"),
    ],
)
def test_the_refusal_of_a_value_too_large_for_a_message_names_its_key(tmp_path: Path, value: str, words: str) -> None:
    with pytest.raises(UsageError) as refusal:
        settings_with_lr(tmp_path, value)
    assert str(refusal.value).startswith(f"run.toml [group.fast.trainer] lr: {words}")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 1.7e308, "inf", "nan", "ü", True])
def test_a_valid_trainer_setting_survives_json(tmp_path: Path, value: TrainerValue) -> None:
    settings = settings_with_lr(tmp_path, json.dumps(value, ensure_ascii=False))
    assert settings.trainer == {"lr": value}
    assert msgspec.json.decode(msgspec.json.encode(settings), type=GroupSettings) == settings


@pytest.mark.parametrize(("better_direction", "worst_value"), [("higher", -1.0), ("lower", 5.0)])
def test_the_outcome_has_the_declared_direction_and_worst_value(better_direction: str, worst_value: float) -> None:
    settings = {"outcome": "wandb:charts/episodic_return", "outcome_range": "-1..5", "outcome_unit": "J", "margin": 1.0}
    experiment = asked(group=GROUPS, trainer=COMMAND, **{**settings, "outcome_better": better_direction})
    measure = outcome_measure(experiment)
    assert (measure.label, measure.unit, measure.better) == ("charts/episodic_return", "J", better_direction)
    assert (measure.low, measure.high, worst_outcome(experiment)) == (-1.0, 5.0, worst_value)
