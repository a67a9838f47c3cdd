from pathlib import Path

import pytest
from support.elsewhere import scales
from support.journals import Shape, Synthetic, write

from esper_ab.analysis.observe import pairs_of
from esper_ab.contracts.errors import UsageError
from esper_ab.design.design import Contrast
from esper_ab.journal.events import Incident, RunEvaluated
from esper_ab.journal.load import load
from esper_ab.readers.external_plan import make_external_plan
from esper_ab.readers.joint import read_experiments
from esper_ab.report.content import content
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.judge import judge

GROUPS = {"shaped": Shape(accuracy=90.0), "simplified": Shape(accuracy=60.0, mode="simplified")}
TASKS = ("digits", "mixture")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("experiments")
    for task in TASKS:
        write(place / task, Synthetic(groups=GROUPS, replicates=6).events())
    return [(task, place / task) for task in TASKS]


def test_outcomes_are_those_of_the_experiments_pairs(folders):
    found = read_experiments(folders, scales(tasks=TASKS))
    history = load(folders[0][1]).history
    pairs = pairs_of(history, Contrast(a="shaped", b="simplified"))
    mine = {(row.group, row.replicate): row.value for row in found.rows if row.task == "digits"}
    assert mine == {
        key: end for pair in pairs
        for key, end in ((("shaped", str(pair.replicate)), pair.a), (("simplified", str(pair.replicate)), pair.b))
    }  # fmt: skip


def test_experiments_of_several_tasks_are_judged_together(folders):
    plan = make_external_plan(tuple(GROUPS), tuple("012345"), scales(tasks=TASKS), Rule())
    result = judge(plan, read_experiments(folders, plan.scales))
    assert [str(one.verdict) for one in result.comparisons] == ["BETTER"] * 3
    assert result.departures == ()


def test_a_task_that_is_lacking_and_another_direction_are_refused(folders):
    for named in (folders[:1], [*folders, folders[0]]):
        with pytest.raises(UsageError, match=r"the plan needs task .* as TASK=EXPERIMENT.*; there is digits=/"):
            read_experiments(named, scales(tasks=TASKS))
    with pytest.raises(UsageError, match="higher is better, and in the plan lower"):
        read_experiments(folders, scales(tasks=TASKS, better="lower"))


def test_files_that_no_task_was_given_with_are_shown_as_they_were_typed():
    for tasks, needs in ((TASKS, "task digits as TASK=EXPERIMENT, once"), (("",), "one experiment directory")):
        with pytest.raises(UsageError) as refused:
            read_experiments([("", Path("a.csv")), ("", Path("b.csv"))], scales(tasks=tasks))
        assert str(refused.value) == f"the plan needs {needs}, or all runs in one CSV file; there is a.csv, b.csv"


def test_runs_that_were_cancelled_with_a_failed_one_are_no_failures_of_their_group(tmp_path):
    """The judge of a directory says what its own report says."""
    twins = {"left": Shape(accuracy=70.0), "right": Shape(accuracy=70.05)}
    events = Synthetic(groups=twins, replicates=20, episodes=2, settings={"looks": (20,)}).events()
    lost = {f"{group}/{replicate}": group for group in twins for replicate in (3, 7)}
    kept = [event for event in events if not (isinstance(event, RunEvaluated) and event.record.run.name in lost)]
    kept[-1:-1] = [
        Incident(
            category="dropped_pair" if group == "left" else "cancelled", run_name=name, episode=1, detail="exit code 1"
        )
        for name, group in lost.items()
    ]
    folder = write(tmp_path / "twins", kept)
    history = load(folder).history
    own = content(history).comparisons[0]
    seeds, rule = tuple(map(str, range(20))), Rule(looks=(20,))
    plan = make_external_plan(tuple(twins), seeds, scales(history.design.margin), rule)
    judged = judge(plan, read_experiments([("", folder)], plan.scales)).comparisons[0]
    assert (judged.lost.a, judged.lost.b) == (own.lost.a, own.lost.b) == (2, 0)
    assert judged.lost.cancelled == own.lost.cancelled
    assert judged.verdict == own.verdict
