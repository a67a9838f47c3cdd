"""CIFAR-10 (A. Krizhevsky, 2009), from the folder that `esper-ab growth fetch cifar10` fills, or from a given one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from esper_ab.contracts.regular_file import read_regular
from workers.arrays import Ints
from workers.kinds.growth.datasets.stratified import stratified
from workers.kinds.growth.datasets.task import Archive, HostSpec, Split, Splits, Task, data_folder

_FOLDER = "cifar-10-batches-bin"
_TRAIN_FILES = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
_TEST_FILE = "test_batch.bin"
_IMAGE = (3, 32, 32)
_RECORD_BYTES = 1 + 3 * 32 * 32  # label, then red, green and blue planes
_SIZES = (45_000, 5_000, 10_000)
_MEAN = np.array([0.4914, 0.4822, 0.4465], np.float32)[:, None, None]  # per channel, over the training files
_STD = np.array([0.2470, 0.2435, 0.2616], np.float32)[:, None, None]


def parse(data: bytes) -> tuple[NDArray[np.uint8], Ints]:
    """Return images [N, 3, 32, 32] and labels [N] from one file's bytes; ValueError if the records are incomplete."""
    if len(data) % _RECORD_BYTES:
        raise ValueError(f"{len(data)} bytes are not a multiple of the record size {_RECORD_BYTES}")
    records = np.frombuffer(data, np.uint8).reshape(-1, _RECORD_BYTES)
    labels = records[:, 0].astype(np.int64)
    if len(labels) and labels.max() > 9:
        raise ValueError(f"label {labels.max()} is not one of 0-9")
    return records[:, 1:].reshape(-1, *_IMAGE), labels


def _read(path: Path, expected: int) -> tuple[NDArray[np.uint8], Ints]:
    try:
        images, labels = parse(read_regular(path))
        if len(labels) != expected:
            raise ValueError(f"{len(labels)} images, not {expected}")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"no CIFAR-10 file {path}; `esper-ab growth fetch cifar10` downloads it; data_dir can name another folder"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}; `esper-ab growth fetch cifar10` replaces it") from None
    return images, labels


def _split(images: NDArray[np.uint8], labels: Ints) -> Split:
    return Split(x=(images.astype(np.float32) / np.float32(255) - _MEAN) / _STD, y=labels)


def read(folder: Path, sizes: tuple[int, int, int]) -> Splits:
    """Return splits from the folder of .bin files; validation is a fixed stratified part of the training files.

    `sizes`: samples in train, validation and test. Raises FileNotFoundError or ValueError; the message names the
    remedy.
    """
    per_file = (sizes[0] + sizes[1]) // len(_TRAIN_FILES)
    parts = [_read(folder / name, per_file) for name in _TRAIN_FILES]
    images = np.concatenate([part[0] for part in parts])
    labels = np.concatenate([part[1] for part in parts])
    train, validation = stratified(labels, sizes[:2], "cifar10")
    return Splits(
        train=_split(images[train], labels[train]),
        validation=_split(images[validation], labels[validation]),
        test=_split(*_read(folder / _TEST_FILE, sizes[2])),
    )


def load(data_dir: str = "") -> Splits:
    """Return splits of the whole data set, from `data_dir` or the folder that `esper-ab growth fetch cifar10` fills."""
    return read(data_folder(data_dir) / _FOLDER, _SIZES)


TASK = Task(
    name="cifar10",
    title="CIFAR-10, 32x32 colour photographs, host of 3x3 convolutions",
    host=HostSpec(in_channels=3, base=8, levels=3, kernel=3, pools=3, classes=10),
    slots=("early", "mid", "late"),
    image=_IMAGE,
    sizes=_SIZES,
    load=load,
    archive=Archive(
        url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        size_bytes=170_052_171,
        sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        members=tuple(f"{_FOLDER}/{name}" for name in (*_TRAIN_FILES, _TEST_FILE)),
    ),
)
