"""Try one candidate: refuse it, or compare it with the incumbent on fresh seeds until it is decided."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from esper_ab.campaign.campaign import CampaignPlan
from esper_ab.contracts.errors import UsageError, WorkerFailed, WorkerHung
from esper_ab.contracts.wording import counted
from esper_ab.gate.asked import spelled_as_file
from esper_ab.settings.schema import SHORT
from esper_ab.stream.asked import pair_campaign
from esper_ab.stream.cut_off import refuse_cut_off
from esper_ab.stream.deciding import decide
from esper_ab.stream.entries import Begun, Decided, Refused, Setup
from esper_ab.stream.ledger import Ledger, appending
from esper_ab.stream.opening import fresh_rng_seed, measure
from esper_ab.stream.outcomes import has_begun, pairs_of
from esper_ab.stream.progress import StreamProgress, fold
from esper_ab.stream.proposal import Proposal
from esper_ab.stream.question import StreamQuestion
from esper_ab.stream.running import planned, report_of, run_to, start
from esper_ab.stream.states import changed_words, digests, seal_setup


class CandidateRefused(UsageError):
    """A candidate that is not compared, because it changes what must stay as it is or is the incumbent."""


@dataclass(frozen=True)
class TriedCandidate:
    """What a candidate came to, and the stream after it."""

    progress: StreamProgress
    candidate: Begun | None  # None: it failed before it was compared
    decided: Decided | None
    failure: str = ""  # of a candidate that failed before it was compared
    report: Path | None = None
    repeated: bool = False  # an earlier answer on the same candidate


def try_candidate(folder: Path, proposal: Proposal, *, gives_up: bool) -> TriedCandidate:
    """Try a candidate, or go on with it after an interruption.

    `gives_up`: if another candidate is unfinished, give that one up. Raises CandidateRefused after it has recorded
    that, UsageError if the stream is in use, is not there, or has another unfinished candidate, and JournalError if
    the ledger lacks lines.
    """
    with appending(folder) as ledger:
        refuse_cut_off(ledger)
        measure(ledger, fold(ledger.entries))
        progress = fold(ledger.entries)
        setup = _setup(ledger, progress, proposal)
        candidate = progress.unfinished
        if candidate is not None and candidate.setup.identity != setup.identity:
            _give_up(ledger, candidate, gives_up=gives_up)
            progress = fold(ledger.entries)
            candidate = None
        plan = None
        if candidate is None:
            if not proposal.again and (answer := progress.answered(setup)) is not None:
                return TriedCandidate(progress, *answer, report=_present_report(folder, answer[0]), repeated=True)
            _check(ledger, progress, setup, proposal.note)
            try:
                plan, candidate = _plan(folder, progress, setup, proposal.note)
            except UsageError as error:
                ledger.append(Refused(setup=setup, note=proposal.note, reason=str(error), failed=True))
                return TriedCandidate(fold(ledger.entries), None, None, failure=str(error))
            ledger.append(candidate)
        decided = _compare(ledger.folder, progress, candidate, plan)
        ledger.append(decided)
        measure(ledger, fold(ledger.entries))
        report = report_of(folder, candidate.experiment) if has_begun(folder, candidate.experiment) else None
        return TriedCandidate(fold(ledger.entries), candidate, decided, report=report)


def _setup(ledger: Ledger, progress: StreamProgress, proposal: Proposal) -> Setup:
    """Return the candidate's setup: its own code and settings over those of the incumbent."""
    incumbent = progress.incumbent.setup
    settings = {**incumbent.settings, **proposal.settings}
    if not proposal.code:
        return Setup(
            code=incumbent.code,
            code_words=incumbent.code_words,
            tree=incumbent.tree,
            inside=incumbent.inside,
            settings=settings,
        )
    if not progress.question.code:
        raise UsageError(
            "candidate: code: this stream compares settings only; make one with the key code in stream.toml"
        )
    with spelled_as_file():
        return seal_setup(ledger.folder, proposal.code, Path(progress.question.folder), settings)


def _give_up(ledger: Ledger, candidate: Begun, *, gives_up: bool) -> None:
    if not gives_up:
        raise UsageError(
            f"candidate {candidate.number} is unfinished; send the same one again to go on with it, or add --give-up, "
            "which ends it and has spent its level"
        )
    reason = "another candidate was sent before this one was decided"
    ledger.append(Decided(number=candidate.number, decision="given up", reason=reason, look=0, pairs=()))


def _check(ledger: Ledger, progress: StreamProgress, setup: Setup, note: str) -> None:
    """Record and raise CandidateRefused if the candidate must not be compared."""
    question = progress.question
    reason = ""
    if setup.inside != progress.incumbent.setup.inside:
        place_words = progress.incumbent.setup.inside or "the top of the repository"
        reason = f"its runs would not work in {place_words}, where those of the incumbent do"
    elif _identity(question, setup) == _identity(question, progress.incumbent.setup):
        reason = "it is the incumbent: the same files and settings"
    else:
        present = digests(ledger.folder, setup, question.unchanged, Path(question.folder))
        reason = changed_words(progress.unchanged, present)
    if reason:
        ledger.append(Refused(setup=setup, note=note, reason=reason))
        raise CandidateRefused(f"candidate refused: {reason}")


def _identity(question: StreamQuestion, setup: Setup) -> tuple[str, bytes]:
    """Return what two setups have in common that train alike: files and settings, those of the question among them."""
    common_values = {SHORT.get(key, key): value for key, value in question.settings.items()}
    return setup.tree, msgspec.json.encode({**common_values, **setup.settings}, order="sorted")


def _plan(folder: Path, progress: StreamProgress, setup: Setup, note: str) -> tuple[CampaignPlan, Begun]:
    """Rehearse and plan the comparison; UsageError if the candidate cannot be trained."""
    number = len(progress.candidates) + 1
    name = f"candidate-{number}"
    rng_seed = fresh_rng_seed(progress)
    with spelled_as_file():
        plan = planned(pair_campaign(folder, progress, setup, name, rng_seed))
    candidate = Begun(
        number=number,
        incumbent=progress.incumbent.number,
        setup=setup,
        note=note,
        level=progress.next_level,
        experiment=name,
        rng_seed=rng_seed,
    )
    return plan, candidate


def _compare(folder: Path, progress: StreamProgress, candidate: Begun, plan: CampaignPlan | None) -> Decided:
    """Train from look to look until the candidate is decided. `plan`: None for one that was interrupted."""
    question = progress.question
    look = question.looks[0]
    try:
        if not has_begun(folder, candidate.experiment):
            if plan is None:  # its command was killed before the experiment began
                with spelled_as_file():
                    plan = planned(
                        pair_campaign(folder, progress, candidate.setup, candidate.experiment, candidate.rng_seed)
                    )
            start(plan)
        for look in question.looks:
            run_to(folder, question, candidate.experiment, look)
            pairs = pairs_of(folder, candidate.experiment, look)
            if pairs.lost:
                reason = f"{pairs.lost} of its {counted(look, 'run')} failed"
                break
            if (decided := decide(question, candidate, look, pairs.outcomes)) is not None:
                return decided
    except (WorkerFailed, WorkerHung) as error:
        reason = " ".join(str(error).split())
        pairs = pairs_of(folder, candidate.experiment, look)
    return Decided(number=candidate.number, decision="failed", reason=reason, look=look, pairs=pairs.outcomes)


def _present_report(folder: Path, candidate: Begun) -> Path | None:
    """Return the report of an earlier candidate; None if its experiment was removed."""
    return report_of(folder, candidate.experiment) if has_begun(folder, candidate.experiment) else None
