"""What the Ray launcher says and does without a cluster; with one: tests/cluster/test_ray.py."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.children import environment

from esper_ab.commands._launcher import launcher_of, read_launcher_flags
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.messages import Lane
from esper_ab.execution.launching import make_launcher
from esper_ab.launchers.ray import RayLauncher, _bundle

GIVEN = {
    "launcher": "ray", "transport": None, "files": None, "ray_address": "auto", "ray_label": ("kind=h100", "zone=a"),
    "ray_wait": 60.0,
}  # fmt: skip


def lane(*devices):
    return Lane(name="+".join(devices), devices=devices, uuids=("",) * len(devices))


def test_without_ray_one_line_says_how_to_install_it():
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from esper_ab.commands.cli import main\nsys.argv = ['esper-ab', 'launch', '--launcher', 'ray', '--dry-run']\n"
        "sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "pip install 'esper-ab[ray]', on every node alike" in line


def test_ipc_is_refused_because_workers_are_elsewhere():
    with pytest.raises(UsageError, match="launcher ray: workers on other machines need --transport tcp"):
        RayLauncher(transport="ipc")


def test_a_lane_takes_its_cores_or_its_gpus_and_a_core():
    assert _bundle(lane("cpu:0", "cpu:1")) == {"CPU": 2}
    assert _bundle(lane("cuda:0", "cuda:3")) == {"GPU": 2, "CPU": 1}


def test_flags_of_ray_are_refused_with_another_launcher():
    with pytest.raises(UsageError, match="launcher local has no --ray-address"):
        make_launcher("local", ray_address="auto")


def test_a_label_that_is_none_is_refused():
    with pytest.raises(UsageError, match="--ray-label h100: KEY=VALUE is needed"):
        launcher_of({**GIVEN, "ray_label": ("h100",)})


def test_a_command_that_goes_on_by_itself_is_given_the_same_flags():
    assert read_launcher_flags(GIVEN).words == (
        "--launcher", "ray", "--ray-address", "auto", "--ray-label", "kind=h100", "--ray-label", "zone=a",
        "--ray-wait", "60",
    )  # fmt: skip
