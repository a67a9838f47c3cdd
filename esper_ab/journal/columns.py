"""The training episodes of one run as columns of numbers, 400 bytes per episode, for reports, views and the audit.

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
from esper_ab.journal.lean import LeanEpisode, LeanHost

_NAN = math.nan
# Fields of PPOUpdate; counts and booleans are stored as doubles.
UPDATE = (
    "policy_loss", "value_loss", "entropy", "op_entropy", "approx_kl", "clip_fraction", "explained_variance",
    "grad_norm", "first_ratio_error", "ratio_max", "epochs_done", "stopped_by_kl", "advantage_std", "return_mean",
)  # fmt: skip
N_OPS = 6
OPS = tuple(f"op_{place}" for place in range(N_OPS))  # executed per host, by index in the op head
# NaN means absent: the numbers in a record are always finite.
NAMES = (
    "envs",  # number of hosts
    "accuracy",  # mean test accuracy of the hosts, percent
    "reward",  # mean over hosts, on the scale of the run's own mode
    "params_added",  # mean over hosts
    "steps",  # sum over hosts
    "diverged_steps",  # sum over the hosts that diverged
    "diverged",  # number of hosts that diverged
    *OPS,
    "total_s",
    "learns",  # 1 where the policy was updated, else 0
    *UPDATE,
)
_WITHOUT = dict.fromkeys(NAMES, _NAN) | dict.fromkeys(("envs", "steps", "diverged_steps", "diverged"), 0.0)
_NO_OPS = (_NAN,) * N_OPS
_AT_ONCE = 32  # records converted together; more would fall out of the processor's cache


class Columns:
    """Numbers by name and episode, episodes ascending. Getters return internal arrays: do not modify them."""

    def __init__(self) -> None:
        self._waiting: list[EpisodeRecord | LeanEpisode] = []  # newer than the episodes in the columns
        self._episodes = array("q")
        self._digests: list[str] = []
        self._host_params: set[int] = set()
        self._numbers = {name: array("d") for name in NAMES}
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
    def host_params(self) -> set[int]:
        """Distinct parameter counts of the hosts."""
        self._settle()
        return self._host_params

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the action heads, in the order of the first record that has any."""
        self._settle()
        return tuple(self._uses)

    def of(self, name: str) -> array[float]:
        """Return one number of every episode, by its name in NAMES; NaN where it is absent."""
        self._settle()
        return self._numbers[name]

    def known(self, name: str) -> list[float]:
        """Return the values of column `name` that are present, without NaN."""
        return [value for value in self.of(name) if value == value]  # false for NaN

    def head(self, name: str) -> tuple[array[float], array[float]]:
        """Return entropy and learnable share of a head for every episode; NaN where the record has none."""
        self._settle()
        return self._uses[name]

    def add(self, record: EpisodeRecord | LeanEpisode) -> None:
        """Add one episode; it replaces an earlier record of the same episode."""
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
            hosts = [host for record in alike for host in record.envs]
            updates = [record.ppo for record in alike if record.ppo is not None]
            numbers = _of_hosts(hosts, n) | _of_updates(updates)
            numbers |= {"total_s": [record.timing.total_s for record in alike], "learns": [learns] * len(alike)}
            for name, column in self._numbers.items():
                column.extend(_doubles(numbers[name]) if name in numbers else array("d", [_WITHOUT[name]]) * len(alike))
            self._add_uses(heads, updates, len(alike))
            self._host_params.update([host.host_params for host in hosts])
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
        for name, column in self._numbers.items():
            column.extend(other._numbers[name])
        for name, uses in self._uses.items():
            for mine, theirs in zip(uses, other._uses.get(name, (_nan(len(other)),) * 2), strict=True):
                mine.extend(theirs)
        self._episodes.extend(other._episodes)
        self._digests.extend(other._digests)
        self._host_params |= other._host_params

    def _name(self, heads: Iterable[str]) -> None:
        """Create columns for heads not seen before, NaN for all earlier episodes."""
        for name in heads:
            if name not in self._uses:
                self._uses[name] = _nan(len(self._episodes)), _nan(len(self._episodes))

    def _cut(self, place: int) -> Columns:
        """Remove the episodes from index `place` on and return them."""
        rest = Columns()
        rest._name(self.heads)
        for mine, theirs in zip(self._arrays(), rest._arrays(), strict=True):
            theirs.extend(mine[place:])
            del mine[place:]
        rest._episodes, rest._digests = self._episodes[place:], self._digests[place:]
        del self._episodes[place:], self._digests[place:]
        return rest

    def _arrays(self) -> Iterator[array[float]]:
        yield from self._numbers.values()
        for uses in self._uses.values():
            yield from uses


def _shape(record: EpisodeRecord | LeanEpisode) -> tuple[int, bool, tuple[str, ...]]:
    """Return number of hosts, presence of an update, and its heads; records of one shape are converted together."""
    return len(record.envs), record.ppo is not None, () if record.ppo is None else tuple(record.ppo.heads)


def _of_hosts(hosts: Sequence[EnvEpisode | LeanHost], n: int) -> dict[str, Sequence[Any]]:
    """Return the host columns by name; `hosts` holds `n` hosts per record, one record after the other."""
    if not n:
        return {}

    def records(values: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        return zip(*[iter(values)] * n, strict=True)

    rewards = [host.reward_sum for host in hosts]
    counts: list[tuple[float, ...]] = [host.op_counts for host in hosts]
    if {*map(len, counts)} != {N_OPS}:
        counts = [(*one, *_NO_OPS)[:N_OPS] for one in counts]
    ops = zip(OPS, zip(*counts, strict=True), strict=True)
    return {
        "envs": [n] * (len(hosts) // n),
        "accuracy": [math.fsum(one) / n for one in records([host.held_out_accuracy for host in hosts])],
        "reward": [_mean_known(one) for one in records(rewards)],
        "params_added": [sum(one) / n for one in records([host.params_added for host in hosts])],
        "steps": list(map(sum, records([host.steps for host in hosts]))),
        "diverged_steps": list(map(sum, records([host.steps if host.diverged else 0 for host in hosts]))),
        "diverged": list(map(sum, records([host.diverged for host in hosts]))),
        **{op: [sum(one) / n for one in records(column)] for op, column in ops},
    }


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
