"""Starts one run of each further group before any budget is spent: a setting may fail at once.

The rehearsal itself uses the settings of the first group. A run that goes on for a while without failing is ended, so
that long runs cost seconds; and when enough time has passed in all, no further group is started. A run that fails is
tried again with another seed, because a setting that fails for some seeds can be compared.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from esper_ab.contracts.trainer import TrainerValue
from workers.kinds.trainer.idling import StillRunning

Settings = Mapping[str, TrainerValue]
IsOver = Callable[[], bool]  # whether a run is to be ended, although it has not failed
Attempt = Callable[[str, Settings, int, IsOver], None]  # (group, its settings, number of the seed, …)
_SEEDS = 2  # with which a group may fail


@dataclass(frozen=True, kw_only=True)
class TimeLimits:
    """How long groups are tried, in seconds."""

    run_s: float = 20.0  # a run that has gone on for so long without failing is ended
    total_s: float = 60.0  # after that no further group is started


@dataclass(frozen=True, kw_only=True)
class TriedGroups:
    """The groups whose first run did not come to a good end of its own, in the order of the experiment."""

    failed_once: dict[str, str]  # why the run with one seed failed, where that with another did not
    ended_early: tuple[str, ...]  # it went on for `TimeLimits.run_s` without failing
    not_started: tuple[str, ...]


@dataclass
class _Trials:
    """The runs of further groups, several at a time."""

    attempt: Attempt
    limits: TimeLimits
    now: Callable[[], float]
    begin_s: float
    failed: threading.Event = field(default_factory=threading.Event)
    problems: dict[str, str] = field(default_factory=dict)  # of groups that failed with every seed
    failed_once: dict[str, str] = field(default_factory=dict)
    ended_early: set[str] = field(default_factory=set)
    not_started: set[str] = field(default_factory=set)

    def run(self, group: str, settings: Settings) -> None:
        """Start one group, unless another one has failed or time is up."""
        begin_s = self.now()
        if self.failed.is_set() or begin_s - self.begin_s >= self.limits.total_s:
            self.not_started.add(group)
            return
        for seed_index in range(_SEEDS):
            try:
                self.attempt(
                    group,
                    settings,
                    seed_index,
                    lambda: self.failed.is_set() or self.now() - begin_s >= self.limits.run_s,
                )
                return
            except StillRunning:
                self.ended_early.add(group)
                return
            except ValueError as error:
                self.failed_once.setdefault(group, str(error))
        self.problems[group] = self.failed_once.pop(group)
        self.failed.set()


def try_other_groups(
    groups: Mapping[str, Settings],
    attempt: Attempt,
    at_once: int,
    limits: TimeLimits | None = None,
    now: Callable[[], float] = time.monotonic,
) -> TriedGroups:
    """Make one attempt for each group after the first whose settings no group before it has.

    `attempt` raises ValueError if a run fails, and StillRunning if it was over. `groups`: their settings, as the
    rehearsal changes them; `at_once`: the number of runs at a time. Raises ValueError with a group that fails.
    """
    others = _distinct(groups)
    trials = _Trials(attempt, limits or TimeLimits(), now, now())
    with ThreadPoolExecutor(at_once) as pool:
        for part in [pool.submit(trials.run, group, settings) for group, settings in others.items()]:
            part.result()
    for group in others:
        if group in trials.problems:
            raise ValueError(f"group {group!r}: {trials.problems[group]}")
    return TriedGroups(
        failed_once={group: trials.failed_once[group] for group in others if group in trials.failed_once},
        ended_early=tuple(group for group in others if group in trials.ended_early),
        not_started=tuple(group for group in others if group in trials.not_started),
    )


def _distinct(groups: Mapping[str, Settings]) -> dict[str, Settings]:
    """Return the groups after the first with settings that no group before them has."""
    earlier_settings = list[Settings]()
    others = dict[str, Settings]()
    for group, settings in groups.items():
        if earlier_settings and settings not in earlier_settings:
            others[group] = settings
        if settings not in earlier_settings:
            earlier_settings.append(settings)
    return others
