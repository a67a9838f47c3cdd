import hashlib
import json
from pathlib import Path

import pytest
from support.outcomes.csv_outcomes import scales

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.cells import LONGEST_NAME
from esper_ab.readers.external_plan import make_external_plan, read_plan, save_plan, write_plan
from esper_ab.readers.external_table import observations_of
from esper_ab.verdict.analysis_plan import Rule, make_plan
from esper_ab.verdict.judge import judge

FORMAT_1 = Path(__file__).parents[3] / "golden" / "plan_format_1.json"


def _plan(groups=("new", "old"), seeds=10, tasks=("",), **rule):
    return make_external_plan(groups, tuple(map(str, range(seeds))), scales(tasks=tasks), Rule(**rule))


def test_saving_a_plan_never_replaces_a_file(tmp_path):
    plan = _plan()
    file = tmp_path / "plan.json"
    save_plan(plan, file)
    assert read_plan(file) == plan
    with pytest.raises(UsageError, match="never replaced"):
        save_plan(_plan(seeds=6), file)
    assert read_plan(file) == plan
    file.write_text(f"\ufeff{file.read_text()}")  # by an editor that was only to show it
    assert read_plan(file) == plan


def _leaves(document, path=()):
    inner = isinstance(document, (dict, list))
    for key, value in (document.items() if isinstance(document, dict) else enumerate(document)) if inner else ():
        yield from _leaves(value, (*path, key))
    if not inner:
        yield path


def _changed(value):
    return value + 1 if isinstance(value, (int, float)) and not isinstance(value, bool) else f"{value}x"


def test_a_plan_with_any_changed_value_is_refused(tmp_path):
    written_plan = json.loads(write_plan(_plan()))
    file = tmp_path / "plan.json"
    for path in _leaves(written_plan):
        changed_plan = json.loads(json.dumps(written_plan))
        *parents, key_changed = path
        parent = changed_plan
        for key in parents:
            parent = parent[key]
        parent[key_changed] = _changed(parent[key_changed])
        file.write_text(json.dumps(changed_plan))
        with pytest.raises(UsageError, match=r"was changed|is not a plan"):
            read_plan(file)


def test_the_longest_names_allowed_in_a_table_can_be_planned():
    group = "g" * LONGEST_NAME
    task = "t" * LONGEST_NAME
    plan = _plan((group, "old"), tasks=(task, "other"))
    columns = {"group": [group, "old"], "seed": ["0", "0"], "task": [task, task], "outcome": ["1", "2"]}
    assert observations_of("f", columns, (2, 3)).groups == plan.groups


def test_names_of_grid_cells_may_be_longer_than_names_in_a_table():
    cells = tuple(f"{'policy.hidden=64, ' * 4}ppo.lr={lr}" for lr in (1, 2))
    assert make_plan(("new", "old"), tuple("012345"), scales(tasks=cells), Rule()).tasks == cells


def test_a_new_field_does_not_change_the_digest_of_an_old_plan(tmp_path):
    """A plan of a version that had neither cells nor stops for futility is read, and is called what it was called."""
    written_plan = json.loads(write_plan(_plan()))
    file = tmp_path / "plan.json"
    del written_plan["plan"]["cells"], written_plan["plan"]["choosing"], written_plan["plan"]["design"]["futility"]
    text = json.dumps(written_plan["plan"], separators=(",", ":"))
    written_plan["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    file.write_text(json.dumps(written_plan, indent=1))
    plan = read_plan(file)
    assert plan.digest == written_plan["sha256"] != _plan().digest
    assert plan == _plan()
    new_file = tmp_path / "again.json"
    save_plan(_plan(), new_file)
    assert read_plan(new_file).digest == _plan().digest


def test_a_plan_in_format_1_keeps_its_digest():
    """It said endpoint where a plan, or a table, says outcome_over now: somebody may be in the middle of a study."""
    plan = read_plan(FORMAT_1)
    assert plan.digest == "aea86bf5d563522e3a04dedc9f405eec9dbc5a346b158983a8e6fa9fe52f02ed"
    assert (plan.design.outcome_over, plan.groups, plan.design.looks) == ("given", ("new", "old"), (10, 14, 20))
    rows = [
        {"group": group, "seed": str(seed), "endpoint": str(70 + seed % 3 + (group == "new") * (3 + seed % 2))}
        for seed in range(20)
        for group in plan.groups
    ]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    answer = judge(plan, observations_of("runs.csv", columns, range(2, len(rows) + 2)))
    assert [comparison.verdict for comparison in answer.comparisons] == ["BETTER"]
