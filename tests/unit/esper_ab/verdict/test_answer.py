from support.elsewhere import drawn, outcomes, rows, scales

from esper_ab.readers.external_plan import make_external_plan
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.answer import with_profiles
from esper_ab.verdict.judge import judge

PLAN = make_external_plan(("new", "old"), tuple(map(str, range(8))), scales(), Rule(control="new"))
FOUND = rows(*drawn(8, 1.0))


def test_profiles_are_of_the_groups_and_runs_of_the_plan():
    unknown = [*rows([90.0], [1.0], first=8), {"group": "third", "seed": 0, "outcome": 90.0}]
    with_others = with_profiles(judge(PLAN, outcomes([*FOUND, *unknown])), {"": (0.0, 100.0)})
    alone = with_profiles(judge(PLAN, outcomes(FOUND)), {"": (0.0, 100.0)})
    assert [(one.group, one.runs) for one in alone.profiles] == [("old", 8), ("new", 8)]
    assert with_others.profiles == alone.profiles


def test_without_ranges_there_are_none():
    assert with_profiles(judge(PLAN, outcomes(FOUND)), {}).profiles == ()
