"""Findings about limits of a process."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from support import asking

from esper_ab.contracts.children import Device
from esper_ab.health import examination
from esper_ab.health.examination import Mount

LEAST_BYTES = 3 << 29


@pytest.mark.parametrize(("soft", "levels"), [
    ((20000, 4096, -1), ["ok", "ok"]), ((256, 64, LEAST_BYTES), ["warning", "warning"]),
    ((-1, -1, LEAST_BYTES - 1), ["ok", "ok", "problem"]),
])  # fmt: skip
def test_limits(soft, levels):
    assert [diagnosis.level for diagnosis in examination.limits(*soft)] == levels


# Findings about GPUs, from what the drivers of machines that are not here have printed.


_CPU, _GPUS = asking.machine(), asking.machine(gpus=2, cuda_build="12.8")
_CANNOT = {"gpu_problem": "this machine has an NVIDIA GPU, but …"}
_MIG = Device(name="cuda:0", title="NVIDIA A100-SXM4-80GB MIG 1g.10gb", uuid="", memory_bytes=10 << 30)
_SCREEN = "| NVIDIA-SMI 570.12    Driver Version: 570.12    CUDA Version: 12.8 |"


@pytest.mark.parametrize(("machine", "change", "screen", "pool", "worst"), [
    (_GPUS, {}, _SCREEN, "0,1", {}),
    (_CPU, {}, "", None, {}),
    (_CPU, _CANNOT, "", None, {"gpu": "problem"}),
    (_CPU, {"gpu_problem": "it names …"}, "", "MIG-a,MIG-b", {"gpu": "problem"}),
    (_GPUS, {"cuda_build": "13.0"}, _SCREEN, None, {"torch": "problem"}),
    (_GPUS, {"devices": (_MIG,)}, _SCREEN, None, {"mig": "warning"}),
    (_GPUS, {"unusable_gpus": "usable: 2; not cuda:2"}, _SCREEN, None, {"gpu": "warning"}),
])  # fmt: skip
def test_what_is_wrong_with_gpus_is_found_and_nothing_else(machine, change, screen, pool, worst):
    driver = examination.parse_driver(screen)
    found = examination.gpu_diagnoses(replace(machine, **change), driver, pool)
    assert {one.topic: one.level for one in found if one.level != "ok"} == worst


def test_what_the_driver_and_the_environment_say_of_gpus_is_told():
    driver = examination.parse_driver(_SCREEN)
    assert (driver.version, driver.cuda) == ("570.12", "12.8")
    (gpu, _) = examination.gpu_diagnoses(_CPU, examination.Driver(), "")
    assert "CUDA_VISIBLE_DEVICES is empty" in gpu.what
    (gpu, *_) = examination.gpu_diagnoses(replace(_CPU, **_CANNOT), driver, "MIG-a,MIG-b")
    assert gpu.remedy == "name a single instance, or use --devices cpu"


# Findings about file systems, from mounts of machines that are not here.


_MOUNTS = [
    Mount("/", "ext4", "rw,relatime"), Mount("/home", "nfs4", "rw,vers=4.2"), Mount("/scratch", "lustre", "rw,flock"),
    Mount("/scratch/old", "lustre", "rw"), Mount("/mnt/my share", "cifs", "rw"), Mount("/mnt/far", "fuse.sshfs", "rw"),
    Mount("/dev/shm", "tmpfs", "rw"), Mount("/n", "nfs", "rw,nolock"),
]  # fmt: skip


@pytest.mark.parametrize(("folder", "kind", "level", "words"), [
    ("/var/runs", "ext4", "ok", "local"), ("/homework", "ext4", "ok", "local"),
    ("/home/me/runs", "nfs4", "warning", "every fsync waits"),
    ("/scratch/runs", "lustre", "warning", "on a network"),
    ("/scratch/old/runs", "lustre", "problem", "cannot be locked"),
    ("/mnt/my share/runs", "cifs", "warning", "on a network"),
    ("/mnt/far", "fuse.sshfs", "warning", "in user space"),
    ("/dev/shm/x", "tmpfs", "warning", "a restart deletes it"),
    ("/n/runs", "nfs", "warning", "other machines do not see"),
])  # fmt: skip
def test_file_systems(folder, kind, level, words):
    mount = examination.mount_of(Path(folder), _MOUNTS)
    found = examination.file_system(Path(folder), mount)
    assert (mount.fstype, found.level) == (kind, level)
    assert words in found.what
    assert bool(found.remedy) == (level != "ok")


def test_a_later_mount_on_the_same_place_covers_the_earlier():
    mounts = [Mount("/x", "ext4", "rw"), Mount("/x", "nfs", "rw")]
    assert examination.mount_of(Path("/x/y"), mounts).fstype == "nfs"


def test_room_lock_and_sync_are_tried_and_nothing_stays(tmp_path):
    found = {diagnosis.topic: diagnosis for diagnosis in examination.storage_diagnoses(tmp_path / "runs" / "deep", 1)}
    assert {"file system", "disk", "lock", "fsync"} <= set(found)
    assert found["lock"].level == "ok"
    assert list(tmp_path.iterdir()) == []
    full = {diagnosis.topic: diagnosis.level for diagnosis in examination.storage_diagnoses(tmp_path, 1 << 62)}
    assert full["disk"] == "problem"
    (tmp_path / "file").touch()
    (only,) = examination.storage_diagnoses(tmp_path / "file", 1)
    assert (only.topic, only.level) == ("run folder", "problem")


def test_slow_synchronisation():
    assert examination.sync_time([0.001] * 5 + [3.0]).level == "ok"
    slow = examination.sync_time([0.08] * 5)
    assert (slow.level, "median 80 ms" in slow.what) == ("warning", True)
