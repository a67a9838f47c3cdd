"""The RayJob of docs/examples calls existing commands and flags, on nodes that share one folder."""

import re
import shlex
from pathlib import Path

import pytest

from esper_ab.commands.cli import load_command

yaml = pytest.importorskip("yaml", reason="PyYAML comes with Ray and with the trackers")
FILE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "ray-job.yaml"


@pytest.fixture
def job():
    return yaml.safe_load(FILE.read_text())


def test_the_pods_of_the_ray_job_share_one_folder(job):
    cluster = job["spec"]["rayClusterSpec"]
    for group in cluster["workerGroupSpecs"]:
        assert group["replicas"] == group["minReplicas"] == group["maxReplicas"]
    pods = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    specs = [pod["template"]["spec"] for pod in pods]
    claims = {(spec["volumes"][0]["persistentVolumeClaim"]["claimName"]) for spec in specs}
    mounts = {spec["containers"][0]["volumeMounts"][0]["mountPath"] for spec in specs}
    assert len(claims) == len(mounts) == 1
    assert f"cd {mounts.pop()} &&" in job["spec"]["entrypoint"]


def test_the_ray_job_calls_existing_commands(job):
    script = shlex.split(job["spec"]["entrypoint"])
    assert script[:2] == ["sh", "-c"]
    calls = re.findall(r"exec esper-ab (\w+) ([^;]*);", script[2])
    assert [name for name, _ in calls] == ["resume", "launch"]
    for name, line in calls:
        arguments = shlex.split(line)
        args = ["EXPERIMENT", *arguments[1:]] if name == "resume" else arguments
        context = load_command(name).make_context(name, args, resilient_parsing=True)
        assert context.params["launcher"] == "ray"
        assert context.params["ray_address"] == "auto"
