import pytest
from support.elsewhere import scales
from support.journals import Shape, Synthetic, write

from esper_ab.analysis.pairs import pairs_of
from esper_ab.contracts.errors import UsageError
from esper_ab.design.design import Contrast
from esper_ab.external.experiments import read_experiments
from esper_ab.external.judge import judge
from esper_ab.external.plan import Rule, make_external_plan
from esper_ab.journal.load import load

GROUPS = {"shaped": Shape(accuracy=90.0), "simplified": Shape(accuracy=60.0, mode="simplified")}
TASKS = ("digits", "mixture")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("experiments")
    for task in TASKS:
        write(place / task, Synthetic(groups=GROUPS, replicates=6).events())
    return [(task, place / task) for task in TASKS]


def test_endpoints_are_those_of_the_experiments_pairs(folders):
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
    assert [str(one.comparison.verdict) for one in result.comparisons] == ["BETTER"] * 3
    assert result.departures == ()


def test_a_task_that_is_lacking_and_another_direction_are_refused(folders):
    for named in (folders[:1], [*folders, folders[0]]):
        with pytest.raises(UsageError, match="the plan needs task"):
            read_experiments(named, scales(tasks=TASKS))
    with pytest.raises(UsageError, match="higher is better, and in the plan lower"):
        read_experiments(folders, scales(tasks=TASKS, better="lower"))
