import json
import shlex

import pytest
from support.elsewhere import csv_text, drawn, rows, scales
from support.journals import Shape, Synthetic, write

from esper_ab import judge_outcomes
from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import group
from esper_ab.contracts.errors import UsageError
from esper_ab.readers.external_plan import make_external_plan, save_plan
from esper_ab.readers.joint_directory import Joint, JointPart, write_joint
from esper_ab.settings.parts import folder_of
from esper_ab.verdict.analysis_plan import Rule


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A plan for ten seeds, and outcomes of all of them in which new is better."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results.csv").write_text(csv_text(rows(*drawn(10, 8.0))))
    assert invoke(group, ["design", "--groups", "new,old", "--seeds", "10", "--margin", "2"], "esper-ab") == 0
    return tmp_path


def _run(capsys, *args):
    capsys.readouterr()
    status = invoke(group, args, "esper-ab")
    return status, *capsys.readouterr()


def test_a_plan_is_written_followed_and_required(files, capsys):
    status, out, _ = _run(capsys, "judge", "plan.json", "results.csv", "--fail-unless", "new better-than old")
    assert status == 0
    assert "new is better than old" in out
    status, out, err = _run(capsys, "judge", "plan.json", "results.csv", "--fail-unless", "old better-than new")
    assert (status, err.startswith('error: "old better-than new" does not hold')) == (12, True)
    status, out, _ = _run(capsys, "judge", "plan.json", "results.csv", "--json")
    assert json.loads(out)["comparisons"][0]["verdict"] == "BETTER"


def test_seeds_are_run_in_the_order_told(files, capsys):
    status, out, _ = _run(
        capsys, "design", "--groups", "a,b", "--seeds", "7,3,5,1,9,11", "--margin", "1", "--out", "p.json", "--json"
    )
    assert (status, json.loads(out)["looks"]) == (0, [6])
    assert json.loads((files / "p.json").read_text())["plan"]["replicates"] == ["7", "3", "5", "1", "9", "11"]


def test_scores_wait_until_every_task_has_a_run(files, capsys):
    design = ("design", "--groups", "new,old", "--seeds", "10", "--tasks", "A,B", "--margin", "2")
    assert _run(capsys, *design, "--out", "p.json")[0] == 0
    found = rows(*drawn(10, 8.0), task="A")
    (files / "one.csv").write_text(csv_text(found, header="group,seed,outcome,task"))
    status, out, _ = _run(capsys, "judge", "p.json", "one.csv", "--scores", "0..100")
    assert (status, "The next look is after " in out, "Scores over all tasks" in out) == (0, True, False)
    both = [*found, *rows(*drawn(10, 8.0), task="B")]
    (files / "both.csv").write_text(csv_text(both, header="group,seed,outcome,task"))
    status, out, _ = _run(capsys, "judge", "p.json", "both.csv", "--scores", "0..100")
    assert (status, "Scores over all tasks" in out) == (0, True)


def test_scores_wait_for_the_cells_to_be_chosen(files, capsys):
    design = ("design", "--groups", "new,old", "--seeds", "8", "--cells", "p,q", "--choose", "2", "--margin", "2")
    assert _run(capsys, *design, "--out", "p.json")[0] == 0
    (files / "one.csv").write_text(csv_text(rows(*drawn(2, 8.0), task="p"), header="group,seed,outcome,task"))
    status, out, _ = _run(capsys, "judge", "p.json", "one.csv", "--scores", "0..100")
    assert (status, "Cells must be chosen" in out) == (0, True)


def test_outcomes_without_a_plan_are_compared_and_called_exploratory(files, capsys):
    status, out, _ = _run(capsys, "judge", "results.csv", "--margin", "2", "--unit", "%")
    assert status == 0
    assert out.startswith("EXPLORATORY.")
    assert "points" in out


@pytest.mark.parametrize("parts", [("digits", "mixture"), ("digits, ppo.lr=1e-4", "digits, ppo.lr=1e-3")])
def test_of_a_joint_experiment_the_parts_are_named_as_they_can_be_judged(tmp_path, monkeypatch, capsys, parts):
    monkeypatch.chdir(tmp_path)
    shapes = {"new": Shape(accuracy=90.0), "old": Shape(accuracy=60.0, mode="simplified")}
    for part in parts:
        write(tmp_path / "both" / folder_of(part), Synthetic(groups=shapes, replicates=6).events())
    plan = make_external_plan(tuple(shapes), tuple("012345"), scales(tasks=parts), Rule())
    joint = Joint(parts=tuple(JointPart(name=one, folder=folder_of(one), digest="0" * 64) for one in parts), scores={})
    write_joint(tmp_path / "both", joint, {})
    save_plan(plan, tmp_path / "both" / "plan.json")
    status, _, err = _run(capsys, "judge", "both/plan.json", "both")
    assert status == 2
    named = shlex.split(err.rpartition("judge takes them by name: ")[2])
    status, out, err = _run(capsys, "judge", "both/plan.json", *named)
    assert status == 0, err
    assert "new is better than old" in out
    with pytest.raises(UsageError, match="judge_outcomes takes them by name"):
        judge_outcomes(plan, "both")
