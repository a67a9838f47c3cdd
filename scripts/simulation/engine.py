"""The same through the real engine: planner, coordinator, sockets, journal, looks; the workers are threads that report
made-up outcomes (tests/support/fake_worker.py). Every decision must be the one that procedure.py comes to.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from support import fake_plans, fake_worker

from esper_ab.analysis.observe import followed
from esper_ab.contracts.settings import Arithmetic
from esper_ab.control import experiment_run
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.launchers.inline import InlineLauncher
from simulation import laws, procedure, rules
from simulation.laws import Array, Size

RULE = rules.Rule("10 pairs", 10)
LAW, RHO = laws.law_named("device"), 0.3  # lane 1 gives more: the engine has to counterbalance, and to adjust


def check(effect: float, number: int, rng_seed: int) -> Counter[str]:
    """One experiment in which a is better than b by `effect` points; AssertionError where the engine decides otherwise.

    Counts "experiments", "claims" and "wrong" (of the wrong sign, or without an effect), and "missed" intervals.
    """
    outcomes = laws.outcomes(LAW, RHO, Size(1, RULE.replicates), np.random.default_rng([rng_seed, number]))
    outcomes[:, 0] += effect
    with tempfile.TemporaryDirectory() as folder:
        history = conducted(outcomes[0], Path(folder))
    (course,) = followed(history).courses.values()
    expected = procedure.follow(
        rules.design(RULE), rules.differences(RULE, outcomes), rules.sides(RULE), RULE.replicates
    )
    last = course.looks[-1]
    mine = (bool(expected.crossed[0, 0]), bool(expected.equivalent[0, 0]), int(expected.replicates[0, 0]))
    theirs = (course.decision == "crossed", course.decision == "equivalent", last.replicates)
    if mine != theirs or last.low is None or last.high is None or not math.isclose(last.low, expected.low[0, 0]):
        raise AssertionError(f"experiment {number}: {mine} simulated, {theirs} by the engine")
    claims = course.decision == "crossed"
    return Counter(
        experiments=1,
        claims=int(claims),
        wrong=int(claims and course.direction != np.sign(effect)),
        missed=int(not last.low <= effect <= last.high),
    )


def conducted(outcomes: Array, experiment_dir: Path) -> History:
    """A real experiment of groups a and b whose runs come to `outcomes` [2, replicates], percent.

    They hold DEVICE for the runs that should be on lane 1; the worker takes it off and gives it to whoever is there.
    """
    lanes = laws.orders(2, outcomes.shape[1])

    def accuracy(spec: Any, episode: int, env: int) -> float:
        group, replicate = rules.NAMES.index(spec.ref.group_id), spec.ref.replicate
        planned = laws.DEVICE * (lanes[replicate].index(group) == 1)
        return float(outcomes[group, replicate] - planned + laws.DEVICE * (spec.env_devices[env] == "cpu:1"))

    before: Callable[..., float] = fake_worker.accuracy
    fake_worker.accuracy = accuracy
    try:
        loose = Arithmetic(deterministic=False)  # so that device and start order could matter, as they do here
        plan = fake_plans.plan(seeds=outcomes.shape[1], episodes=1, steps=1, margin=rules.MARGIN, arithmetic=loose)
        experiment_run.run(plan, experiment_dir, InlineLauncher("support.fake_worker:main_in_thread"), ())
    finally:
        fake_worker.accuracy = before
    return load(experiment_dir).history
