from contextlib import closing

import pytest

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.journal.lock import Lock
from esper_ab.readers.joint_directory import (
    JOINT_NAME,
    Joint,
    JointPart,
    is_joint,
    read_joint,
    refuse_joint,
    write_joint,
)

TASKS = ("digits", "mixture")
JOINT = Joint(parts=tuple(JointPart(name=task, folder=task, digest="0" * 64) for task in TASKS), scores={})


def test_a_written_joint_directory_is_read_back(tmp_path):
    write_joint(tmp_path, JOINT, {task: f'task = "{task}"\n' for task in TASKS})
    assert is_joint(tmp_path)
    assert read_joint(tmp_path) == JOINT
    assert (tmp_path / "mixture.toml").read_text() == 'task = "mixture"\n'


def test_the_refusal_of_a_joint_directory_names_its_parts(tmp_path):
    refuse_joint(tmp_path, "export")  # nothing there: it is the command's to say so
    write_joint(tmp_path, JOINT, {})
    with pytest.raises(UsageError, match=f"; export takes one at a time: {tmp_path}/digits, {tmp_path}/mixture$"):
        refuse_joint(tmp_path, "export")
    (tmp_path / "mixture").mkdir()
    with closing(Lock(tmp_path / "mixture")), pytest.raises(UsageError, match=r"digits, \S*mixture \(running\)$"):
        refuse_joint(tmp_path, "stop")


def test_the_refusal_of_a_damaged_joint_file_names_the_file(tmp_path):
    with pytest.raises(UsageError, match="not a joint experiment"):
        read_joint(tmp_path)
    write_joint(tmp_path, JOINT, {})
    (tmp_path / JOINT_NAME).write_text("{")
    with pytest.raises(JournalError, match=JOINT_NAME):
        read_joint(tmp_path)
