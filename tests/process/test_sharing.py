"""--share-observation-norm through real coordinators: coupled by the barrier alone, whatever dies on the way.

What a release carries, in every world of faults: tests/unit/esper_ab/control/rules.

The digest of a fake worker's record covers what the release before brought, so records are equal only where releases
were.
"""

from __future__ import annotations

import shutil

from support import fake_plans
from support.conducted import counts, events_of, incidents, of, records, resume, run

from esper_ab.contracts.records import Moments
from esper_ab.journal.events import EpisodeRecorded, MilestoneReleased
from esper_ab.journal.file import JOURNAL_NAME

SHARED = {"share_observation_norm": True}


def released(events):
    """Block and milestone -> the moments of its releases, which are all the same."""
    found = {}
    for event in of(MilestoneReleased, events):
        carried = event.observations if isinstance(event.observations, Moments) else None
        assert found.setdefault((event.replicate, event.milestone), carried) == carried
    return found


def test_start_order_and_turns_change_no_release(tmp_path):
    """Who comes first and whether runs take turns moves no bit."""
    spread = run(tmp_path / "spread", fake_plans.plan(episodes=4, **SHARED))
    turns = run(tmp_path / "turns", fake_plans.plan(cores=1, placement="alternate", episodes=4, **SHARED))
    assert released(turns) == released(spread)
    other = run(tmp_path / "other", fake_plans.plan(groups=("b", "a"), order="fixed", episodes=4, **SHARED))
    assert released(other) == released(spread)


def test_another_group_changes_the_records_of_the_first_which_is_the_coupling(tmp_path):
    def of_a(groups, **settings):
        events = run(tmp_path / "-".join((*groups, *settings)), fake_plans.plan(cores=3, groups=groups, **settings))
        return [event.record.digest for (name, _), event in sorted(records(events).items()) if name == "a/0"]

    two, three = of_a(("a", "b"), **SHARED), of_a(("a", "b", "c"), **SHARED)
    assert sum(one != other for one, other in zip(two, three, strict=True)) == 2  # all but the first episode
    assert of_a(("a", "b")) == of_a(("a", "b", "c"))


def test_a_run_set_back_by_a_damaged_checkpoint_gets_the_old_release_again(tmp_path):
    whole = run(tmp_path / "whole", fake_plans.plan(episodes=4, **SHARED))
    events = events_of(tmp_path / "whole")
    at = max(n for n, event in enumerate(events) if isinstance(event, EpisodeRecorded) and event.record.episode == 2)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "whole", copy)
    lines = (copy / JOURNAL_NAME).read_bytes().splitlines(keepends=True)
    (copy / JOURNAL_NAME).write_bytes(b"".join(lines[: at + 1]))
    for file in (copy / "checkpoints" / "b" / "0").glob("*.pt"):
        file.write_bytes(b"rot")
    again = resume(copy)
    assert counts(again)["damaged_checkpoint"] > 0
    assert records(again) == records(whole)
    assert released(again) == released(whole)
    assert not incidents(again, "inexact_resume")
