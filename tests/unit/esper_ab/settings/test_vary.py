"""--vary: its groups, their names, and the options that it excludes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans.requests import by_name, toml

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.records import GROUP_NAME
from esper_ab.contracts.run_files import plain_group
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.parse import parse
from esper_ab.settings.request import read_request

TRAINED = {"trainer": "mine.py", "higher": "score", "margin": 1.0}
COMMAND = TRAINED | {"trainer": "python t.py --lr {lr} {seed} {out}"}


def parse_vary(text: str, **options: object) -> AskedExperiment:
    return parse(read_request({"vary": text, **options}))


@pytest.mark.parametrize("options", [TRAINED, COMMAND])
def test_vary_makes_a_group_of_every_value(options: dict[str, object]) -> None:
    request = parse_vary("lr=3e-4, 1e-3,adaptive", **options)
    assert {name: settings.trainer for name, settings in by_name(request).items()} == {
        "lr=3e-4": {"lr": "3e-4"},
        "lr=1e-3": {"lr": "1e-3"},
        "lr=adaptive": {"lr": "adaptive"},
    }
    assert request.control == "lr=3e-4"


@pytest.mark.parametrize(
    ("key", "options", "values"),
    [
        ("ppo.lr", {}, [1.0, 2.0]),
        ("trainer.lr", TRAINED, ["1", "2"]),
        ("ppo.lr", {"task": "gym:CartPole-v1", "margin": 5.0}, [1.0, 2.0]),
    ],
)
def test_vary_accepts_dotted_keys(key: str, options: dict[str, object], values: list[object]) -> None:
    groups = by_name(parse_vary(f"{key}=1,2", **options))
    assert list(groups) == [f"{key}=1", f"{key}=2"]
    assert [settings.trainer.get("lr", settings.ppo.lr) for settings in groups.values()] == values


def test_settings_for_all_groups_also_apply_to_groups_made_by_vary() -> None:
    groups = by_name(parse_vary("ppo.lr=1e-3,3e-3", set=["ppo.gamma=0.9"]))
    assert [(settings.ppo.lr, settings.ppo.gamma) for settings in groups.values()] == [(1e-3, 0.9), (3e-3, 0.9)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("x=a b,c", "x=a-b"),
        ("x=runs/one.csv,c", "x=runs-one.csv"),
        ("x=(1;2),c", "x=-1-2-"),
        ("x=ü,c", "x=-"),
        ("x=-1,1", "x=-1"),
        ("x=+1,1", "x=+1"),
        ("x=1e-3,1", "x=1e-3"),
        (f"x={'a' * 99},c", f"x={'a' * 62}"),
    ],
)
def test_group_names_keep_every_character_allowed_in_file_names(text: str, name: str) -> None:
    assert next(iter(by_name(parse_vary(text, **TRAINED)))) == name


@given(
    values=st.lists(
        st.text(st.characters(exclude_characters="\"'([{"), min_size=1, max_size=80), min_size=2, max_size=4
    ),
    key=st.sampled_from(["lr", "_x", "a.b"]),
)
def test_group_names_are_valid_file_names_and_unique(values: list[str], key: str) -> None:
    try:
        groups = by_name(parse_vary(f"{key}={','.join(values)}", **TRAINED))
    except UsageError:
        return
    assert all(re.fullmatch(GROUP_NAME, name) for name in groups)
    assert len(groups) == len(",".join(values).split(","))


PLAIN = st.from_regex(r"[A-Za-z0-9_.+-]{1,30}", fullmatch=True)


@given(values=st.lists(PLAIN, min_size=2, max_size=4, unique_by=plain_group))
def test_plain_values_of_vary_are_kept_in_group_names(values: list[str]) -> None:
    assert [*by_name(parse_vary(f"lr={','.join(values)}", **TRAINED))] == [f"lr={value}" for value in values]


@pytest.mark.parametrize("text", ['groups = ["shaped", "sparse"]', "[group.fast]\nppo.lr = 1.0"])
def test_vary_is_refused_with_a_file_that_declares_groups(tmp_path, text: str) -> None:
    with pytest.raises(UsageError, match="the file also declares groups"):
        read_request({"vary": "ppo.lr=1,2"}, toml(tmp_path, text))
    request = parse(read_request({"vary": "ppo.lr=1,2"}, toml(tmp_path, 'control = "shaped"\nppo.gamma = 0.9')))
    assert request.control == "ppo.lr=1"
    assert {group.settings.ppo.gamma for group in request.groups} == {0.9}


@pytest.mark.parametrize("text", ["lr=a b,a;b", "lr=ä,日本", f"lr={'a' * 70}1,{'a' * 70}2"])
def test_values_of_vary_with_the_same_group_name_are_refused(text: str) -> None:
    first_value, second_value = text.removeprefix("lr=").split(",")
    with pytest.raises(UsageError, match=r"two groups would be named lr=.* keeps only the letters a to z") as refusal:
        parse_vary(text, **TRAINED)
    assert f"--group first:trainer.lr={first_value} --group second:trainer.lr={second_value}" in str(refusal.value)
    with pytest.raises(UsageError, match="the value 3 is given twice"):
        parse_vary("lr=3,3", **TRAINED)


DOTTED = TRAINED | {"trainer": "python t.py a={algo.lr} b={trainer.epochs} c={learning-rate} {seed} {out}"}


@pytest.mark.parametrize("key", ["algo.lr", "trainer.epochs", "learning-rate", "trainer.algo.lr"])
def test_a_placeholder_of_a_command_can_contain_dots_and_dashes(tmp_path, key: str) -> None:
    """It can also look like one of our settings or begin with our prefix, as in Hydra and Lightning."""
    name = "algo.lr" if key == "trainer.algo.lr" else key
    keys = ("algo.lr", "trainer.epochs", "trainer.learning-rate")
    fixed_settings = [f"{other_key}=7" for other_key in keys if not other_key.endswith(name)]
    values = [settings.trainer for settings in by_name(parse_vary(f"{key}=1,2", set=fixed_settings, **DOTTED)).values()]
    assert [trainer[name] for trainer in values] == ["1", "2"]
    assert {frozenset(trainer) for trainer in values} == {frozenset(("algo.lr", "trainer.epochs", "learning-rate"))}


def test_a_dotted_key_without_a_placeholder_in_the_command_is_refused() -> None:
    with pytest.raises(UsageError, match=r"the command has no \{model.lr\}"):
        parse_vary("model.lr=1,2", **COMMAND, set=["trainer.lr=1"])
