"""The training episodes of one run as numbers in rows: what reports, views and the audit need, in 400 bytes each.

A record as Python objects takes ten times that. No numpy here, because the live view and `status` read these, too.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from esper_ab.contracts.records import EnvEpisode, EpisodeRecord, HeadUse

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
_of_env = attrgetter("final_accuracy", "reward_sum", "params_added", "steps", "diverged", "host_params", "op_counts")
_of_update = attrgetter(*UPDATE)
_of_use = attrgetter("entropy", "learnable")
_NO_UPDATE = (0.0, *([_NAN] * len(UPDATE)))
_NO_HOSTS = (0.0, _NAN, _NAN, _NAN, 0.0, 0.0, 0.0, *([_NAN] * N_OPS))


class Columns:
    """Rows by episode, ascending."""

    def __init__(self) -> None:
        self.episodes = array("q")
        self.digests: list[str] = []
        self.host_params: set[int] = set()  # of all hosts
        self.heads: tuple[str, ...] = ()  # in the order of the first record that has any
        self._rows = array("d")  # a number per name
        self._uses = array("d")  # entropy and learnable per head; NaN where it has none

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
        at, width = _HEAD_WIDTH * self.heads.index(name), _HEAD_WIDTH * len(self.heads)
        return self._uses[at::width], self._uses[at + 1 :: width]

    def add(self, record: EpisodeRecord) -> None:
        """One more. It takes the place of an earlier one of the same episode."""
        if self.episodes and record.episode <= self.episodes[-1]:
            later = self._cut(bisect_left(self.episodes, record.episode))
            if later.episodes[0] == record.episode:
                later = later._cut(1)
            self.add(record)
            self.extend(later)
            return
        update = record.ppo
        _append(self._rows, [
            *(self._hosts(record.envs) if record.envs else _NO_HOSTS),
            record.timing.total_s,
            *(_NO_UPDATE if update is None else (1.0, *_of_update(update))),
        ])  # fmt: skip
        self._add_uses({} if update is None else update.heads)
        self.episodes.append(record.episode)
        self.digests.append(record.digest)

    def _hosts(self, envs: Sequence[EnvEpisode]) -> list[Any]:
        n = len(envs)
        accuracies, rewards, added, steps, diverged, params, counts = zip(*map(_of_env, envs), strict=True)
        self.host_params.update(params)
        known = [reward for reward in rewards if reward is not None] if None in rewards else rewards
        ops = [total / n for total in map(sum, zip(*counts, strict=False))]
        return [
            n,
            math.fsum(accuracies) / n,
            math.fsum(known) / len(known) if known else None,
            sum(added) / n,
            sum(steps),
            sum([env.steps for env in envs if env.diverged]) if True in diverged else 0,
            sum(diverged),
            *(ops if len(ops) == N_OPS else (ops + [_NAN] * N_OPS)[:N_OPS]),
        ]

    def _add_uses(self, heads: Mapping[str, HeadUse]) -> None:
        if tuple(heads) == self.heads:
            _append(self._uses, list(chain.from_iterable(map(_of_use, heads.values()))))
            return
        self._name(tuple(heads))
        for name in self.heads:
            _append(self._uses, list(_of_use(heads[name]) if name in heads else _ABSENT))

    def extend(self, other: Columns) -> None:
        """All rows of `other`, whose episodes come after these."""
        self._name(other.heads)
        uses = other._uses if other.heads == self.heads else other._placed(self.heads)
        self.episodes.extend(other.episodes)
        self.digests.extend(other.digests)
        self.host_params |= other.host_params
        self._rows.extend(other._rows)
        self._uses.extend(uses)

    def _name(self, heads: tuple[str, ...]) -> None:
        """Heads that no record before had."""
        new = tuple(name for name in heads if name not in self.heads)
        if new:
            named = (*self.heads, *new)
            self._uses, self.heads = self._placed(named), named

    def _placed(self, heads: tuple[str, ...]) -> array[float]:
        """The uses by these heads in this order: all that there are, and others, which no record here names."""
        width = _HEAD_WIDTH * len(heads)
        uses = array("d", [_NAN]) * (width * len(self))
        for name in self.heads:
            at = _HEAD_WIDTH * heads.index(name)
            uses[at::width], uses[at + 1 :: width] = self.head(name)
        return uses

    def _cut(self, place: int) -> Columns:
        """The rows from `place` on, which are taken out of these."""
        rest = Columns()
        rest.heads = self.heads
        rest.episodes, rest.digests = self.episodes[place:], self.digests[place:]
        del self.episodes[place:], self.digests[place:]
        row, use = place * _WIDTH, place * _HEAD_WIDTH * len(self.heads)
        rest._rows, rest._uses = self._rows[row:], self._uses[use:]
        del self._rows[row:], self._uses[use:]
        return rest


def _append(numbers: array[float], more: list[Any]) -> None:
    """NaN for None, of which there are few: they are looked for only where there are some."""
    try:
        numbers.fromlist(more)
    except TypeError:
        numbers.extend([_NAN if value is None else value for value in more])
