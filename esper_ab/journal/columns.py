"""The training episodes of one run as numbers in rows: what reports, views and the audit need, in 400 bytes each.

A record as Python objects takes ten times that. No numpy here, because the live view and `status` read these, too.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Protocol

_NAN = math.nan
# Of the policy's update, in the order of PPOUpdate; counts and truths are numbers here.
UPDATE = (
    "policy_loss", "value_loss", "entropy", "op_entropy", "approx_kl", "clip_fraction", "explained_variance",
    "grad_norm", "first_ratio_error", "ratio_max", "epochs_done", "stopped_by_kl", "advantage_std", "return_mean",
)  # fmt: skip
N_OPS = 6
OPS = tuple(f"op_{place}" for place in range(N_OPS))  # executed per host, by place in the op head
# NaN where a record has no such number: a record itself never has one that is not finite.
NAMES = (
    "envs",  # hosts
    "accuracy",  # mean test accuracy of the hosts, percent
    "reward",  # mean over hosts, on the scale of the run's own mode
    "params_added",  # mean over hosts
    "steps",  # of all hosts together
    "diverged_steps",  # of the hosts that diverged, together
    "diverged",  # hosts
    *OPS,
    "total_s",
    "learns",  # 1 where the policy was updated, else 0
    *UPDATE,
)
_PLACE = {name: place for place, name in enumerate(NAMES)}
_WIDTH = len(NAMES)
_HEAD_WIDTH = 2  # entropy, learnable
_ABSENT = (_NAN,) * _HEAD_WIDTH


class Env(Protocol):
    """What is needed of an environment's episode."""

    @property
    def final_accuracy(self) -> float: ...
    @property
    def reward_sum(self) -> float | None: ...
    @property
    def params_added(self) -> int: ...
    @property
    def host_params(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def op_counts(self) -> tuple[int, ...]: ...
    @property
    def diverged(self) -> bool: ...


class Use(Protocol):
    """What is needed of a head's use."""

    @property
    def entropy(self) -> float | None: ...
    @property
    def learnable(self) -> float: ...


class Columns:
    """Rows by episode, ascending."""

    def __init__(self) -> None:
        self.episodes = array("q")
        self.digests: list[str] = []
        self.host_params: set[int] = set()  # of all hosts
        # By name, in the order of the first record that has any: pairs of entropy and learnable; NaN where it has none.
        self.heads: dict[str, array[float]] = {}
        self._rows = array("d")

    def __len__(self) -> int:
        return len(self.episodes)

    def of(self, name: str) -> array[float]:
        """One number of every episode, by its name in NAMES; NaN where there is none."""
        return self._rows[_PLACE[name] :: _WIDTH]

    def known(self, name: str) -> list[float]:
        """The same without those that are not there."""
        return [value for value in self.of(name) if value == value]  # NaN is not itself

    def head(self, name: str) -> tuple[array[float], array[float]]:
        """Entropy and learnable share of every episode; NaN where the head has none, or the record does not name it."""
        return self.heads[name][0::_HEAD_WIDTH], self.heads[name][1::_HEAD_WIDTH]

    def add(self, episode: int, digest: str, row: Sequence[float], heads: Mapping[str, Use]) -> None:
        """One record. It takes the place of an earlier one of the same episode."""
        if self.episodes and episode <= self.episodes[-1]:
            later = self._cut(bisect_left(self.episodes, episode))
            if later.episodes[0] == episode:
                later = later._cut(1)
            self.add(episode, digest, row, heads)
            self.extend(later)
            return
        if heads.keys() != self.heads.keys():
            self._name(heads)
        for name, pairs in self.heads.items():
            use = heads.get(name)
            pairs.extend(_ABSENT if use is None else (_number(use.entropy), use.learnable))
        self.episodes.append(episode)
        self.digests.append(digest)
        self._rows.extend(row)

    def extend(self, other: Columns) -> None:
        """All rows of `other`, whose episodes come after these."""
        self._name(other.heads)
        for name, pairs in self.heads.items():
            pairs.extend(other.heads.get(name) or _ABSENT * len(other))
        self.episodes.extend(other.episodes)
        self.digests.extend(other.digests)
        self.host_params |= other.host_params
        self._rows.extend(other._rows)

    def _name(self, heads: Iterable[str]) -> None:
        """Heads that no record before had."""
        for name in heads:
            if name not in self.heads:
                self.heads[name] = array("d", _ABSENT * len(self))

    def _cut(self, place: int) -> Columns:
        """The rows from `place` on, which are taken out of these."""
        rest = Columns()
        rest.episodes, rest.digests = self.episodes[place:], self.digests[place:]
        rest._rows = self._rows[place * _WIDTH :]
        rest.heads = {name: pairs[place * _HEAD_WIDTH :] for name, pairs in self.heads.items()}
        del self.episodes[place:], self.digests[place:], self._rows[place * _WIDTH :]
        for pairs in self.heads.values():
            del pairs[place * _HEAD_WIDTH :]
        return rest


def row_of(envs: Sequence[Env], update: object | None, total_s: float) -> list[float]:
    """The numbers of one record, in the order of NAMES."""
    n = len(envs)
    if not n:
        return [0.0, _NAN, _NAN, _NAN, 0.0, 0.0, 0.0, *([_NAN] * N_OPS), total_s, *_update(update)]
    rewards = [env.reward_sum for env in envs if env.reward_sum is not None]
    broken = [env.steps for env in envs if env.diverged]
    ops = [sum(counts) / n for counts in zip(*[env.op_counts for env in envs], strict=False)]
    return [
        n,
        math.fsum([env.final_accuracy for env in envs]) / n,
        math.fsum(rewards) / len(rewards) if rewards else _NAN,
        sum([env.params_added for env in envs]) / n,
        sum([env.steps for env in envs]),
        sum(broken),
        len(broken),
        *(ops if len(ops) == N_OPS else (ops + [_NAN] * N_OPS)[:N_OPS]),
        total_s,
        *_update(update),
    ]


_of_update = attrgetter(*UPDATE)


def _update(update: object | None) -> Sequence[float]:
    if update is None:
        return (0.0, *([_NAN] * len(UPDATE)))
    return [1.0, *[_NAN if value is None else value for value in _of_update(update)]]


def _number(value: float | None) -> float:
    return _NAN if value is None else value
