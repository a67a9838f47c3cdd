"""The doctor's findings from facts of machines that are not here."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.machine import Device, Machine
from esper_ab.health import devices, processor, storage, system

_MOUNTS = """\
/dev/sda1 / ext4 rw,relatime 0 0
server:/home /home nfs4 rw,vers=4.2 0 0
scratch@o2ib:/s /scratch lustre rw,flock 0 0
scratch@o2ib:/t /scratch/old lustre rw 0 0
//pc/share /mnt/my\\040share cifs rw 0 0
sshfs /mnt/far fuse.sshfs rw 0 0
tmpfs /dev/shm tmpfs rw 0 0
server:/n /n nfs rw,nolock 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind", "level", "words"),
    [
        ("/var/runs", "ext4", "ok", "local"),
        ("/homework", "ext4", "ok", "local"),
        ("/home/me/runs", "nfs4", "warning", "every fsync waits"),
        ("/scratch/runs", "lustre", "warning", "over a network"),
        ("/scratch/old/runs", "lustre", "problem", "cannot be locked"),
        ("/mnt/my share/runs", "cifs", "warning", "over a network"),
        ("/mnt/far", "fuse.sshfs", "warning", "in user space"),
        ("/dev/shm/x", "tmpfs", "warning", "gone after a restart"),
        ("/n/runs", "nfs", "warning", "not seen on other machines"),
    ],
)
def test_file_systems(folder: str, kind: str, level: str, words: str) -> None:
    mount = storage.mount_of(Path(folder), storage.parse_mounts(_MOUNTS))
    found = storage.file_system(Path(folder), mount)
    assert (mount.kind, found.level) == (kind, level)
    assert words in found.what
    assert bool(found.remedy) == (level != "ok")


def test_a_later_mount_on_the_same_place_covers_the_earlier() -> None:
    mounts = storage.parse_mounts("a /x ext4 rw 0 0\nb /x nfs rw 0 0\n")
    assert storage.mount_of(Path("/x/y"), mounts).kind == "nfs"


def test_room_lock_and_sync_are_tried_and_nothing_stays(tmp_path: Path) -> None:
    found = {finding.topic: finding for finding in storage.storage_findings(tmp_path / "runs" / "deep", 1)}
    assert {"file system", "disk", "lock", "fsync", "clock"} <= set(found)
    assert found["lock"].level == "ok"
    assert list(tmp_path.iterdir()) == []
    full = {finding.topic: finding.level for finding in storage.storage_findings(tmp_path, 1 << 62)}
    assert full["disk"] == "problem"
    (tmp_path / "file").touch()
    (only,) = storage.storage_findings(tmp_path / "file", 1)
    assert (only.topic, only.level) == ("run folder", "problem")


def test_slow_synchronisation_and_foreign_clocks() -> None:
    assert storage.sync_time([0.001] * 5 + [3.0]).level == "ok"
    slow = storage.sync_time([0.08] * 5)
    assert (slow.level, "median 80 ms" in slow.what) == ("warning", True)
    assert storage.clocks(-60.0).level == "warning"
    assert storage.clocks(0.01).level == "ok"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.cfs_quota_us": "50000\n", "cpu.cfs_period_us": "100000\n"}, 0.5),
        ({}, None),
    ],
)
def test_cpu_quota_of_both_generations(tmp_path: Path, files: dict[str, str], expected: float | None) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert processor.cpu_quota([tmp_path, tmp_path / "nowhere"]) == expected


def test_the_tightest_group_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a"
    inner.mkdir()
    (inner / "memory.max").write_text("max\n")
    (tmp_path / "memory.max").write_text(f"{1 << 30}\n")
    (inner / "cpu.max").write_text("400000 100000")
    (tmp_path / "cpu.max").write_text("200000 100000")
    assert processor.memory_limit([inner, tmp_path]) == 1 << 30
    assert processor.cpu_quota([inner, tmp_path]) == 2.0
    meminfo = "MemTotal: 100000000 kB\nMemAvailable: 50000000 kB\n"
    assert processor.memory(meminfo, 1 << 30).level == "warning"
    assert processor.memory(meminfo, None).level == "ok"


