"""What tells the groups of runs in files of W&B, which are called by random letters."""

from pathlib import Path

import pytest

from esper_ab.contracts.errors import Unanswered
from esper_ab.formats.source_table import SourceTable
from esper_ab.readers.named_runs import name_their_runs, names_of_runs
from esper_ab.readers.reading_rules import ReadingRules

IDS = ("d4xk", "qz0m", "w7ab", "hh2c")
ALGORITHMS = ("ppo", "ppo", "sac", "sac")


def table_of(run="", **settings):
    columns = {"_step": [0, 1], "return": [1.0, 2.0], **{name: [value] * 2 for name, value in settings.items()}}
    roles = {"step": "_step"} | ({"seed": "seed"} if "seed" in settings else {})
    if run:
        columns["run"] = [run] * 2
        roles["run"] = "run"
    return SourceTable(Path("a"), "a W&B run file", columns, range(2), roles=roles, outcomes=("return",))


def names_by(tables, paths=IDS, **rules):
    roles = [table.roles for table in tables]
    pattern, names = names_of_runs("wandb", paths, tables, roles, ReadingRules(**rules))
    return pattern, [(name.group, name.seed) for name in names]


def test_the_users_names_of_runs_tell_groups_and_seeds():
    tables = [table_of(f"{group}-s{seed}") for group in ("ppo", "sac") for seed in range(2)]
    assert names_by(tables) == ("{group}-s{seed}", [("ppo", "0"), ("ppo", "1"), ("sac", "0"), ("sac", "1")])


def test_the_users_folders_tell_groups_if_the_runs_have_no_names():
    folders = [f"runs/{group}-s{seed}/wandb" for group, seed in zip(ALGORITHMS, "0101", strict=True)]
    paths = [f"{folder}/run-20260101_000000-{name}/run-{name}.wandb" for folder, name in zip(folders, IDS, strict=True)]
    tables = [table_of(name, seed=seed) for name, seed in zip(IDS, (0, 1, 0, 1), strict=True)]
    pattern, names = names_by(tables, paths)
    assert names == [("ppo", "0"), ("ppo", "1"), ("sac", "0"), ("sac", "1")]
    assert names_by(tables, paths, runs=pattern) == (pattern, names)


def test_the_user_is_asked_which_setting_is_the_group_if_no_name_tells_it():
    """Settings that all runs share, or that each has a value of its own for, cannot be the group."""
    tables = [
        table_of(name, algo=algorithm, seed=seed, lr=0.1, started=seed * 7 + len(algorithm) + place)
        for place, (name, algorithm, seed) in enumerate(zip(IDS, ALGORITHMS, (0, 1, 0, 1), strict=True))
    ]
    with pytest.raises(Unanswered, match=r"the names of 4 runs do not tell their groups; .* algo differs") as refusal:
        names_by(tables, names={"outcome": "return"})
    (question,) = refusal.value.questions
    assert [answer.value for answer in question.answers] == [{"outcome": "return", "group": "algo"}]


def test_a_pattern_may_describe_the_names_of_runs_or_their_paths():
    tables = [table_of(f"{name}.{group}.1") for name, group in zip("abcd", ALGORITHMS, strict=True)]
    groups = [(group, "") for group in ALGORITHMS]
    assert names_by(tables, runs="*.{group}.1")[1] == groups
    paths = [f"{group}={name}" for group, name in zip(ALGORITHMS, IDS, strict=True)]
    assert names_by(tables, paths, runs="{group}=*")[1] == groups


def test_two_runs_are_two_groups():
    assert names_by([table_of("qz0m"), table_of("w7ab")], IDS[1:3])[1] == [("qz0m", ""), ("w7ab", "")]


def test_only_formats_that_name_runs_are_read_by_these_names():
    assert name_their_runs([table_of("a")])
    assert not name_their_runs([table_of("a"), table_of()])
