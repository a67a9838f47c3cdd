"""Fixtures: a Slurm cluster of three nodes on this machine, and an allocation in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters import slurm_cluster
from support.clusters.slurm_cluster import SlurmCluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    if reason := slurm_cluster.missing():
        pytest.skip(reason)
    with SlurmCluster(tmp_path_factory.mktemp("slurm")) as slurm:
        yield slurm


@pytest.fixture
def allocation(cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Allocate all three nodes and put this process in the job, as a batch script on n1 would be."""
    job = cluster.allocate("--nodes=3", "--ntasks-per-node=1", "--cpus-per-task=2", "--no-kill")
    for name, value in cluster.of_batch(job).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parents[1]}:{Path(__file__).parents[2]}")
    yield job
    cluster.run("scancel", job)
    cluster.wait(lambda: cluster.state(job) not in ("RUNNING", "COMPLETING"))
