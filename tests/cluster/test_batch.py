"""The output of `slurm-script` on a real Slurm, with real training and a preemption."""

from pathlib import Path

import pytest
from support.coordinators import disturbed
from support.processes.children import python

from esper_ab.analysis.result_hash import result_hash
from esper_ab.journal.events import ExperimentContinued, WorkerStarted
from esper_ab.journal.fold import fold

ROOT = Path(__file__).resolve().parents[2]
FLAGS = (
    "--task",
    "synthetic",
    "--groups",
    "shaped,simplified",
    "--seeds",
    "2",
    "--looks",
    "2",
    "--n-envs",
    "2",
    "--steps",
    "4",
    "--devices",
    "cpu:0",
    "cpu:1",
)
PATIENCE_S = 300.0


def esper_ab(folder, *arguments):
    result = python("-m", "esper_ab.commands.cli", *arguments, folder=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout


def write_script(folder, nodes, setup, *flags):
    path = folder / "job.sh"
    allotted_flags = ("--nodes", nodes, "--cores", "1", "--name", "lab")
    path.write_text(esper_ab(folder, "slurm-script", *allotted_flags, "--setup", setup, *flags))
    return path


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_preempted_experiment_resumes_to_identical_records(cluster, tmp_path):
    flags = (*FLAGS, "--episodes", "12")
    esper_ab(tmp_path, "launch", *flags, "--name", "alone", "--quiet")
    local_events = disturbed.events_of(tmp_path / "experiments" / "alone")
    (tmp_path / "other.sh").write_text("#!/bin/bash\nsleep 3\n")
    batch_script = write_script(tmp_path, "2", f"export PYTHONPATH={ROOT}", *flags)
    chdir = f"--chdir={tmp_path}"
    job = cluster.submit(batch_script, "--partition=main", "--exclusive", chdir)
    journal = tmp_path / "experiments" / "lab" / "events.jsonl"
    cluster.wait(lambda: journal.exists() and b'"released"' in journal.read_bytes(), PATIENCE_S)
    preempting_job = cluster.submit(tmp_path / "other.sh", "--partition=high", "--nodes=3", "--exclusive", chdir)
    cluster.wait(lambda: cluster.state(job) == "PENDING", PATIENCE_S)
    cluster.wait(lambda: cluster.state(preempting_job) == "COMPLETED", PATIENCE_S)
    cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    cluster.wait(lambda: cluster.state(job) not in ("PENDING", "RUNNING", "COMPLETING"), PATIENCE_S)
    console = (tmp_path / "lab.slurm.txt").read_text()
    assert cluster.state(job) == "COMPLETED", console
    events = disturbed.events_of(journal.parent)
    assert len(disturbed.events_of_kind(ExperimentContinued, events)) == 1
    assert {start.node for start in disturbed.events_of_kind(WorkerStarted, events)} <= {"n1", "n2", "n3"}
    assert not disturbed.incidents(events, "worker_death", "hung_worker", "dropped_pair", "inexact_resume")
    assert result_hash(fold(events)) == result_hash(fold(local_events))


def test_the_batch_script_logs_its_output_in_a_folder_with_any_name(cluster, tmp_path):
    """Slurm creates no folder for the output and drops the job if it is missing."""
    folder = tmp_path / "100 % of 'it'"
    folder.mkdir()
    job = cluster.submit(
        write_script(folder, "1", "echo begun; exit 7", "--sbatch=--comment=a b", "--groups", "shaped,sparse")
    )
    cluster.wait(lambda: cluster.state(job) not in ("PENDING", "RUNNING", "COMPLETING"), PATIENCE_S)
    job_details = cluster.output("scontrol", "-o", "show", "job", job)
    assert (folder / "lab.slurm.txt").read_text() == "begun\n", job_details
    assert "Comment=a b" in job_details
    assert "ExitCode=7:0" in job_details
