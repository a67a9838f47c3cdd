"""From command line and file to an experiment: accepted input and precedence; tests/golden/refusals has refusals."""

import math
from pathlib import Path

import pytest
from support.plans.requests import asked, by_name, toml

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import GroupSettings, RewardSettings
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.experiment import Group
from esper_ab.settings.foreign_keys import OURS
from esper_ab.settings.schema import FIELDS
from esper_ab.settings.values import convert_value


def test_a_toml_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert toml(tmp_path, '\ufeffgroups = ["sparse", "wait"]\n').groups == ("sparse", "wait")


@pytest.mark.parametrize("number", ["1" * 5000, f"0x{'f' * 5000}"])
@pytest.mark.parametrize("key", ["rng_seed", "ppo.epochs", "reward.params.rate", "launcher.name", "record.settings"])
def test_a_number_of_thousands_of_digits_is_refused(tmp_path: Path, key: str, number: str) -> None:
    with pytest.raises(UsageError) as refusal:
        toml(tmp_path, f"{key} = {number}\n")
    assert "run.toml" in str(refusal.value)


def test_an_empty_request_compares_shaped_and_simplified_with_default_settings() -> None:
    assert asked().groups == tuple(
        Group(name=mode, settings=GroupSettings(reward=RewardSettings(mode=mode))) for mode in ("shaped", "simplified")
    )
    assert (asked().alpha, asked(alpha=0.01).alpha) == (0.05, 0.01)


def test_group_flags_change_or_add_groups() -> None:
    alterations = ("sparse:ppo.lr=2e-3,growth.batch_size=32", "slow:ppo.lr=1e-4")
    groups = by_name(asked("sparse", "wait", "b=minimal", group=alterations))
    assert {name: settings.reward.mode for name, settings in groups.items()} == {
        "sparse": "sparse",
        "wait": "shaped",
        "b": "minimal",
        "slow": "shaped",
    }
    assert groups["wait"].controller.name == "wait"
    assert (groups["sparse"].ppo.lr, groups["sparse"].growth.batch_size, groups["slow"].ppo.lr) == (2e-3, 32, 1e-4)


def test_group_flags_accept_short_keys_and_lists() -> None:
    lists = 'x:controller=schedule,controller.schedule=["1:germinate:early:blueprint=norm","2:wait"]'
    groups = by_name(asked("shaped", group=(lists, "y:reward=sparse,growth.blueprints=[norm, conv_light]")))
    assert groups["x"].controller.schedule == ("1:germinate:early:blueprint=norm", "2:wait")
    assert groups["y"].growth.blueprints == ("norm", "conv_light")


def test_the_set_flag_changes_all_groups() -> None:
    experiment = asked("shaped", "wait", sets=("ppo.lr=0.5", "episodes=3", "arithmetic.threads=2", "telemetry=false"))
    assert {group.settings.ppo.lr for group in experiment.groups} == {0.5}
    assert (experiment.episodes, experiment.arithmetic.threads, experiment.telemetry) == (3, 2, False)


@pytest.mark.parametrize(
    ("written_path", "mode"),
    [
        ("some/file.py:f", "HERE/some/file.py:f"),
        ("pkg.mod:f", "pkg.mod:f"),
        ("lab:f", "lab:f"),
    ],
)
def test_a_user_file_gets_an_absolute_path(written_path: str, mode: str) -> None:
    assert by_name(asked("shaped", f"mine={written_path}"))["mine"].reward.mode == mode.replace("HERE", str(Path.cwd()))


@pytest.mark.parametrize(
    "text",
    [
        'groups = ["shaped", "mine={}:f"]',
        'groups = ["shaped"]\n[group.mine]\nreward = "{}:f"',
    ],
)
@pytest.mark.parametrize(
    ("written_path", "file"),
    [
        ("file.py", "file.py"),
        ("mine", "mine.py"),
        ("lab.mine", "lab/mine.py"),
        ("lab", "lab/__init__.py"),
    ],
)
def test_paths_in_a_file_are_relative_to_the_file(tmp_path: Path, text: str, written_path: str, file: str) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / file).touch()
    assert by_name(asked(toml=toml(tmp_path, text.format(written_path))))["mine"].reward.mode == f"{tmp_path / file}:f"
    installed_file = toml(tmp_path, text.format("installed.mine"))
    assert by_name(asked(toml=installed_file))["mine"].reward.mode == "installed.mine:f"


