"""Commands on GPUs: which devices their runs see. Without a GPU they use the test device."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
# What it says with the torch of its own process would be about the test device of that process.
SCRIPT = """
import json, os, sys
seed, lr, device, out = sys.argv[1:]
values = {"score": int(seed) % 7 + float(lr), "device": device, "visible": os.environ["CUDA_VISIBLE_DEVICES"]}
json.dump(values, open(out, "w"))
"""


def runs_of(env: dict[str, str], folder: Path, *flags: str) -> list[dict[str, object]]:
    """Train two groups, and return what their runs wrote."""
    (folder / "train.py").write_text(SCRIPT)
    command = f"{sys.executable} train.py {{seed}} {{lr}} {{device}} {{out_file}}"
    launched = subprocess.run(
        [
            *(sys.executable, "-m", "esper_ab.launch", command, "--vary", "lr=1,2", "--higher", "score"),
            *("--margin", "1", "--seeds", "1", "--quiet", "--output-dir", "runs", "--name", "run", *flags),
        ],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert launched.returncode == 0, launched.stdout + launched.stderr
    return [json.loads(path.read_text()) for path in sorted((folder / "runs/run/runs").rglob("result.json"))]


@pytest.mark.slow
def test_a_run_of_a_command_sees_one_gpu_as_its_first(tmp_path: Path, gpus: dict[str, str]) -> None:
    runs = runs_of(gpus, tmp_path, "--devices", "cuda:0")
    assert [run["device"] for run in runs] == ["cuda:0", "cuda:0"]
    assert len({run["visible"] for run in runs}) == 1


@pytest.mark.gpus(4)
def test_runs_of_a_command_over_several_gpus_share_none(tmp_path: Path, gpus: dict[str, str]) -> None:
    runs = runs_of(gpus, tmp_path, "--devices-per-run", "2")
    assert [run["device"] for run in runs] == ["cuda", "cuda"]
    assert len({gpu for run in runs for gpu in str(run["visible"]).split(",")}) == 4
