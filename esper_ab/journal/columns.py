"""The training episodes of one run: as columns of numbers, 8 bytes each, for reports, views and the audit; as records.

A record as Python objects takes ten times that, so it stays in the journal. No numpy here, because the live view and
`status` read these, too.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path

from esper_ab.contracts.errors import JournalError
from esper_ab.contracts.files import open_to_read
from esper_ab.contracts.records import EpisodeRecord
from esper_ab.journal.events import EpisodeRecorded, event_of
from esper_ab.journal.file import read

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
_OF_HEADS = ("entropy", "learnable")
_update_of = attrgetter(*UPDATE)
_Key = str | tuple[str, str]  # a name in NAMES; "measure", "entropy" or "learnable" with the name of what it is of


class Columns:
    """Numbers by name and episode, episodes ascending. Getters return internal arrays: do not modify them.

    `measures`: names that the plan declares; each is a column of means over the environments where it is known.
    """

    def __init__(self, measures: tuple[str, ...] = ()) -> None:
        self.measures = measures
        self.episodes = array("q")
        self.digests: list[str] = []
        self.heads: tuple[str, ...] = ()  # names of the action heads, in the order of the first record that has any
        self._numbers: dict[_Key, array[float]] = {key: array("d") for key in NAMES}
        self._numbers |= {("measure", name): array("d") for name in measures}

    def __len__(self) -> int:
        return len(self.episodes)

    @property
    def newest(self) -> int:
        """Index of the last episode; -1 before the first."""
        return self.episodes[-1] if self.episodes else -1

    def of(self, name: str) -> array[float]:
        """Return one number of every episode, by its name in NAMES; NaN where it is absent."""
        return self._numbers[name]

    def measure(self, name: str) -> array[float]:
        """Return the mean of a declared measure of every episode; NaN where it is absent."""
        return self._numbers["measure", name]

    def known(self, name: str) -> list[float]:
        """Return the values of column `name` that are present, without NaN."""
        return [value for value in self.of(name) if value == value]  # false for NaN

    def head(self, name: str) -> tuple[array[float], array[float]]:
        """Return entropy and learnable share of a head for every episode; NaN where the record has none."""
        return self._numbers["entropy", name], self._numbers["learnable", name]

    def fits(self, record: EpisodeRecord) -> bool:
        """Whether every environment of `record` has the declared measures, in their order."""
        return all(tuple(env.measures) == self.measures for env in record.envs)

    def add(self, record: EpisodeRecord) -> None:
        """Add one episode that `fits`; it replaces an earlier record of the same episode."""
        if record.ppo is not None:
            self._name(record.ppo.heads)
        numbers = _numbers_of(record, [("measure", name) for name in self.measures])
        place = len(self) if record.episode > self.newest else bisect_left(self.episodes, record.episode)
        if record.episode in self.episodes[place : place + 1]:
            del self.episodes[place], self.digests[place]
            for column in self._numbers.values():
                del column[place]
        self.episodes.insert(place, record.episode)
        self.digests.insert(place, record.digest)
        for key, column in self._numbers.items():
            value = numbers.get(key)
            column.insert(place, math.nan if value is None else value)

    def _name(self, heads: Iterable[str]) -> None:
        """Create columns for heads not seen before, NaN for all earlier episodes."""
        new = tuple(name for name in heads if name not in self.heads)
        self.heads += new
        self._numbers |= {(of, name): array("d", [math.nan]) * len(self) for name in new for of in _OF_HEADS}


def _numbers_of(record: EpisodeRecord, measures: list[_Key]) -> dict[_Key, float | None]:
    """Return the numbers of one episode by the columns that they belong to."""
    envs, ppo = record.envs, record.ppo
    numbers: dict[_Key, float | None] = {
        "envs": len(envs), "outcome": _mean([env.outcome for env in envs]),
        "reward": _mean([env.reward_sum for env in envs]), "steps": sum([env.steps for env in envs]),
        "failed_steps": sum([env.steps for env in envs if env.failed]), "failed": sum([env.failed for env in envs]),
        "total_s": record.timing.total_s, "learns": ppo is not None,
    }
    measured = zip(*[env.measures.values() for env in envs], strict=True)  # in the order of `measures`
    numbers.update(zip(measures, map(_mean, measured), strict=False))
    if ppo is not None:
        numbers.update(zip(UPDATE, _update_of(ppo), strict=True))
        for name, use in ppo.heads.items():
            numbers["entropy", name], numbers["learnable", name] = use.entropy, use.learnable
    return numbers


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are not None; None without any."""
    try:
        return math.fsum(values) / len(values)  # type: ignore[arg-type]
    except (TypeError, ZeroDivisionError):  # None is rare
        known = [value for value in values if value is not None]
        return math.fsum(known) / len(known) if known else None


# --- records ---------------------------------------------------------------------------------------------------------


class Episodes(Mapping[int, EpisodeRecord]):
    """Mapping from episode to complete record. Records on disk are read anew on each access and not kept in memory.

    JournalError for a line that was damaged meanwhile.
    """

    def __init__(self) -> None:
        self._at: dict[int, EpisodeRecord | int] = {}  # a record, or the byte offset of its line in the journal
        self._path = Path()

    def __setitem__(self, episode: int, record: EpisodeRecord) -> None:
        self._at[episode] = record

    def __getitem__(self, episode: int) -> EpisodeRecord:
        found = self._at[episode]
        if isinstance(found, EpisodeRecord):
            return found
        with open_to_read(self._path) as file:
            file.seek(found)
            event = event_of(file.readline())
        if not isinstance(event, EpisodeRecorded):
            deque(read(self._path), maxlen=0)  # raises with the line and the reason
            raise JournalError(f"{self._path} was changed while it was read: no episode where there was one")
        return event.record

    def __iter__(self) -> Iterator[int]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)

    def leave_in(self, path: Path, episode: int, offset: int) -> None:
        """Add an episode whose line begins `offset` bytes into the journal at `path`."""
        self._path = path
        self._at[episode] = offset
