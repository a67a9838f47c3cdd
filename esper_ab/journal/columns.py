"""The training episodes of one run as columns of numbers, 8 bytes each, for reports, views and the audit.

A record as Python objects takes ten times that. No numpy here, because the live view and `status` read these, too.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from msgspec.structs import astuple

from esper_ab.contracts.records import EnvEpisode, EpisodeRecord, PPOUpdate
from esper_ab.journal.lean import LeanEnv, LeanEpisode

_NAN = math.nan
# Fields of PPOUpdate; counts and booleans are stored as doubles.
UPDATE = (
    "policy_loss", "value_loss", "entropy", "op_entropy", "approx_kl", "clip_fraction", "explained_variance",
    "grad_norm", "first_ratio_error", "ratio_max", "epochs_done", "stopped_by_kl", "advantage_std", "return_mean",
)  # fmt: skip
# NaN means absent: the numbers in a record are always finite.
NAMES = (
    "envs",  # number of environments
    "outcome",  # mean over the environments in which an episode ended
    "reward",  # mean over environments, on the scale of the run's own mode
    "steps",  # sum over environments
    "failed_steps",  # sum over the environments that failed
    "failed",  # number of environments that failed
    "total_s",
    "learns",  # 1 where the policy was updated, else 0
    *UPDATE,
)
_ZERO = frozenset(("envs", "steps", "failed_steps", "failed"))  # where a record has no environment
_AT_ONCE = 32  # records converted together; more would fall out of the processor's cache


class Columns:
    """Numbers by name and episode, episodes ascending. Getters return internal arrays: do not modify them.

    `measures`: names that the plan declares; each is a column of means over the environments where it is known.
    """

    def __init__(self, measures: tuple[str, ...] = ()) -> None:
        self.measures = measures
        self._waiting: list[EpisodeRecord | LeanEpisode] = []  # newer than the episodes in the columns
        self._episodes = array("q")
        self._digests: list[str] = []
        self._numbers = {name: array("d") for name in NAMES}
        self._measured = {name: array("d") for name in measures}
        self._uses: dict[str, tuple[array[float], array[float]]] = {}  # entropy and learnable; NaN where there is none

    def __len__(self) -> int:
        return len(self._episodes) + len(self._waiting)

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        return self.__dict__

    @property
    def newest(self) -> int:
        """Index of the last episode; -1 before the first."""
        return self._waiting[-1].episode if self._waiting else self._episodes[-1] if self._episodes else -1

    @property
    def episodes(self) -> array[int]:
        self._settle()
        return self._episodes

    @property
    def digests(self) -> list[str]:
        self._settle()
        return self._digests

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the action heads, in the order of the first record that has any."""
        self._settle()
        return tuple(self._uses)

    def of(self, name: str) -> array[float]:
        """Return one number of every episode, by its name in NAMES; NaN where it is absent."""
        self._settle()
        return self._numbers[name]

    def measure(self, name: str) -> array[float]:
        """Return the mean of a declared measure of every episode; NaN where it is absent."""
        self._settle()
        return self._measured[name]

    def known(self, name: str) -> list[float]:
        """Return the values of column `name` that are present, without NaN."""
        return [value for value in self.of(name) if value == value]  # false for NaN

    def head(self, name: str) -> tuple[array[float], array[float]]:
        """Return entropy and learnable share of a head for every episode; NaN where the record has none."""
        self._settle()
        return self._uses[name]

    def fits(self, record: EpisodeRecord | LeanEpisode) -> bool:
        """Whether every environment of `record` has the declared measures, in their order."""
        return all(tuple(env.measures) == self.measures for env in record.envs)

    def add(self, record: EpisodeRecord | LeanEpisode) -> None:
        """Add one episode that `fits`; it replaces an earlier record of the same episode."""
        if record.episode <= self.newest:
            later = self._cut(bisect_left(self.episodes, record.episode))
            if later.episodes[0] == record.episode:
                later = later._cut(1)
            self._waiting.append(record)
            self.extend(later)
            return
        self._waiting.append(record)
        if len(self._waiting) == _AT_ONCE:
            self._settle()

    def _settle(self) -> None:
        """Move the waiting records into the columns, runs of records of one shape a column at a time."""
        waiting, self._waiting = self._waiting, []
        for (n, learns, heads), found in groupby(waiting, _shape):
            alike = list(found)
            envs = [env for record in alike for env in record.envs]
            updates = [record.ppo for record in alike if record.ppo is not None]
            numbers = _of_envs(envs, n) | _of_updates(updates)
            numbers |= {"total_s": [record.timing.total_s for record in alike], "learns": [learns] * len(alike)}
            for name, column in self._numbers.items():
                absent = array("d", [0.0 if name in _ZERO else _NAN])
                column.extend(_doubles(numbers[name]) if name in numbers else absent * len(alike))
            measured = list(zip(*[env.measures.values() for env in envs], strict=True)) if n else []
            for place, column in enumerate(self._measured.values()):
                column.extend(_doubles(_means(_by_record(measured[place], n), n)) if n else _nan(len(alike)))
            self._add_uses(heads, updates, len(alike))
            self._episodes.extend([record.episode for record in alike])
            self._digests.extend([record.digest for record in alike])

    def _add_uses(self, heads: tuple[str, ...], updates: Sequence[PPOUpdate], count: int) -> None:
        """Append the head columns for `count` records, whose updates all have these heads in this order."""
        self._name(heads)
        found = dict(zip(heads, zip(*[update.heads.values() for update in updates], strict=True), strict=True))
        for name, (entropies, shares) in self._uses.items():
            uses = found.get(name)
            entropies.extend(_nan(count) if uses is None else _doubles([use.entropy for use in uses]))
            shares.extend(_nan(count) if uses is None else _doubles([use.learnable for use in uses]))

    def extend(self, other: Columns) -> None:
        """Append all episodes of `other`, which must come after these."""
        self._settle()
        self._name(other.heads)
        for mine, theirs in zip(self._plain(), other._plain(), strict=True):
            mine.extend(theirs)
        for name, uses in self._uses.items():
            for mine, theirs in zip(uses, other._uses.get(name, (_nan(len(other)),) * 2), strict=True):
                mine.extend(theirs)
        self._episodes.extend(other._episodes)
        self._digests.extend(other._digests)

    def _name(self, heads: Iterable[str]) -> None:
        """Create columns for heads not seen before, NaN for all earlier episodes."""
        for name in heads:
            if name not in self._uses:
                self._uses[name] = _nan(len(self._episodes)), _nan(len(self._episodes))

    def _cut(self, place: int) -> Columns:
        """Remove the episodes from index `place` on and return them."""
        rest = Columns(self.measures)
        rest._name(self.heads)
        for mine, theirs in zip(self._arrays(), rest._arrays(), strict=True):
            theirs.extend(mine[place:])
            del mine[place:]
        rest._episodes, rest._digests = self._episodes[place:], self._digests[place:]
        del self._episodes[place:], self._digests[place:]
        return rest

    def _plain(self) -> Iterator[array[float]]:
        yield from self._numbers.values()
        yield from self._measured.values()

    def _arrays(self) -> Iterator[array[float]]:
        yield from self._plain()
        for uses in self._uses.values():
            yield from uses


