"""A user's program inherits the user's shell environment on the nodes of Slurm and Ray."""

import os

import pytest
from support.clusters import ray_cluster
from support.clusters.ray_cluster import RayNodes
from support.processes import users_shell

from esper_ab.contracts.users_shell import OF_A_JOB

ALIKE = ("folder", "Umask", "limits", "SigBlk", "path", "flags")
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def ray_address(monkeypatch):
    if reason := ray_cluster.missing():
        pytest.skip(reason)
    with monkeypatch.context() as patch, RayNodes(1) as nodes:
        patch.delenv("PYTHONPATH", raising=False)
        yield nodes.address


def check(folder, *flags):
    direct_facts, launched_facts = users_shell.inherited_facts(folder, *flags)
    assert launched_facts
    for facts in launched_facts:
        changed_names = (
            users_shell.changed(direct_facts["variables"], facts["variables"]) - users_shell.named_on_the_page()
        )
        assert {name for name in changed_names if not name.startswith(OF_A_JOB)} == set()
        assert {name: facts[name] for name in ALIKE} == {name: direct_facts[name] for name in ALIKE}


def test_a_program_inherits_the_shell_environment_on_ray(ray_address, tmp_path):
    check(tmp_path, "--launcher", "ray", "--ray-address", ray_address)


@pytest.mark.usefixtures("allocation")
def test_a_program_inherits_the_shell_environment_in_a_slurm_allocation(tmp_path):
    assert os.environ["SLURM_JOB_ID"]
    check(tmp_path, "--launcher", "slurm")
