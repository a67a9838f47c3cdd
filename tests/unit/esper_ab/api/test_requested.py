"""Experiments declared in Python: their settings, independence from each other, and refusals."""

import copy
import pickle
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import esper_ab
from esper_ab import ABExperiment, ABVariant, create_experiment, parse_experiment
from esper_ab.api.requested import about, parse_declaration, tracking_of
from esper_ab.api.setting_names import dotted
from esper_ab.contracts.errors import UsageError
from esper_ab.settings.differences import pairs_by_axes
from esper_ab.trackers.settings import Tracking

RATES = create_experiment("rates").add_variant("slow", ppo__lr=1e-4).add_variant("fast", ppo__lr=1e-3)
KEYS = {
    "ppo.lr": st.floats(1e-6, 1.0),
    "ppo.epochs": st.integers(1, 9),
    "growth.seed_lr": st.floats(1e-6, 1.0),
    "growth.blueprints": st.sampled_from([["norm"], ("norm", "attention")]),
    "policy.hidden": st.integers(2, 99),
    "reward.mode": st.sampled_from(["sparse", "simplified"]),
    "reward.rent_weight": st.floats(0.0, 2.0),
}
SETTINGS = st.fixed_dictionaries({}, optional=KEYS)
SPELLINGS = (
    lambda settings: {key.replace(".", "__"): value for key, value in settings.items()},
    lambda settings: settings,
    lambda settings: {
        section: {key.partition(".")[2]: value for key, value in settings.items() if key.startswith(f"{section}.")}
        for section in {key.partition(".")[0] for key in settings}
    },
)


def by_name(experiment):
    return {group.name: group.settings for group in parse_experiment(experiment).groups}


def test_every_exported_name_exists():
    assert dir(esper_ab) == sorted([*esper_ab.__all__, "__version__"])
    assert [getattr(esper_ab, name).__name__ for name in esper_ab.__all__] == [*esper_ab.__all__]


def test_settings_of_a_variant_override_the_base_config():
    base = {"episodes": 2, "n_envs": 3, "task": "synthetic", "ppo__lr": 0.5, "ppo__epochs": 2}
    experiment = parse_experiment(RATES.set_runs_per_variant(7).set_base_config(base).build())
    assert (experiment.name, experiment.seeds, experiment.episodes, experiment.n_envs, experiment.task) == (
        "rates",
        7,
        2,
        3,
        "synthetic",
    )
    settings = [(group.name, group.settings.ppo.lr, group.settings.ppo.epochs) for group in experiment.groups]
    assert settings == [("slow", 1e-4, 2), ("fast", 1e-3, 2)]


@given(settings=SETTINGS, spelling=st.sampled_from(SPELLINGS))
def test_every_spelling_of_a_key_gives_the_same_settings(settings, spelling):
    second_variant = ABVariant("other")
    plain_experiment = ABExperiment("x", variants=[ABVariant("a", overrides=settings), second_variant])
    spelled_experiment = ABExperiment("x", variants=[ABVariant("a", overrides=spelling(settings)), second_variant])
    assert by_name(spelled_experiment) == by_name(plain_experiment)
    assert dotted(spelling(settings)) == dotted(settings)


@given(variants=st.lists(SETTINGS, min_size=2, max_size=5))
def test_adding_a_variant_does_not_change_earlier_builders(variants):
    start = create_experiment("x")
    builders = [start]
    for index, settings in enumerate(variants):
        builders.append(builders[-1].add_variant(f"v{index}", overrides=settings))
    joint_groups = by_name(builders[-1].build())
    for index, settings in enumerate(variants):
        separate_experiment = ABExperiment(
            "x", variants=[ABVariant(f"v{index}", overrides=settings), ABVariant("other")]
        )
        assert joint_groups[f"v{index}"] == by_name(separate_experiment)[f"v{index}"]
        assert [variant.name for variant in builders[index].so_far.variants] == [f"v{i}" for i in range(index)]


def test_numpy_numbers_become_python_numbers():
    rates = np.logspace(-4, -3, 2)
    declared_experiment = (
        create_experiment("x")
        .add_variant("a", ppo__lr=rates[0])
        .add_variant("b", ppo__lr=rates[1])
        .set_runs_per_variant(np.int64(3))
        .set_base_config(episodes=np.int32(2), looks=[np.int64(3)])
        .build()
    )
    experiment = parse_experiment(declared_experiment)
    assert [group.settings.ppo.lr for group in experiment.groups] == list(rates)
    assert (experiment.seeds, experiment.episodes, experiment.looks) == (3, 2, (3,))
    msgspec.json.encode(experiment)  # numpy's numbers could not be encoded
    for wrong_value, text in ((np.float32(2), "2.0"), (True, "True")):
        with pytest.raises(UsageError, match=f"expected int, not {text}"):
            RATES.set_base_config(episodes=wrong_value).build()


class Mine(ABExperiment):
    """An experiment as a subclass of a user."""

    def __init__(self):
        super().__init__(name="mine")
        self.rates = [0.1, 0.2]
        self.add_variant(ABVariant("a", overrides={"ppo__lr": self.rates[0]}))
        self.runs_per_variant = 3