def _shape(record: EpisodeRecord | LeanEpisode) -> tuple[int, bool, tuple[str, ...]]:
    """Return number of environments, presence of an update, its heads; records of one shape are converted together."""
    return len(record.envs), record.ppo is not None, () if record.ppo is None else tuple(record.ppo.heads)


def _by_record(values: Iterable[Any], n: int) -> Iterator[tuple[Any, ...]]:
    """Group the values of environments by record, `n` each."""
    return zip(*[iter(values)] * n, strict=True)


def _of_envs(envs: Sequence[EnvEpisode | LeanEnv], n: int) -> dict[str, Sequence[Any]]:
    """Return the columns of environments by name; `envs` holds `n` per record, one record after the other."""
    if not n:
        return {}

    return {
        "envs": [n] * (len(envs) // n),
        "outcome": _means(_by_record([env.outcome for env in envs], n), n),
        "reward": _means(_by_record([env.reward_sum for env in envs], n), n),
        "steps": list(map(sum, _by_record([env.steps for env in envs], n))),
        "failed_steps": list(map(sum, _by_record([env.steps if env.failed else 0 for env in envs], n))),
        "failed": list(map(sum, _by_record([env.failed for env in envs], n))),
    }


def _means(records: Iterable[tuple[float | None, ...]], n: int) -> list[float]:
    """Return the mean of every record of `n` values; None is rare, so the slow path is tried only when needed."""
    found: list[tuple[Any, ...]] = list(records)
    try:
        return [math.fsum(values) / n for values in found]
    except TypeError:
        return [_mean_known(values) for values in found]


def _mean_known(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else _NAN


def _of_updates(updates: Sequence[PPOUpdate]) -> dict[str, Sequence[Any]]:
    """Return the fields of the updates as columns by name, `heads` included."""
    columns = zip(*map(astuple, updates), strict=True)
    return dict(zip(PPOUpdate.__struct_fields__, columns, strict=True)) if updates else {}


def _nan(count: int) -> array[float]:
    return array("d", [_NAN]) * count


def _doubles(values: Sequence[Any]) -> array[float]:
    """Convert to doubles, None to NaN; None is rare, so the slow path is tried only when needed."""
    try:
        return array("d", values)
    except TypeError:
        return array("d", [_NAN if value is None else value for value in values])