def test_flags_override_the_settings_of_a_file(tmp_path: Path) -> None:
    file = toml(
        tmp_path,
        """
        groups = ["shaped", "b=sparse"]
        episodes = 9
        n_envs = 2
        [ppo]
        lr = 0.1
        epochs = 7
        [group.fast]
        reward = "simplified"
        ppo.lr = 0.2
        [group.b.growth]
        batch_size = 16
    """,
    )
    experiment = asked(toml=file, sets=("ppo.epochs=2",), group=("b:growth.batch_size=8",), episodes=3)
    groups = by_name(experiment)
    assert list(groups) == ["shaped", "b", "fast"]
    assert (experiment.episodes, experiment.n_envs) == (3, 2)
    assert [groups[name].ppo.lr for name in groups] == [0.1, 0.1, 0.2]
    assert {settings.ppo.epochs for settings in groups.values()} == {2}
    assert groups["b"].growth.batch_size == 8
    assert groups["fast"].reward.mode == "simplified"
    assert list(by_name(asked("fast", "wait", toml=file))) == ["fast", "wait"]


def test_a_group_table_named_after_a_reward_mode_uses_the_mode(tmp_path: Path) -> None:
    file = toml(tmp_path, "[group.simplified]\nppo.lr = 0.2\n[group.b]\nppo.lr = 0.1")
    assert by_name(asked(toml=file))["simplified"].reward.mode == "simplified"


@pytest.mark.parametrize(
    ("key", "our_names"),
    [
        ("trainer.learning_rate", "here it is called ppo.lr"),
        ("num_timesteps", "here it is called total_timesteps"),
        ("trainer.num_workers", "here it is called n_envs and max_parallel"),
        ("defaults", "Hydra's defaults list has no counterpart"),
        ("trainer.curriculum", "there is no curriculum here; hosts learn the experiment's task"),
        ("trainer.simulation.evaluate_interval", "here it is called eval_episodes"),
    ],
)
def test_the_refusal_of_a_foreign_key_names_the_equivalent_key(key: str, our_names: str) -> None:
    with pytest.raises(UsageError) as caught:
        asked(sets=(f"{key}=1",))
    assert f"unknown key {key!r}; {our_names}" in str(caught.value)


def test_every_suggested_key_exists() -> None:
    assert {key for our_keys in OURS.values() for key in our_keys} <= FIELDS.keys()
    assert not OURS.keys() & FIELDS.keys()


@pytest.mark.parametrize(
    "key",
    [
        "data_dir",
        "task",
        "outcome",
        "trainer",
        "trainer_folder",
        "name",
        "control",
        "outcome_unit",
        "reward.mode",
        "reward.params.path",
        "controller.name",
        "trainer.path",
    ],
)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a:\0/b.py", "expected text without NUL"),
        ("\udcff", "expected text in UTF-8"),
    ],
)
def test_the_refusal_of_text_with_invalid_characters_names_its_key(key: str, text: str, words: str) -> None:
    assignment = Assignment(key, text, f"run.toml {key}", Path("/"), is_text=False)
    with pytest.raises(UsageError, match=rf"run.toml {key}: {words}") as refusal:
        convert_value(assignment)
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("is_text", [False, True])
@pytest.mark.parametrize(("value", "words"), [(math.inf, "a finite number, not inf"), (2**63, r"2\^63 - 1, not 9223")])
def test_a_reward_constant_too_large_for_a_message_is_refused(value: float, words: str, is_text: bool) -> None:
    assignment = Assignment("reward.params.w", str(value) if is_text else value, "origin", Path("/"), is_text)
    with pytest.raises(UsageError, match=f"origin: expected .*{words}"):
        convert_value(assignment)
