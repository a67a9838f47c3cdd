"""A finished plan is extended: real coordinator and sockets, workers without torch.

What follows from a look is decided by the machine: tests/unit/esper_ab/control/rules/test_looks.py.
"""

import pytest
from support import fake_plans
from support.conducted import THREADS, counts, of, records, run

from esper_ab.analysis.observe import followed
from esper_ab.contracts.errors import UsageError
from esper_ab.control.experiment_run import extend
from esper_ab.execution.going_on import extension
from esper_ab.journal.events import ExperimentContinued, WorkerStarted
from esper_ab.journal.file import JOURNAL_NAME, read
from esper_ab.journal.load import load


def conducted(experiment_dir, seeds):
    settings = {"groups": ("a1", "a2"), "rng_seed": 1, "n_envs": 1, "episodes": 1, "unpaired": True, "margin": 0.001}
    return run(experiment_dir, fake_plans.plan(seeds=seeds, **settings))


def test_extending_a_finished_plan_goes_on_where_it_ended_under_the_stricter_rule(tmp_path):
    """What is added is what a longer plan would have run, bit for bit."""
    short = tmp_path / "short"
    before = conducted(short, 6)
    with pytest.raises(UsageError, match="already has 6 seeds; give the new total number"):
        extend(short, lambda history: extension(short, history, 6), THREADS, ())
    assert list(read(short / JOURNAL_NAME)) == before
    extend(short, lambda history: extension(short, history, 9), THREADS, ())
    history, events = load(short).history, list(read(short / JOURNAL_NAME))
    assert (history.replicates, history.ended.status) == (9, "finished")
    assert len(of(ExperimentContinued, events)) == 1
    assert {(one.worker, one.incarnation) for one in of(WorkerStarted, events)} >= {("w00", 1), ("w00", 2)}
    assert counts(events) == {}
    (course,) = followed(history).courses.values()
    assert [look.bound_e for look in course.looks] == [None, *[pytest.approx(100.0)] * 3]
    longer = records(conducted(tmp_path / "longer", 9))
    assert {key: one.record.digest for key, one in records(events).items()} == {
        key: one.record.digest for key, one in longer.items()
    }
