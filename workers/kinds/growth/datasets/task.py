"""Task definitions: three fixed splits of real or generated data, where they are stored, and the host grown on them.

Also generates gratings and loads the digits shipped with the package. All splits are stratified.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np

from esper_ab.contracts.rng import RngPath
from workers.arrays import Floats, Floats32, Ints


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
        convolutions = sum(before * after for before, after in pairwise(widths)) * self.kernel * self.kernel
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


def stratified(labels: Ints, sizes: tuple[int, ...], name: str) -> tuple[Ints, ...]:
    """Return disjoint index arrays of the given sizes, each with every class in proportion.

    Samples are shuffled within each class, then sorted by their relative rank within their class. Any contiguous slice
    of that order therefore contains the classes in proportion, to within one sample per cut. The shuffle sorts raw
    Philox words drawn at an address that depends only on `name`. Unlike numpy's generator methods, raw words are the
    same in every numpy version. The experiment's rng seed has no effect, because splits belong to the task. Raises
    ValueError if there are too few samples.
    """
    if sum(sizes) > len(labels):
        raise ValueError(f"{name}: the splits need {sum(sizes)} samples but there are only {len(labels)}")
    words = (RngPath(0) / "task" / name / "split").generator().bit_generator.random_raw(len(labels))
    quantile = np.empty(len(labels))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        shuffled = members[np.argsort(words[members], kind="stable")]
        quantile[shuffled] = (np.arange(len(members)) + 0.5) / len(members)
    order = np.lexsort((words, quantile))
    return tuple(order[begin:end] for begin, end in pairwise(accumulate(sizes, initial=0)))


def splits_of(x: Floats32, labels: Ints, sizes: tuple[int, int, int], name: str) -> Splits:
    """Return samples x and their labels, divided into `stratified` splits."""
    train, validation, test = (Split(x=x[rows], y=labels[rows]) for rows in stratified(labels, sizes, name))
    return Splits(train=train, validation=validation, test=test)


class SampleDraws:
    """Uniform numbers made from raw Philox words, which are the same in every numpy version."""

    def __init__(self, *address: str) -> None:
        self._path = RngPath(0) / "task"
        for part in address:
            self._path /= part

    def uniform(self, purpose: str, *shape: int) -> Floats:
        """Return numbers in [0, 1)."""
        words = (self._path / purpose).generator().bit_generator.random_raw(int(np.prod(shape)))
        return np.ldexp((np.asarray(words, np.uint64) >> np.uint64(11)).astype(np.float64), -53).reshape(shape)

    def gratings(self, labels: Ints, classes: int, cycles: tuple[float, float], side: int) -> Floats:
        """Return sine gratings [n, side, side] whose orientation is the label; `cycles`: fewest and most per image."""
        n = len(labels)
        angle = labels * (np.pi / classes)
        frequency = cycles[0] + (cycles[1] - cycles[0]) * self.uniform("cycles", n)
        phase = 2 * np.pi * self.uniform("phase", n)
        row, column = np.mgrid[:side, :side] / side
        along = np.cos(angle)[:, None, None] * column + np.sin(angle)[:, None, None] * row
        waves: Floats = np.sin(2 * np.pi * frequency[:, None, None] * along + phase[:, None, None])
        return waves


def refuse_folder(task: str, data_dir: str) -> None:
    """Raise ValueError if a data folder is given for generated data, because it would be ignored."""
    if data_dir:
        raise ValueError(f"{task} is generated; data_dir {data_dir!r} would be ignored, so leave it out")


FILE = Path(__file__).with_name("digits.npz")
DIGITS_SIZES = (1024, 384, 389)
_MAX = 16.0  # a pixel is the number of set bits in a 4x4 patch
# Of all pixels, scaled to 0-1.
_MEAN = 0.3053
_STD = 0.3760


def load_digits(data_dir: str = "") -> Splits:
    """Load the splits of the shipped images, x [N, 1, 8, 8]; ValueError for a data_dir, which would have no effect."""
    if data_dir:
        raise ValueError(f"the digits ship with the package; data_dir {data_dir!r} would be ignored, so leave it out")
    with np.load(FILE) as file:
        images = file["images"]
        labels = file["labels"].astype(np.int64)
    x = ((images[:, None] / _MAX - _MEAN) / _STD).astype(np.float32)
    return splits_of(x, labels, DIGITS_SIZES, "digits")