@given(st.integers(1, 512), st.integers(1, 512))
def test_affinity_and_quota_warn_when_they_take_something_away(usable: int, there: int) -> None:
    assert (processor.cores(min(usable, there), there).level == "warning") == (usable < there)
    assert (processor.quota(float(usable), there).level == "warning") == (usable < there)


def test_what_the_processor_can_do() -> None:
    assert "native" in processor.features("flags\t: fpu avx2 avx512f amx_tile amx_bf16\n").what
    assert "avx2; bf16 on the CPU is converted" in processor.features("flags\t: fpu avx2\n").what
    assert "asimd" in processor.features("Features\t: fp asimd\n").what


@pytest.mark.parametrize(
    ("soft", "levels"),
    [
        ({"NOFILE": 20000, "NPROC": -1, "CORE": 0}, ["ok", "ok", "ok"]),
        ({"NOFILE": 256, "NPROC": 100, "CORE": -1}, ["warning", "warning", "warning"]),
    ],
)
def test_limits(soft: dict[str, int], levels: list[str]) -> None:
    assert [finding.level for finding in system.limits(soft)] == levels


def test_a_socket_needs_a_short_path(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    assert system.socket_path(deep).level == "problem"
    assert system.socket_path(Path("/nowhere")).level == "problem"


# --- GPUs -------------------------------------------------------------------------------------------------------------

_CPU = Machine(
    torch_version="2.7.0", cuda_build="", devices=(Device(name="cpu:0", title="", uuid="", memory_bytes=1),),
    rewards=(), controllers=(), blueprints=(), tasks=(), multiply_adds_per_s=1.0, user_rewards=(), task_problem="",
    gpu_problem="",
)  # fmt: skip
_GPUS = msgspec.structs.replace(
    _CPU, cuda_build="12.8",
    devices=tuple(Device(name=f"cuda:{i}", title="NVIDIA H200", uuid="", memory_bytes=141 << 30) for i in range(2)),
)  # fmt: skip
_TABLE = "NVIDIA H200, 570.12, 9.0, Disabled\nNVIDIA H200, 570.12, 9.0, Disabled\n"
_SCREEN = "| NVIDIA-SMI 570.12    Driver Version: 570.12    CUDA Version: 12.8 |"


def levels(machine: Machine, driver: devices.Driver, pool: str | None = None) -> dict[str, str]:
    return {finding.topic: finding.level for finding in devices.gpu_findings(machine, driver, pool)}


def test_gpus_that_work() -> None:
    driver = devices.parse_driver(_TABLE, _SCREEN, "")
    assert (driver.version, driver.cuda, len(driver.gpus)) == ("570.12", "12.8", 2)
    assert set(levels(_GPUS, driver, "0,1").values()) == {"ok"}


def test_no_gpu_is_no_problem() -> None:
    assert levels(_CPU, devices.parse_driver("", "", "")) == {"gpu": "ok", "torch": "ok"}
    (gpu, _) = devices.gpu_findings(_CPU, devices.Driver(), "")
    assert "CUDA_VISIBLE_DEVICES is empty" in gpu.what


def test_a_gpu_that_torch_cannot_use_is_a_problem() -> None:
    machine = msgspec.structs.replace(_CPU, gpu_problem="this machine has an NVIDIA GPU, but …")
    assert levels(machine, devices.parse_driver("", "", ""))["gpu"] == "problem"
    newer = msgspec.structs.replace(_GPUS, cuda_build="13.0")
    assert levels(newer, devices.parse_driver(_TABLE, _SCREEN, ""))["torch"] == "problem"


def test_mig_and_old_gpus() -> None:
    driver = devices.parse_driver("NVIDIA V100, 570.12, 7.0, [N/A]\nNVIDIA A100, 570.12, 8.0, Enabled\n", _SCREEN, "")
    found = levels(_GPUS, driver)
    assert (found["mig"], found["bf16"]) == ("warning", "warning")


def test_the_version_of_the_driver_without_nvidia_smi() -> None:
    text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\nGCC version: 12\n"
    assert devices.parse_driver("", "", text).version == "535.104.05"
