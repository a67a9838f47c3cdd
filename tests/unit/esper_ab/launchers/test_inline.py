"""The inline launcher: a process with an abandoned thread exits without running exit handlers."""

import os
import resource

import pytest
from support.plans.worker_orders import order
from support.processes.children import python

from esper_ab.launchers.inline import InlineLauncher

GIVEN_UP = """
import atexit, sys
from esper_ab.commands.cli import main
from esper_ab.launchers.inline import InlineLauncher
from support.plans.worker_orders import order
atexit.register(sys.stdout.write, "torn down")
launcher = InlineLauncher("support.workers.hanging_worker:main")
launcher.start(order(experiment_dir=sys.argv.pop(1), log_file="w00.log")).kill()
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("arguments", "status", "output"),
    [
        (("--version",), 0, "esper-ab"),
        (("status", "nowhere"), 2, ""),
    ],
)
def test_an_abandoned_thread_does_not_change_the_exit_status_of_a_command(tmp_path, arguments, status, output):
    process = python("-c", GIVEN_UP, tmp_path, *arguments)
    assert process.returncode == status, process.stderr
    assert process.stdout.startswith(output)
    assert "torn down" not in process.stdout
    assert bool(process.stderr) == bool(status)


@pytest.fixture
def two_descriptors_free():
    """Leave two descriptors free: one for the end of the worker, and one too few for the exchange of its key."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = [os.open(os.devnull, os.O_RDONLY) for _ in range(2)]
    for descriptor in descriptors:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(descriptors) + 1, limits[1]))
    yield descriptors
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_failed_start_leaves_no_descriptor_open(two_descriptors_free):
    with pytest.raises(OSError, match="Too many open files"):
        InlineLauncher("support.workers.hanging_worker:main", "tcp").start(order(server_key="a key"))
    for descriptor in two_descriptors_free:
        assert os.open(os.devnull, os.O_RDONLY) == descriptor
    for descriptor in two_descriptors_free:
        os.close(descriptor)


def test_dumping_stacks_into_an_unwritable_log_raises_no_error(tmp_path):
    worker = InlineLauncher("builtins:repr").start(order(experiment_dir=str(tmp_path / "removed"), log_file="w00.log"))
    worker.dump_stacks()
    assert worker.join(10.0)
