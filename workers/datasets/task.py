"""Definition of a task: three fixed splits of real or generated data, where they are kept, and the host grown on it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from workers.arrays import Floats32, Ints


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A gzipped tar on the web, by size and checksum, and the files of it that the task reads."""

    url: str
    size_bytes: int
    sha256: str
    members: tuple[str, ...]  # paths inside the archive, kept as they are below the data folder


def data_folder(data_dir: str) -> Path:
    """Return the folder of a task's files: `data_dir`, or the user's cache when it is empty."""
    if data_dir:
        return Path(data_dir).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "esper_ab"


@dataclass(frozen=True, kw_only=True)
class HostSpec:
    """A small convolutional host: per level conv(kernel, padding kernel//2, no bias), batch norm, ReLU, 2x2 max-pool.

    One slot per level, after its pool. Level i has `base * 2**i` channels. Then global average pool and a linear layer.
    """

    in_channels: int
    base: int
    levels: int
    kernel: int
    pools: int  # the first `pools` levels pool
    classes: int

    @property
    def params(self) -> int:
        """Trainable parameters: convolutions, batch norms (scale and shift), the linear layer."""
        widths = [self.in_channels, *(self.base << level for level in range(self.levels))]
        convolutions = sum(before * after for before, after in pairwise(widths)) * self.kernel * self.kernel
        return convolutions + 2 * sum(widths[1:]) + (widths[-1] + 1) * self.classes


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the hosts of one context are given, in a family: a task whose hosts differ.

    Each split of a family holds the samples of its contexts one after the other, as many of each. A host is of one
    context, drawn for it: it is trained, validated and tested on samples of that context alone.
    """

    name: str
    images: tuple[int, int]  # a host is trained on so many of the context's training samples, at least and at most


@dataclass(frozen=True, kw_only=True)
class Split:
    """Samples of one split, the same for every environment and every group."""

    x: Floats32  # [N, C, H, W], normalised with constants of the task
    y: Ints  # [N]


@dataclass(frozen=True, kw_only=True)
class Splits:
    """train: host SGD; validation: observations and rewards; test: the outcome, seen by no policy and no reward."""

    train: Split
    validation: Split
    test: Split


@dataclass(frozen=True, kw_only=True)
class Task:
    """One entry of workers/tasks: `TASK = Task(...)`."""

    name: str
    title: str
    host: HostSpec
    slots: tuple[str, ...]  # names, network order, one per level
    image: tuple[int, int, int]  # C, H, W
    sizes: tuple[int, int, int]  # samples in train, validation, test; in a family, of each context
    load: Callable[[str], Splits]  # data_dir ("": default folder) -> splits; FileNotFoundError names the remedy
    archive: Archive | None = None  # what `esper-ab growth fetch` downloads; None: nothing to fetch
    contexts: tuple[Context, ...] = ()  # of a family; (): all hosts are given everything
