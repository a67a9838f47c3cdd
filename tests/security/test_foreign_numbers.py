"""A journal with valid CRCs and an extreme value is read, or refused in one line: exit status 0 or 5.

The fast test takes a seeded sample of fields and values, the slow one many more.
"""

import random

import pytest
from support.journals import foreign_numbers as foreign
from support.journals.synthetic import Synthetic

TREES = foreign.trees(Synthetic(replicates=6, episodes=2, n_envs=1, eval_episodes=1, extended_by=2).events())
FIRSTS = {tree["kind"]: number for number, tree in reversed(list(enumerate(TREES)))}
CASES = [
    (number, place, value)
    for number in FIRSTS.values()
    for place in foreign.places(TREES[number])
    for value in foreign.values(foreign.value_at(TREES[number], place))
]


def write_journal(folder, cases):
    """Write a journal with all these values at once."""
    changed_trees = list(TREES)
    for number, place, value in cases:
        changed_trees[number] = foreign.replaced(changed_trees[number], place, value)
    return foreign.write_chain(folder, changed_trees)


def overlap(first_case, second_case):
    """True if two cases change the same place of an event, or one changes a part of the other's."""
    length = min(len(first_case[1]), len(second_case[1]))
    return first_case[0] == second_case[0] and first_case[1][:length] == second_case[1][:length]


def accepted_cases(folder, cases):
    """Return the cases that the types and the fold accept together in one journal."""
    chosen_cases = []
    for case in cases:
        if any(overlap(case, earlier_case) for earlier_case in chosen_cases):
            continue
        if foreign.is_accepted(write_journal(folder, [*chosen_cases, case])):
            chosen_cases.append(case)
    return chosen_cases


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("experiment_started", "plan.design.alpha", 1e18),
        ("experiment_started", "plan.design.alpha", 5e-324),
        ("experiment_started", "plan.design.margin", 1e308),
        ("experiment_started", "plan.design.positions", -1),
        ("experiment_started", "plan.design.positions", 1e18),
        ("experiment_started", "plan.design.boundaries.0.open", -1),
        ("experiment_started", "plan.design.boundaries.0.nominal_p.0", 1e18),
        ("experiment_started", "plan.design.boundaries", [{"open": 1, "alpha": 0.05, "nominal_p": []}]),
        ("experiment_started", "plan.design.looks", [6, 6]),
        ("experiment_started", "plan.experiment.trainer", "python 't.py {seed} {lr} {out}"),
        ("experiment_started", "plan.experiment.trainer", "\t"),
        ("experiment_started", "plan.blocks.0.runs.0.ref.replicate", 5),
        ("episode", "record.episode", 2**63),
        ("episode", "record.episode", "a raw number: 1e400"),
        ("episode", "record.envs.0.steps", "a raw number: 1e400"),
        ("episode", "record.envs.0.outcome", 1e308),
        ("evaluation", "record.run.replicate", 10**18),
    ],
)
def test_a_value_out_of_range_is_refused_in_one_line(tmp_path, capfd, kind, place, value):
    keys = tuple(int(key) if key.isdigit() else key for key in place.split("."))
    folder = write_journal(tmp_path / "received", [(FIRSTS[kind], keys, value)])
    assert not foreign.is_accepted(folder)
    for command in foreign.COMMANDS:
        assert foreign.command_problem(folder, command, tmp_path / "out") == "", command


def check_sample(folder, count, seed):
    chosen_cases = accepted_cases(folder, random.Random(seed).sample(CASES, count))
    assert len(chosen_cases) > count // 10
    journal = write_journal(folder, chosen_cases)
    for command in foreign.COMMANDS:
        problem = foreign.command_problem(journal, command, folder / "exported")
        assert not problem, (command, problem, [(TREES[number]["kind"], *case) for number, *case in chosen_cases])


def test_a_journal_with_extreme_values_is_read_or_refused(tmp_path):
    check_sample(tmp_path / "received", 150, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 41))
def test_many_journals_with_extreme_values_are_read_or_refused(tmp_path, seed):
    check_sample(tmp_path / "received", 200, seed)
