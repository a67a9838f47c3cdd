"""A check repeats every number of a ledger, and names the line of one that does not follow."""

import msgspec
import pytest
from support.streams.made_ledgers import begin, new_ledger, tried

from esper_ab.stream.checking import check
from esper_ab.stream.entries import Begun, Decided, IncumbentMeasured
from esper_ab.stream.ledger import Ledger
from esper_ab.stream.progress import fold


@pytest.fixture
def ledger(tmp_path):
    made = new_ledger(tmp_path / "stream")
    tried(made, [-1.0, 4.0, -1.0])
    return made


def test_a_true_ledger_has_no_problems(ledger):
    checked = check(Ledger(ledger.folder))
    assert checked.problems == ()
    assert (checked.entries, checked.journals, checked.removed) == (len(ledger.entries), 0, 5)


def changed(ledger, kind, place, **changes):
    """Change an entry of a kind, as somebody might who then writes the chain anew."""
    places = [index for index, entry in enumerate(ledger.entries) if isinstance(entry, kind)]
    ledger.entries[places[place]] = msgspec.structs.replace(ledger.entries[places[place]], **changes)
    return [problem.partition(": ")[2] for problem in check(ledger).problems]


@pytest.mark.parametrize(
    ("kind", "place", "changes", "problem"),
    [
        (Begun, 0, {"level": 0.01}, "the level of candidate 1 is 0.000961538, not 0.01"),
        (Begun, 1, {"number": 3}, "candidate 3 is the 2th"),
        (Begun, 2, {"incumbent": 0}, "the incumbent is 2, not 0"),
        (Begun, 2, {"rng_seed": 101}, "rng seed 101 was used before, so its runs are not fresh"),
        (IncumbentMeasured, 1, {"incumbent": 1}, "the incumbent is 2, not 1"),
        (Decided, 0, {"decision": "undecided"}, "by its pairs, candidate 1 is rejected, not undecided"),
        (Decided, 0, {"e_value": 99.0}, "e_value is 0.0, not 99.0"),
        (Decided, 0, {"look": 5}, "there is no look after 5 seeds"),
        (Decided, 0, {"number": 2}, "candidate 2 is not the one that was compared"),
        (Decided, 1, {"look": 8}, "by its pairs, candidate 2 is undecided, and goes on, not accepted"),
        (Decided, 0, {"decision": "failed", "e_value": 9.0}, "a candidate that failed has e-value 9"),
    ],
)
def test_a_number_that_does_not_follow_is_named(ledger, kind, place, changes, problem):
    if changes.get("look") == 8:
        entry = [entry for entry in ledger.entries if isinstance(entry, Decided)][1]
        changes = {**changes, "pairs": entry.pairs[:8]}
    assert problem in changed(ledger, kind, place, **changes)


def test_a_candidate_that_begins_before_another_is_decided_is_named(ledger):
    begin(ledger, 8.0)
    begun = begin(ledger, 9.0)
    problems = check(ledger).problems
    assert problems == (
        f"line {len(ledger.entries)}: candidate {begun.number - 1} was not decided before candidate "
        f"{begun.number} began",
    )
    assert fold(ledger.entries).unfinished == begun
