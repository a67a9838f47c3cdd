"""The page on looking holds the tables of its data, and the learner's experiment is about the plan that was found."""

from __future__ import annotations

import json
import tomllib

import pytest
from looking import CONTEXTS, DATA, GROWTH, PAGE, ROOT, STEPS, Hosts, filled, outcome

from workers.growth.samples import Shares
from workers.tasks.mixture import TASK


@pytest.fixture(scope="module")
def data():
    return json.loads(DATA.read_text())


def test_the_page_has_the_tables_of_its_data(data):
    page = PAGE.read_text()
    assert filled(page, data) == page
    changed = {**data, "judged": {**data["judged"], "single": 12.3}}
    assert "12.3 %" in filled(page, changed)


def test_the_experiment_s_schedule_is_the_single_plan_that_was_found_and_its_settings_are_the_family_s(data):
    asked = tomllib.loads((ROOT / "scripts" / "looking.toml").read_text())
    assert asked["group"]["schedule"]["controller"]["schedule"] == data["plans"]["all"]["schedule"]
    assert (asked["task"], asked["steps"]) == (TASK.name, STEPS)
    assert (asked["growth"]["batch_size"], asked["growth"]["max_seeds"]) == (GROWTH.batch_size, GROWTH.max_seeds)


def test_hosts_to_judge_on_are_as_many_of_each_context_and_never_the_same():
    hosts = Hosts(3, each=2)
    paths = [path for of_context in hosts.paths for path in of_context]
    assert Shares(TASK, paths).context.tolist() == [0, 0, 1, 1, 2, 2]
    assert len(set(paths)) == len(paths)


def test_an_outcome_says_every_comparison_and_every_group():
    accuracy = dict.fromkeys(CONTEXTS, 50.0)
    found = {"rng_seed": 7, "replicates": 3,
             "comparisons": [{"sentence": "a is BETTER than b"}, {"sentence": "c is WORSE"}],
             "groups": {"a": {"sampled": accuracy, "greedy": accuracy}, "b": {"sampled": accuracy}}}  # fmt: skip
    text = outcome(found)
    for part in ("a is BETTER than b\n- c is WORSE", "| `a` | 50.0", "| `a`, greedy", "| `b` |", "7, 3 seeds"):
        assert part in text
