"""Task definitions: three fixed splits of real or generated data, where they are stored, and the host grown on them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from workers.arrays import Floats32, Ints


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A gzipped tar file on the web, with its size and checksum and the members that the task reads."""

    url: str
    size_bytes: int
    sha256: str
    members: tuple[str, ...]  # paths inside the archive; kept below the data folder


def data_folder(data_dir: str) -> Path:
    """Return the folder for task files: `data_dir`, or the user's cache if `data_dir` is empty."""
    if data_dir:
        return Path(data_dir).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "esper_ab"


@dataclass(frozen=True, kw_only=True)
class HostSpec:
    """A small convolutional host: per level conv(kernel, padding kernel//2, no bias), batch norm, ReLU, 2x2 max-pool.

    Each level has one slot, after its pool. Level i has `base * 2**i` channels. A global average pool and a linear
    layer follow the last level.
    """

    in_channels: int
    base: int
    levels: int
    kernel: int
    pools: int  # the first `pools` levels pool
    classes: int

    @property
    def params(self) -> int:
        """Number of trainable parameters: convolutions, batch norms (scale and shift), and the linear layer."""
        widths = [self.in_channels, *(self.base << level for level in range(self.levels))]
        convolutions = (
            sum(in_channels * out_channels for in_channels, out_channels in pairwise(widths))
            * self.kernel
            * self.kernel
        )
        return convolutions + 2 * sum(widths[1:]) + (widths[-1] + 1) * self.classes


@dataclass(frozen=True, kw_only=True)
class Context:
    """Training-set sizes for one context of a family. A family is a task whose hosts differ.

    Each split of a family stores the samples of its contexts consecutively, with the same number for each context.
    Every host is assigned one context at random and is trained, validated and tested on samples of that context only.
    """

    name: str
    images: tuple[int, int]  # least and largest number of the context's training samples per host


@dataclass(frozen=True, kw_only=True)
class Split:
    """Samples of one split, the same for every environment and group."""

    x: Floats32  # [N, C, H, W], normalised with the task's constants
    y: Ints  # [N]


@dataclass(frozen=True, kw_only=True)
class Splits:
    """The samples for training hosts, for observations and rewards (validation), and for the outcome (test).

    Policies and rewards do not see the test split.
    """

    train: Split
    validation: Split
    test: Split


@dataclass(frozen=True, kw_only=True)
class Task:
    """One entry of workers/kinds/growth/tasks: `TASK = Task(...)`."""

    name: str
    title: str
    host: HostSpec
    slots: tuple[str, ...]  # names, network order, one per level
    image: tuple[int, int, int]  # C, H, W
    sizes: tuple[int, int, int]  # samples in train, validation, test; for a family, per context
    load: Callable[[str], Splits]  # data_dir ("": default folder) -> splits; FileNotFoundError names the remedy
    archive: Archive | None = None  # what `esper-ab growth fetch` downloads; None: nothing to fetch
    contexts: tuple[Context, ...] = ()  # of a family; (): every host gets all samples
