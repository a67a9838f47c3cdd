"""The training episodes of one run, as columns of numbers (8 bytes each) for reports and views."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import chain, product
from operator import attrgetter
from typing import NamedTuple

from esper_ab.contracts.records import EpisodeRecord

# Fields of PPOUpdate; counts and booleans are stored as doubles.
UPDATE = (
    "policy_loss",
    "value_loss",
    "entropy",
    "op_entropy",
    "approx_kl",
    "clip_fraction",
    "explained_variance",
    "grad_norm",
    "first_ratio_error",
    "ratio_max",
    "epochs_done",
    "stopped_by_kl",
    "advantage_std",
    "return_mean",
)


class _Totals(NamedTuple):
    """An episode's numbers over all environments; the fields are the first columns, in the same order."""

    envs: int  # number of environments
    outcome: float | None  # mean over the environments in which an episode ended
    reward: float | None  # mean over environments, on the scale of the run's own mode
    steps: int  # sum over environments
    failed_steps: int  # sum over the environments that failed
    failed: int  # number of environments that failed
    total_s: float
    learns: bool  # whether the policy was updated


# NaN means absent: the numbers in a record are always finite.
NAMES = (*_Totals._fields, *UPDATE)
_OF_HEADS = ("entropy", "learnable")
_update_of = attrgetter(*UPDATE)
_NO_UPDATE = (None,) * len(UPDATE)
_Key = str | tuple[str, str]  # a name in NAMES, or ("measure", its name), or ("entropy" or "learnable", a head's name)


class Columns:
    """Numbers by name and episode, in ascending order of episodes.

    `measures`: names that the plan declares. Each has a column of means over the environments that have a value.
    """

    def __init__(self, measures: tuple[str, ...] = ()) -> None:
        self.measures = measures
        self.episodes = array("q")
        self.digests: list[str] = []
        self.heads: tuple[str, ...] = ()  # names of the action heads, in the order of the first record that has any
        self._keys: list[_Key] = [*NAMES, *(("measure", name) for name in measures)]
        self._rows = array("d")  # one number for each of _keys, episode after episode

    def __len__(self) -> int:
        return len(self.episodes)

    @property
    def newest(self) -> int:
        """Index of the last episode; -1 before the first."""
        return self.episodes[-1] if self.episodes else -1

    def of(self, name: str) -> array[float]:
        """Return column `name` of NAMES, one number per episode; NaN where it is absent."""
        return self._column(name)

    def measure(self, name: str) -> array[float]:
        """Return the means of a declared measure, one per episode; NaN where it is absent."""
        return self._column(("measure", name))

    def known(self, name: str) -> list[float]:
        """Return the values of column `name` that are present, without NaN."""
        return [value for value in self.of(name) if value == value]  # false for NaN

    def head(self, name: str) -> tuple[array[float], array[float]]:
        """Return the entropy and the learnable share of a head, one number per episode; NaN where they are absent."""
        return self._column(("entropy", name)), self._column(("learnable", name))

    def _column(self, key: _Key) -> array[float]:
        return self._rows[self._keys.index(key) :: len(self._keys)]

    def fits(self, record: EpisodeRecord) -> bool:
        """True if `record` has environments and each has the declared measures, in their order."""
        return bool(record.envs) and all(tuple(env.measures) == self.measures for env in record.envs)

    def add(self, record: EpisodeRecord) -> None:
        """Add an episode for which `fits` is True. An earlier record of the same episode is replaced."""
        if record.ppo is not None and not record.ppo.heads.keys() <= set(self.heads):
            self._add_heads(record.ppo.heads)
        row = array("d", [math.nan if value is None else value for value in self._read_numbers(record)])
        if record.episode > self.newest:
            self.episodes.append(record.episode)
            self.digests.append(record.digest)
            self._rows.extend(row)
            return
        place = bisect_left(self.episodes, record.episode)
        is_known = self.episodes[place] == record.episode
        end = place + 1 if is_known else place  # of the records that it replaces
        self.episodes[place:end] = array("q", [record.episode])
        self.digests[place:end] = [record.digest]
        width = len(self._keys)
        self._rows[place * width : end * width] = row

    def _add_heads(self, heads: Iterable[str]) -> None:
        """Create columns for heads not seen before, with NaN for all earlier episodes."""
        new_heads = tuple(name for name in heads if name not in self.heads)
        width = len(self._keys)
        rows = [self._rows[start : start + width] for start in range(0, len(self._rows), width)]
        self.heads += new_heads
        self._keys += [(column, name) for name, column in product(new_heads, _OF_HEADS)]
        absent_values = array("d", [math.nan]) * (len(self._keys) - width)
        self._rows = array("d", chain.from_iterable(row + absent_values for row in rows))

    def _read_numbers(self, record: EpisodeRecord) -> list[float | None]:
        """Return the numbers of one episode in the order of _keys."""
        ppo = record.ppo
        by_measure = zip(*[env.measures.values() for env in record.envs], strict=True)
        numbers: list[float | None] = [*_read_totals(record)]
        numbers += _NO_UPDATE if ppo is None else _update_of(ppo)
        numbers += map(_mean, by_measure)
        for name in self.heads:
            use = None if ppo is None else ppo.heads.get(name)
            numbers += (None, None) if use is None else (use.entropy, use.learnable)
        return numbers


def _read_totals(record: EpisodeRecord) -> _Totals:
    envs = record.envs
    return _Totals(
        envs=len(envs),
        outcome=_mean([env.outcome for env in envs]),
        reward=_mean([env.reward_sum for env in envs]),
        steps=sum([env.steps for env in envs]),
        failed_steps=sum([env.steps for env in envs if env.failed]),
        failed=sum([env.failed for env in envs]),
        total_s=record.timing.total_s,
        learns=record.ppo is not None,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there are none."""
    try:
        return math.fsum(values) / len(values)  # type: ignore[arg-type]
    except (TypeError, ZeroDivisionError):  # None is rare
        known_values = [value for value in values if value is not None]
        return math.fsum(known_values) / len(known_values) if known_values else None
