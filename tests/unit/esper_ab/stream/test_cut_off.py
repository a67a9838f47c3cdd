"""Lines that were cut off at the end of a ledger are noticed by the experiments that they announced."""

import pytest
from support.streams.made_ledgers import new_ledger, tried

from esper_ab.contracts.errors import JournalError
from esper_ab.stream.checking import check
from esper_ab.stream.cut_off import refuse_cut_off
from esper_ab.stream.entries import Begun, Decided
from esper_ab.stream.ledger import LEDGER, read_ledger


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a stream whose second candidate of three was accepted, with its experiments."""
    ledger = new_ledger(tmp_path / "stream")
    tried(ledger, [-1.0, 4.0, -1.0])
    for name in ("incumbent-0", "incumbent-2", "candidate-1", "candidate-2", "candidate-3", "mine"):
        (ledger.folder / "experiments" / name).mkdir(parents=True)
    return ledger.folder


def cut(folder, kind, number):
    """Cut the ledger off before an entry."""
    entries = read_ledger(folder).entries
    place = next(i for i, entry in enumerate(entries) if isinstance(entry, kind) and entry.number == number)
    path = folder / LEDGER
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:place]))
    return place


def test_a_whole_ledger_lacks_nothing(folder):
    refuse_cut_off(read_ledger(folder))
    assert check(read_ledger(folder)).problems == ()


def test_a_decision_that_was_not_reached_yet_is_not_missing(folder):
    cut(folder, Decided, 3)
    refuse_cut_off(read_ledger(folder))
    assert check(read_ledger(folder)).problems == ()


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        (Begun, 3, ["experiments/candidate-3 is there, but the ledger has 2 candidates"]),
        (
            Decided,
            2,
            [
                "experiments/candidate-3 is there, but the ledger has 2 candidates",
                "experiments/incumbent-2 is there, but no line says that candidate 2 was accepted",
            ],
        ),
    ],
)
def test_lines_that_were_cut_off_are_named_by_their_experiments(kind, number, expected, folder):
    lines = cut(folder, kind, number)
    ledger = read_ledger(folder)
    assert check(ledger).problems == tuple(f"after line {lines}: lines were cut off: {text}" for text in expected)
    with pytest.raises(JournalError, match=f"{expected[0]}: its last lines were cut off; put back a copy"):
        refuse_cut_off(ledger)
