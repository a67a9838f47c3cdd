"""The contract of every task of growth: fixed, disjoint, stratified splits of the declared sizes and shapes."""

import hashlib
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from esper_ab.contracts.catalog import entry, names
from workers.kinds.growth.commands.fetch import fetch
from workers.kinds.growth.datasets.task import Archive, Split, Splits, Task
from workers.kinds.growth.tasks import cifar10

TINY = (45, 5, 10)  # of a CIFAR-10 with ten records per training file
ARCHIVE = cast("Archive", cifar10.TASK.archive)


def write_tiny_cifar(folder: Path) -> None:
    folder.mkdir(parents=True)
    for index, name in enumerate([*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]):
        labels = np.arange(10, dtype=np.uint8)[:, None]
        pixels = np.full((10, 3072), 10 * index, np.uint8) + labels
        (folder / name).write_bytes(np.concatenate([labels, pixels], axis=1).tobytes())


def load(task: Task, tmp_path: Path) -> tuple[Splits, tuple[int, int, int]]:
    if task.name == "cifar10":
        folder = tmp_path / "cifar-10-batches-bin"
        if not folder.exists():
            write_tiny_cifar(folder)
        return cifar10.read(folder, TINY), TINY
    train, validation, test = (size * max(1, len(task.contexts)) for size in task.sizes)
    return task.load(""), (train, validation, test)


def parts(splits: Splits) -> tuple[Split, ...]:
    return splits.train, splits.validation, splits.test


@pytest.fixture(params=names("workers.kinds.growth.tasks"))
def task(request: pytest.FixtureRequest) -> Task:
    return entry("workers.kinds.growth.tasks", request.param, "TASK")


def test_a_task_has_the_name_of_its_file(task: Task, request: pytest.FixtureRequest) -> None:
    assert task.name == request.node.callspec.params["task"]


def test_the_host_of_a_task_matches_its_slots_and_images(task: Task) -> None:
    assert len(task.slots) == len(set(task.slots)) == task.host.levels
    assert task.host.in_channels == task.image[0]
    assert min(task.image[1:]) >> task.host.pools >= 1


def test_splits_have_declared_sizes_and_shapes(task: Task, tmp_path: Path) -> None:
    splits, sizes = load(task, tmp_path)
    for split, size in zip(parts(splits), sizes, strict=True):
        assert split.x.shape == (size, *task.image)
        assert split.y.shape == (size,)
        assert split.x.dtype == np.float32
        assert split.y.dtype == np.int64
        assert np.isfinite(split.x).all()
        assert set(np.unique(split.y)) <= set(range(task.host.classes))


def test_loading_a_task_twice_gives_the_same_splits(task: Task, tmp_path: Path) -> None:
    first_splits = load(task, tmp_path)[0]
    second_splits = load(task, tmp_path)[0]
    for a, b in zip(parts(first_splits), parts(second_splits), strict=True):
        assert np.array_equal(a.x, b.x)
        assert np.array_equal(a.y, b.y)


def test_no_image_is_in_two_splits(task: Task, tmp_path: Path) -> None:
    splits, _ = load(task, tmp_path)
    images = [{row.tobytes() for row in split.x} for split in parts(splits)]
    assert len(set.union(*images)) == sum(map(len, images))


def test_train_and_validation_have_the_same_class_proportions(task: Task, tmp_path: Path) -> None:
    splits, sizes = load(task, tmp_path)
    counts = np.stack([np.bincount(s.y, minlength=task.host.classes) for s in (splits.train, splits.validation)])
    expected = counts.sum(axis=0) * np.array(sizes[:2])[:, None] / sum(sizes[:2])
    assert np.abs(counts - expected).max() <= 2.0


def test_the_digits_splits_have_the_stored_digest() -> None:
    """The splits belong to the task: a changed digest changes every result on it."""
    splits = entry("workers.kinds.growth.tasks", "digits", "TASK").load("")
    digest = hashlib.sha256(b"".join(split.x.tobytes() for split in parts(splits)))
    assert digest.hexdigest()[:16] == "39f01d1cc1aecb58"


def test_the_synthetic_task_is_learnable_from_amplitude_spectra() -> None:
    """Nearest neighbours of amplitude spectra, which ignore phase, are far above the 25 % of chance."""
    splits = entry("workers.kinds.growth.tasks", "synthetic", "TASK").load("")
    spectra = [np.abs(np.fft.fft2(s.x[:, 0])).reshape(len(s.y), -1) for s in (splits.train, splits.test)]
    distances = ((spectra[1][:, None] - spectra[0][None]) ** 2).sum(axis=2)
    assert (splits.train.y[distances.argmin(axis=1)] == splits.test.y).mean() > 0.7


@pytest.mark.parametrize("name", ["digits", "digits_easy", "mixture", "synthetic"])
def test_tasks_without_files_refuse_a_data_directory(name: str) -> None:
    with pytest.raises(ValueError, match="leave it out"):
        entry("workers.kinds.growth.tasks", name, "TASK").load("/somewhere")


def test_cifar10_reads_the_labels_and_colour_planes_of_images(tmp_path: Path) -> None:
    splits, _ = load(cifar10.TASK, tmp_path)
    row = int(np.flatnonzero(splits.test.y == 7)[0])
    red_value = (np.float32(57) / np.float32(255) - np.float32(0.4914)) / np.float32(0.2470)
    assert splits.test.x[row, 0] == pytest.approx(np.full((32, 32), red_value))


def test_cifar10_reports_missing_or_damaged_files_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="esper-ab growth fetch cifar10"):
        cifar10.TASK.load(str(tmp_path))
    load(cifar10.TASK, tmp_path)
    with pytest.raises(ValueError, match=r"10 images, not 10000"):
        cifar10.TASK.load(str(tmp_path))
    (tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin").write_bytes(b"torn")
    with pytest.raises(ValueError, match=r"data_batch_3\.bin: 4 bytes are not a multiple"):
        cifar10.read(tmp_path / "cifar-10-batches-bin", TINY)


def packed_cifar(folder: Path, sha256: str = "", size_bytes: int = 0) -> Archive:
    write_tiny_cifar(folder / "source" / "cifar-10-batches-bin")
    archive = folder / "archive.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder / "source" / "cifar-10-batches-bin", "cifar-10-batches-bin")
    data = archive.read_bytes()
    sha256 = sha256 or hashlib.sha256(data).hexdigest()
    size_bytes = size_bytes or len(data)
    return replace(ARCHIVE, url=archive.as_uri(), sha256=sha256, size_bytes=size_bytes)


def test_fetch_unpacks_a_verified_archive(tmp_path: Path) -> None:
    fetch(packed_cifar(tmp_path), tmp_path / "data")
    assert len(cifar10.read(tmp_path / "data" / "cifar-10-batches-bin", TINY).train.y) == TINY[0]
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["cifar-10-batches-bin"]


@pytest.mark.parametrize("wrong_content", [{"sha256": "0" * 64}, {"size_bytes": 10}])
def test_fetch_keeps_no_file_of_an_unverified_archive(tmp_path: Path, wrong_content: dict[str, str | int]) -> None:
    archive = packed_cifar(tmp_path, **wrong_content)
    with pytest.raises(ValueError, match="checksum"):
        fetch(archive, tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_fetch_without_a_network_suggests_data_dir(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--data-dir"):
        fetch(replace(ARCHIVE, url=(tmp_path / "nowhere").as_uri()), tmp_path / "data")
