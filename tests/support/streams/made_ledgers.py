"""Ledgers of candidates with known differences."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from esper_ab.stream.deciding import decide
from esper_ab.stream.entries import Begun, Decided, IncumbentMeasured, Opened, Setup
from esper_ab.stream.ledger import Ledger
from esper_ab.stream.progress import StreamProgress, fold
from esper_ab.stream.question import StreamQuestion

QUESTION = StreamQuestion(train="train.py:train", folder="/nowhere", better="higher", outcome="score")


def new_ledger(folder: Path, question: StreamQuestion = QUESTION) -> Ledger:
    """Return the ledger of a stream whose incumbent was measured at 1.0 to 2.0."""
    folder.mkdir(exist_ok=True)
    ledger = Ledger(folder)
    ledger.append(Opened(question=question, incumbent=Setup(), unchanged={}, versions={}))
    ledger.append(IncumbentMeasured(incumbent=0, experiment="incumbent-0", rng_seed=1, outcomes=(1.0, 1.5, 2.0)))
    return ledger


def begin(ledger: Ledger, rate: float) -> Begun:
    """Append a candidate with this setting, and return it."""
    progress = fold(ledger.entries)
    number = len(progress.candidates) + 1
    candidate = Begun(
        number=number,
        incumbent=progress.incumbent.number,
        setup=Setup(settings={"trainer.rate": rate}),
        note=f"rate {rate:g}",
        level=progress.next_level,
        experiment=f"candidate-{number}",
        rng_seed=100 + number,
    )
    ledger.append(candidate)
    return candidate


def pairs_of(difference: float, seeds: int, number: int) -> list[tuple[float, float]]:
    """Return outcomes of pairs that differ by `difference` on average, with an SD of 1."""
    rng = np.random.default_rng([7, number])
    incumbent_outcomes = rng.normal(1.5, 1.0, seeds)
    outcomes = incumbent_outcomes + rng.normal(difference, 1.0, seeds)
    return list(zip(incumbent_outcomes.tolist(), outcomes.tolist(), strict=True))


def finish(ledger: Ledger, candidate: Begun, difference: float) -> Decided:
    """Append what pairs that differ by `difference` decide, at the first look that decides."""
    progress = fold(ledger.entries)
    question = progress.question
    pairs = pairs_of(question.sign * difference, question.seeds, candidate.number)
    for look in question.looks:
        if (decided := decide(question, candidate, look, pairs[:look])) is not None:
            ledger.append(decided)
            if decided.decision == "accepted":
                number = candidate.number
                outcomes = (1.5 + difference, 1.6 + difference)
                name = f"incumbent-{number}"
                ledger.append(
                    IncumbentMeasured(incumbent=number, experiment=name, rng_seed=1000 + number, outcomes=outcomes)
                )
            return decided
    raise AssertionError("the last look decides")


def tried(ledger: Ledger, differences: Sequence[float]) -> StreamProgress:
    """Try a candidate for each of these true differences, and return the progress."""
    for number, difference in enumerate(differences):
        finish(ledger, begin(ledger, float(number)), difference)
    return fold(ledger.entries)
