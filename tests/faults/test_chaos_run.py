"""Workers that are killed and stopped in an experiment of real processes: nothing of it changes a result."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import conducted, fake_plans
from support.chaos import KINDS, MOST_AT_ONE_MILESTONE, Chaos, Fault, plan_faults, striking
from support.fault_checker import check
from support.in_process import done

from esper_ab.analysis.trained_by import result_hash
from esper_ab.control.rules.workers import Limits
from esper_ab.journal.file import JOURNAL_NAME, read
from esper_ab.journal.fold import fold
from esper_ab.launchers.local import LocalLauncher

LIMITS = Limits(floor_s=3.0, start_up_s=60.0)
SIZES = st.integers(1, 9)


def specs(plan):
    return [spec for block in plan.blocks for spec in block.runs]


@given(rng_seed=st.integers(0, 2**40), episodes=SIZES, steps=SIZES, replicates=SIZES)
@settings(max_examples=30)
def test_no_replicate_can_be_lost_by_the_plan(rng_seed, episodes, steps, replicates):
    runs = specs(fake_plans.plan(episodes=episodes, steps=steps, seeds=replicates))
    faults = plan_faults(rng_seed, runs)
    assert max(Counter((fault.run_name, fault.milestone) for fault in faults).values()) <= MOST_AT_ONE_MILESTONE
    assert {fault.kind for fault in faults} == set(KINDS)
    assert all(2 <= fault.milestone <= episodes + 1 and 0 <= fault.step <= steps for fault in faults)


@pytest.mark.parametrize("rng_seed", [7, 8])
def test_signals_to_workers_change_no_result(rng_seed, tmp_path):
    plan = fake_plans.plan(episodes=4, seeds=2, steps=1)
    calm = conducted.run(tmp_path / "calm", plan)
    chaos = Chaos(plan_faults(rng_seed, specs(plan)))
    workers = LocalLauncher("support.fake_worker:main")
    conducted.run(tmp_path / "stormy", plan, chaos, launcher=workers, limits=LIMITS)
    events = check(tmp_path / "stormy", result_hash(fold(calm)))
    struck = Counter(fault.run_name for fault in chaos.struck)
    followed = Counter(entry.run_name for entry in conducted.incidents(events, "worker_death", "hung_worker"))
    assert struck.total() >= 3
    assert set(followed - struck) <= {""}, "a fake worker may have done all its work as the signal reaches it"
    assert followed.total() >= 2


@pytest.mark.slow
@pytest.mark.timeout(1800)  # seven starts of workers with torch, on a machine that may be crowded
def test_kills_of_real_workers_change_no_result(tmp_path):
    asked = [
        "launch", "--groups", "a=shaped,b=random", "--task", "synthetic", "--seeds", "1", "--episodes", "5",
        "--steps", "6", "--n-envs", "2", "--eval-episodes", "2", "--output-dir", tmp_path, "--quiet",
    ]  # fmt: skip
    done(*asked, "--name", "calm")
    faults = (
        Fault(kind="SIGKILL", run_name="a/0", milestone=2), Fault(kind="SIGSEGV", run_name="b/0", milestone=3),
        Fault(kind="SIGABRT", run_name="a/0", milestone=5),
    )  # fmt: skip
    with striking(tmp_path / "stormy", *faults) as chaos:
        done(*asked, "--name", "stormy")
    assert set(chaos.struck) == set(faults)
    check(tmp_path / "stormy", result_hash(fold(read(tmp_path / "calm" / JOURNAL_NAME))))
