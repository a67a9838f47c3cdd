"""Starts in waves, with real processes: so many at a time, whatever becomes of them, and the same records."""

from __future__ import annotations

from itertools import accumulate

from support import conducted, fake_plans, slow_start

from esper_ab.analysis.trained_by import result_hash
from esper_ab.control.rules import workers
from esper_ab.journal.fold import fold
from esper_ab.launchers.local import LocalLauncher

PLAN = fake_plans.plan(7, ("a", "b"), seeds=5, episodes=2)


def test_so_many_processes_start_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "AT_ONCE", 2)
    monkeypatch.setenv(slow_start.VARIABLE, str(tmp_path / "starts"))
    events = conducted.run(tmp_path / "run", PLAN, launcher=LocalLauncher("support.slow_start:main"))
    lanes = len(PLAN.lanes)
    starts = (tmp_path / "starts").read_text()
    assert starts.count(slow_start.BEGINS) == starts.count(slow_start.ENDS) == lanes + 1
    assert max(accumulate(1 if what == slow_start.BEGINS else -1 for what in starts)) <= 2
    assert conducted.counts(events) == {"worker_death": 1, "restart": 1}
    assert result_hash(fold(events)) == result_hash(fold(conducted.run(tmp_path / "threads", PLAN)))
