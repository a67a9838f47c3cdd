"""Runs that earlier experiments have kept, and that stand for runs of this one: how many, from when and why. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from esper_ab.contracts.wording import counted, listed
from esper_ab.journal.events import ReferencesOpened, RunOffered
from esper_ab.journal.fold import History
from esper_ab.verdict.finding import OLDER_RUNS, Finding

_DAY_CHARS = 10  # of a time in ISO 8601
_DAY_S = 86_400.0


class ReusedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one group that were not trained in this experiment."""

    group: str
    runs: tuple[str, ...]
    finished: int  # runs of the group, with these
    sources: tuple[str, ...]  # the experiments that trained them
    first_trained: str  # ISO 8601
    last_trained: str
    days_old: float  # of the oldest, when this experiment began
    repeats: bool  # whether a seed repeats to the bit, so that one was trained again to check the others
    checked: tuple[str, ...]  # runs of the group that were trained again, and gave the same records
    other_conditions: tuple[str, ...]  # names of conditions that were different for some of them

    @property
    def sentence(self) -> str:
        """How many runs were kept, from when, and on what their use rests."""
        days = sorted({self.first_trained[:_DAY_CHARS], self.last_trained[:_DAY_CHARS]})
        kept_words = (
            f"{len(self.runs)} of {counted(self.finished, 'run')} of {self.group} were kept from {' to '.join(days)} "
            f"({listed(self.sources)})"
        )
        if self.repeats:
            given_words = f"{listed(self.checked)}, trained again, gave the same numbers to the bit"
            if self.other_conditions:
                given_words += f", although {listed(self.other_conditions)} differed"
            return f"{kept_words}: {given_words}."
        return (
            f"{kept_words}, {_age(self.days_old)} old when this began: a seed does not repeat to the bit, so "
            "only the same code, packages and kind of machine say that they compare."
        )


def reused_runs(history: History) -> tuple[ReusedRuns, ...]:
    """Return the reused runs of every group that has some."""
    if history.references is None:
        return ()
    groups = [_reused_runs_of(history, history.references, group) for group in history.groups]
    return tuple(group for group in groups if group is not None)


def reuse_findings(history: History) -> Iterator[Finding]:
    """Yield a note for each group with reused runs, and one if none was reused because a seed gave other numbers."""
    for reused in reused_runs(history):
        kind = "kept runs" if reused.repeats else OLDER_RUNS
        yield Finding(kind, "notes", (reused.group,), reused.sentence)
    check = history.reuse_checked
    if check is not None and not check.agrees:
        sentence = f"Kept runs that repeat were not reused, because {check.detail}; all were trained again."
        yield Finding("kept runs", "notes", (), sentence)
    if history.references is not None:
        for sentence in history.references.refused:
            yield Finding("kept runs", "notes", (), sentence)


def rests_on_conditions(history: History, names: Iterable[str]) -> bool:
    """Return whether one of these runs is reused although a seed does not repeat, so that nothing was checked."""
    return any(history.runs[name].reused is not None and not _repeats(history, name) for name in names)


def _repeats(history: History, name: str) -> bool:
    group = history.runs[name].ref.group_id
    return history.references is not None and history.references.groups[group].repeats


def _reused_runs_of(history: History, opened: ReferencesOpened, group: str) -> ReusedRuns | None:
    runs = history.of_group(group)
    offers: dict[str, RunOffered] = {}
    for run in runs:
        if run.reused is not None and run.evaluation is not None:
            offers[run.ref.name] = run.reused
    if not offers:
        return None
    times = sorted(offer.trained_at for offer in offers.values())
    names = dict.fromkeys(name for offer in offers.values() for name in offer.other_conditions)
    return ReusedRuns(
        group=group,
        runs=tuple(offers),
        finished=sum(run.evaluation is not None for run in runs),
        sources=tuple(dict.fromkeys(offer.source for offer in offers.values())),
        first_trained=times[0],
        last_trained=times[-1],
        days_old=round(max(offer.age_s for offer in offers.values()) / _DAY_S, 2),
        repeats=opened.groups[group].repeats,
        checked=tuple(run.ref.name for run in runs if _was_checked(history, run.ref.name)),
        other_conditions=tuple(names),
    )


def _was_checked(history: History, name: str) -> bool:
    check = history.reuse_checked
    return check is not None and check.agrees and name in check.runs


def _age(days: float) -> str:
    return "less than a day" if days < 1.0 else f"up to {counted(round(days), 'day')}"
