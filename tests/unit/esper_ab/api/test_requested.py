"""Experiments as Python: what a declaration asks for, what it leaves alone, and what is refused in which words."""

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


def test_variants_are_groups_runs_are_replicates_and_a_variants_own_settings_win():
    base = {"episodes": 2, "n_envs": 3, "task": "synthetic", "ppo__lr": 0.5, "ppo__epochs": 2}
    asked = parse_experiment(RATES.set_runs_per_variant(7).set_base_config(base).build())
    assert (asked.name, asked.seeds, asked.episodes, asked.n_envs, asked.task) == ("rates", 7, 2, 3, "synthetic")
    settings = [(group.name, group.settings.ppo.lr, group.settings.ppo.epochs) for group in asked.groups]
    assert settings == [("slow", 1e-4, 2), ("fast", 1e-3, 2)]


@given(settings=SETTINGS, spelling=st.sampled_from(SPELLINGS))
def test_every_spelling_of_a_key_gives_the_same_settings(settings, spelling):
    other = ABVariant("other")
    plain = ABExperiment("x", variants=[ABVariant("a", overrides=settings), other])
    spelled = ABExperiment("x", variants=[ABVariant("a", overrides=spelling(settings)), other])
    assert by_name(spelled) == by_name(plain)
    assert dotted(spelling(settings)) == dotted(settings)


@given(variants=st.lists(SETTINGS, min_size=2, max_size=5))
def test_no_variant_knows_of_another_and_no_builder_of_what_was_added_later(variants):
    start = create_experiment("x")
    builders = [start]
    for index, settings in enumerate(variants):
        builders.append(builders[-1].add_variant(f"v{index}", overrides=settings))
    together = by_name(builders[-1].build())
    for index, settings in enumerate(variants):
        alone = ABExperiment("x", variants=[ABVariant(f"v{index}", overrides=settings), ABVariant("other")])
        assert together[f"v{index}"] == by_name(alone)[f"v{index}"]
        assert [variant.name for variant in builders[index].so_far.variants] == [f"v{i}" for i in range(index)]


def test_numbers_of_numpy_are_numbers():
    rates = np.logspace(-4, -3, 2)
    made = (
        create_experiment("x")
        .add_variant("a", ppo__lr=rates[0])
        .add_variant("b", ppo__lr=rates[1])
        .set_runs_per_variant(np.int64(3))
        .set_base_config(episodes=np.int32(2), looks=[np.int64(3)])
        .build()
    )
    asked = parse_experiment(made)
    assert [group.settings.ppo.lr for group in asked.groups] == list(rates)
    assert (asked.seeds, asked.episodes, asked.looks) == (3, 2, (3,))
    msgspec.json.encode(asked)  # they are Python's own from here on
    for wrong, shown in ((np.float32(2), "2.0"), (True, "True")):
        with pytest.raises(UsageError, match=f"expected int, not {shown}"):
            RATES.set_base_config(episodes=wrong).build()


class Mine(ABExperiment):
    """As somebody writes it who subclasses."""

    def __init__(self):
        super().__init__(name="mine")
        self.rates = [0.1, 0.2]
        self.add_variant(ABVariant("a", overrides={"ppo__lr": self.rates[0]}))
        self.runs_per_variant = 3


def test_an_attribute_that_is_mistyped_is_refused_and_those_of_a_subclass_are_not():
    for mistyped, meant in (("runs_per_varaint", "runs_per_variant"), ("base_confg", "base_config")):
        with pytest.raises(AttributeError, match=rf"no such attribute; did you mean {meant}\?"):
            setattr(Mine(), mistyped, 3)


def test_what_is_built_is_nobody_elses_and_a_change_is_in_no_other():
    overrides = {"growth.blueprints": ["norm"]}
    tags = ["one"]
    base = {"devices": ["cpu:0"]}
    builder = create_experiment("x").add_variant("a", overrides=overrides, tags=tags).add_variant("b")
    builder = builder.set_base_config(base)
    first = builder.build()
    second = builder.build()
    asked = parse_experiment(second), about(second), tracking_of(second)
    for theirs in (overrides["growth.blueprints"], tags, base["devices"]):
        theirs.append("more")
    first.variants[0].overrides["growth.blueprints"].append("attention")
    first.variants[0].tags.append("two")
    first.variants.append(ABVariant("c"))
    first.base_config["devices"].append("cpu:1")
    assert (parse_experiment(second), about(second), tracking_of(second)) == asked
    assert builder.build() == second != first


def test_an_experiment_can_be_copied_and_sent_to_another_process():
    made = RATES.set_base_config(episodes=2).build()
    for again in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert again == made
        assert parse_experiment(again) == parse_experiment(made)


def test_an_abexperiment_can_be_changed_and_shares_nothing_with_another():
    one = Mine()
    other = ABExperiment("other")
    one.variants.append(ABVariant("b", overrides={"reward": "sparse"}))
    one.base_config = {"episodes": 4}
    assert (parse_experiment(one).episodes, parse_experiment(one).seeds) == (4, 3)
    assert (other.variants, dict(other.base_config)) == ([], {})


def test_how_many_axes_two_variants_differ_in_is_seen_as_on_the_command_line():
    several = create_experiment("x").add_variant("a").add_variant("b", ppo__lr=0.1, ppo__epochs=2).build()
    assert pairs_by_axes(parse_experiment(several).groups) == {("a", "b"): ("ppo.lr", "ppo.epochs")}


def test_relative_paths_begin_where_the_file_is(tmp_path):
    made = ABExperiment("x", variants=[ABVariant("a", overrides={"reward": "mine.py:reward"}), ABVariant("b")])
    groups = parse_experiment(made, tmp_path).groups
    assert groups[0].settings.reward.mode == f"{tmp_path / 'mine.py'}:reward"
    based = ABExperiment("x", variants=made.variants, base_config={"data_dir": tmp_path / "data"})
    assert parse_experiment(based).data_dir == str(tmp_path / "data")


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


def test_tracking_changes_nothing_that_is_asked_for():
    tracked = RATES.set_tracking(tensorboard=True).build()
    assert msgspec.json.encode(parse_experiment(tracked)) == msgspec.json.encode(parse_experiment(RATES.build()))
    assert parse_declaration(RATES.build(), Path()).tracking == Tracking()


# --- refused --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "said"),
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
def test_an_unsupported_option_is_refused_in_one_line(made, said):
    with pytest.raises(UsageError) as caught:
        made()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
