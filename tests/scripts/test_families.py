"""scripts/simulation/families: what is simulated of several tasks is what `judge` decides, whatever unit they have."""

from __future__ import annotations

import numpy as np
from simulation import families, laws
from support.elsewhere import outcomes

from esper_ab.readers.external_plan import make_external_plan, scales_of
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.judge import judge


def test_the_simulated_decisions_are_those_of_judge():
    family, rng = families.RULES[0], np.random.default_rng(5)
    of_tasks = families.differences(family, laws.LAWS[0], 0.3, 12, 0.5, rng)
    truth = families.truths(family, families.PATTERNS["0, 1, 2 in turn"]) * 3.0
    d = of_tasks * 0.5 + truth[:, None]
    simulated = families.follow(family, d)
    scales = (*scales_of(("task 0",), 2.0), *scales_of(("task 1",), 50.0, better="lower"))
    plan = make_external_plan(("a", "b"), tuple(map(str, range(family.replicates))), scales, Rule())
    seen = set()
    for index, by_task in enumerate(d):
        rows = [
            {"group": group, "seed": seed, "task": f"task {task}", "outcome": value}
            for task, unit in ((0, 1.0), (1, -25.0))
            for seed in range(family.replicates)
            for group, value in (("a", 100.0 + unit * by_task[task, seed]), ("b", 100.0))
        ]
        for place, one in enumerate(judge(plan, outcomes(rows)).comparisons):
            crossed = bool(simulated.crossed[index, place])
            assert (one.course.decision == "crossed") == crossed
            assert one.used == simulated.replicates[index, place]
            seen.add(crossed)
    assert seen == {True, False}
