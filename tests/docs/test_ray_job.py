"""The RayJob of docs/examples has the form that KubeRay takes, and calls commands that exist with flags that exist.

KubeRay refuses nothing that it does not know, so a field of another name would do nothing: each has to be known here.
"""

from __future__ import annotations

import re
import shlex
from itertools import chain
from pathlib import Path

import pytest

from esper_ab.commands.cli import load_command

yaml = pytest.importorskip("yaml", reason="PyYAML comes with Ray and with the trackers")
FILE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "ray-job.yaml"

# Of the custom resource, version ray.io/v1 of KubeRay 1.5, and of pods: what an experiment needs. A type, the words
# that are allowed, a list's [element], or a dict of fields; "!" marks those without which nothing would run.
_POD = {
    "spec!": {
        "containers!": [{
            "name!": str, "image!": str, "env": [{"name!": str, "value!": str}],
            "resources!": {"requests!": {"cpu!": str, "memory!": str}, "limits!": {"cpu!": str, "memory!": str}},
            "volumeMounts!": [{"name!": str, "mountPath!": str}],
        }],
        "volumes!": [{"name!": str, "persistentVolumeClaim!": {"claimName!": str}}],
    }
}  # fmt: skip
SCHEMA = {
    "apiVersion!": ("ray.io/v1",), "kind!": ("RayJob",), "metadata!": {"name!": str},
    "spec!": {
        "entrypoint!": str, "backoffLimit!": int, "shutdownAfterJobFinishes!": bool,
        "submissionMode": ("K8sJobMode", "HTTPMode", "InteractiveMode"),
        "rayClusterSpec!": {
            "rayVersion!": str, "authOptions!": {"mode!": ("token", "disabled")},
            "headGroupSpec!": {"rayStartParams!": {"num-cpus!": str}, "template!": _POD},
            "workerGroupSpecs!": [{
                "groupName!": str, "replicas!": int, "minReplicas!": int, "maxReplicas!": int, "rayStartParams!": {},
                "template!": _POD,
            }],
        },
    },
}  # fmt: skip


def wrong(found, form, where="job"):
    """What does not have the form, a line each."""
    if isinstance(form, dict):
        if not isinstance(found, dict):
            return [f"{where}: {found!r} has no fields"]
        names = {name.rstrip("!"): name for name in form}
        lacking = [f"{where}.{name} is missing" for name, key in names.items() if key != name and name not in found]
        unknown = [f"{where}.{name} is not known" for name in found if name not in names]
        inside = (wrong(found[name], form[names[name]], f"{where}.{name}") for name in found if name in names)
        return [*lacking, *unknown, *chain.from_iterable(inside)]
    if isinstance(form, list):
        if not isinstance(found, list) or not found:
            return [f"{where}: {found!r} is no list"]
        inside = (wrong(one, form[0], f"{where}[{place}]") for place, one in enumerate(found))
        return list(chain.from_iterable(inside))
    right = found in form if isinstance(form, tuple) else type(found) is form
    return [] if right else [f"{where}: {found!r}"]


@pytest.fixture
def job():
    return yaml.safe_load(FILE.read_text())


def test_it_has_the_form_of_a_ray_job(job):
    assert wrong(job, SCHEMA) == []


def test_the_nodes_stay_as_many_and_every_pod_sees_the_same_folder(job):
    cluster = job["spec"]["rayClusterSpec"]
    for group in cluster["workerGroupSpecs"]:
        assert group["replicas"] == group["minReplicas"] == group["maxReplicas"]
    pods = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    specs = [pod["template"]["spec"] for pod in pods]
    claims = {(spec["volumes"][0]["persistentVolumeClaim"]["claimName"]) for spec in specs}
    mounts = {spec["containers"][0]["volumeMounts"][0]["mountPath"] for spec in specs}
    assert len(claims) == len(mounts) == 1
    assert f"cd {mounts.pop()} &&" in job["spec"]["entrypoint"]


def test_its_commands_exist(job):
    script = shlex.split(job["spec"]["entrypoint"])
    assert script[:2] == ["sh", "-c"]
    calls = re.findall(r"exec esper-ab (\w+) ([^;]*);", script[2])
    assert [name for name, _ in calls] == ["resume", "launch"]
    for name, words in calls:
        context = load_command(name).make_context(name, ["EXPERIMENT", *shlex.split(words)[1:]] if name == "resume"
                                                  else shlex.split(words), resilient_parsing=True)  # fmt: skip
        assert context.params["launcher"] == "ray"
        assert context.params["ray_address"] == "auto"