def test_a_mistyped_attribute_of_an_experiment_is_refused():
    for mistyped_name, meant_name in (("runs_per_varaint", "runs_per_variant"), ("base_confg", "base_config")):
        with pytest.raises(AttributeError, match=rf"no such attribute; did you mean {meant_name}\?"):
            setattr(Mine(), mistyped_name, 3)


def test_built_experiments_share_no_mutable_data():
    overrides = {"growth.blueprints": ["norm"]}
    tags = ["one"]
    base = {"devices": ["cpu:0"]}
    builder = create_experiment("x").add_variant("a", overrides=overrides, tags=tags).add_variant("b")
    builder = builder.set_base_config(base)
    first_experiment = builder.build()
    second_experiment = builder.build()
    parsed_before = parse_experiment(second_experiment), about(second_experiment), tracking_of(second_experiment)
    for argument in (overrides["growth.blueprints"], tags, base["devices"]):
        argument.append("more")
    first_experiment.variants[0].overrides["growth.blueprints"].append("attention")
    first_experiment.variants[0].tags.append("two")
    first_experiment.variants.append(ABVariant("c"))
    first_experiment.base_config["devices"].append("cpu:1")
    assert (
        parse_experiment(second_experiment),
        about(second_experiment),
        tracking_of(second_experiment),
    ) == parsed_before
    assert builder.build() == second_experiment != first_experiment


def test_an_experiment_can_be_copied_and_pickled():
    original_experiment = RATES.set_base_config(episodes=2).build()
    for duplicate in (copy.deepcopy(original_experiment), pickle.loads(pickle.dumps(original_experiment))):
        assert duplicate == original_experiment
        assert parse_experiment(duplicate) == parse_experiment(original_experiment)


def test_changing_one_experiment_object_does_not_change_another():
    changed_experiment = Mine()
    untouched_experiment = ABExperiment("other")
    changed_experiment.variants.append(ABVariant("b", overrides={"reward": "sparse"}))
    changed_experiment.base_config = {"episodes": 4}
    assert (parse_experiment(changed_experiment).episodes, parse_experiment(changed_experiment).seeds) == (4, 3)
    assert (untouched_experiment.variants, dict(untouched_experiment.base_config)) == ([], {})


def test_variants_that_differ_in_two_settings_are_listed_with_both_settings():
    experiment_of_two = create_experiment("x").add_variant("a").add_variant("b", ppo__lr=0.1, ppo__epochs=2).build()
    assert pairs_by_axes(parse_experiment(experiment_of_two).groups) == {("a", "b"): ("ppo.lr", "ppo.epochs")}


def test_relative_paths_are_resolved_against_the_folder_of_the_file(tmp_path):
    experiment = ABExperiment("x", variants=[ABVariant("a", overrides={"reward": "mine.py:reward"}), ABVariant("b")])
    groups = parse_experiment(experiment, tmp_path).groups
    assert groups[0].settings.reward.mode == f"{tmp_path / 'mine.py'}:reward"
    relative_experiment = ABExperiment("x", variants=experiment.variants, base_config={"data_dir": tmp_path / "data"})
    assert parse_experiment(relative_experiment).data_dir == str(tmp_path / "data")


# --- tracking -------------------------------------------------------------------------------------------------------


def test_trackers_receive_name_description_and_tags():
    built = (
        create_experiment("x", description="why", date="2026-01-31")
        .add_variant("a", tags=["one"], run="label")
        .add_variant("b")
        .set_tracking(wandb="offline", tensorboard=True)
        .set_wandb_config(entity="lab")
        .build()
    )
    assert tracking_of(built) == Tracking(
        wandb="offline",
        wandb_entity="lab",
        wandb_project="ab_test_x_2026-01-31",
        tensorboard=True,
        description="why",
        tags={"a": ("one", "label")},
    )
    assert about(built)["date"] == "2026-01-31"


def test_tracking_changes_no_setting_of_the_experiment():
    tracked_experiment = RATES.set_tracking(tensorboard=True).build()
    assert msgspec.json.encode(parse_experiment(tracked_experiment)) == msgspec.json.encode(
        parse_experiment(RATES.build())
    )
    assert parse_declaration(RATES.build(), Path()).tracking == Tracking()


# --- refused --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: RATES.add_variant("c", ppo__lr="high").build(), "variant 'c': ppo.lr: expected float, not 'high'"),
        (lambda: RATES.add_variant("c", ppo__lr=-1.0).build(), "variant 'c': ppo.lr: expected float >= 0.0"),
        (lambda: RATES.add_variant("a b").build(), "group name 'a b'"),
        (lambda: RATES.set_base_config(seeds=3).set_runs_per_variant(4).build(), "seeds is set twice"),
        (lambda: RATES.set_tracking(wandb_project=Path("x")), "expected text"),
        (
            lambda: parse_experiment(ABExperiment("x", variants=RATES.so_far.variants, date=7)),
            "the date of an experiment must be text, not 7",
        ),
        (
            lambda: parse_experiment(ABExperiment("x", variants=[ABVariant("a", tags=3), ABVariant("b")])),
            "tags must be",
        ),
        (
            lambda: parse_experiment(ABExperiment("x", variants=[ABVariant(1), ABVariant("b")])),
            "the name of a variant must be text",
        ),
    ],
)
def test_an_unsupported_option_is_refused_in_one_line(declare, message):
    with pytest.raises(UsageError) as caught:
        declare()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
