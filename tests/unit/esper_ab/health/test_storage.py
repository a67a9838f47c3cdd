"""The folder of experiments: file system, free space, lock and fsync, as the journal needs them."""

from pathlib import Path

import pytest

from esper_ab.health import storage
from esper_ab.health.storage import Mount

# Mounts of other machines.


_MOUNTS = [
    Mount("/", "ext4", "rw,relatime"),
    Mount("/home", "nfs4", "rw,vers=4.2"),
    Mount("/scratch", "lustre", "rw,flock"),
    Mount("/scratch/old", "lustre", "rw"),
    Mount("/mnt/my share", "cifs", "rw"),
    Mount("/mnt/far", "fuse.sshfs", "rw"),
    Mount("/dev/shm", "tmpfs", "rw"),
    Mount("/n", "nfs", "rw,nolock"),
]


@pytest.mark.parametrize(
    ("folder", "kind", "level", "words"),
    [
        ("/var/runs", "ext4", "ok", "local"),
        ("/homework", "ext4", "ok", "local"),
        ("/home/me/runs", "nfs4", "warning", "every fsync waits"),
        ("/scratch/runs", "lustre", "warning", "on a network"),
        ("/scratch/old/runs", "lustre", "problem", "cannot be locked"),
        ("/mnt/my share/runs", "cifs", "warning", "on a network"),
        ("/mnt/far", "fuse.sshfs", "warning", "in user space"),
        ("/dev/shm/x", "tmpfs", "warning", "a restart deletes it"),
        ("/n/runs", "nfs", "warning", "other machines do not see"),
    ],
)
def test_a_file_system_that_is_not_local_has_a_remedy(folder, kind, level, words):
    mount = storage.mount_of(Path(folder), _MOUNTS)
    diagnosis = storage.file_system(Path(folder), mount)
    assert (mount.fstype, diagnosis.level) == (kind, level)
    assert words in diagnosis.what
    assert bool(diagnosis.remedy) == (level != "ok")


def test_a_later_mount_on_the_same_path_hides_the_earlier_mount():
    mounts = [Mount("/x", "ext4", "rw"), Mount("/x", "nfs", "rw")]
    assert storage.mount_of(Path("/x/y"), mounts).fstype == "nfs"


def test_checks_of_the_storage_leave_no_files(tmp_path):
    by_topic = {diagnosis.topic: diagnosis for diagnosis in storage.storage_diagnoses(tmp_path / "runs" / "deep", 1)}
    assert {"file system", "disk", "lock", "fsync"} <= set(by_topic)
    assert by_topic["lock"].level == "ok"
    assert list(tmp_path.iterdir()) == []
    levels_by_topic = {diagnosis.topic: diagnosis.level for diagnosis in storage.storage_diagnoses(tmp_path, 1 << 62)}
    assert levels_by_topic["disk"] == "problem"
    (tmp_path / "file").touch()
    (only_diagnosis,) = storage.storage_diagnoses(tmp_path / "file", 1)
    assert (only_diagnosis.topic, only_diagnosis.level) == ("run folder", "problem")


def test_a_slow_fsync_causes_a_warning():
    assert storage.sync_time([0.001] * 5 + [3.0]).level == "ok"
    slow_diagnosis = storage.sync_time([0.08] * 5)
    assert (slow_diagnosis.level, "median 80 ms" in slow_diagnosis.what) == ("warning", True)
