"""The GPU that is signed off, or the test device, which rehearses every part in small sizes; and commands on it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esper_ab.journal.fold import History
from esper_ab.journal.load import load

ROOT = Path(__file__).resolve().parents[2]
SHARED = {"--devices": "cuda:0", "--placement": "share"}
TEST_MEMORY = 8 << 30


def environment_of_gpu() -> dict[str, str]:
    """Return the variables of a process that imports this package and uses the machine's own GPUs."""
    paths = [str(ROOT / "scripts"), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}


def environment_of_test_device(folder: Path, **options: object) -> dict[str, str]:
    """Return the variables of a process with one GPU of the test device, described in `folder`.

    RuntimeError if it cannot be built for this torch.
    """
    import torch  # costs seconds, and a real GPU needs none of this
    from gpu.device import build

    if not torch.__version__.endswith("+cpu"):
        raise RuntimeError(f"the test device is for torch's CPU build, and this is {torch.__version__}")
    cache = ROOT / ".pytest_cache" / "test-device"
    cache.mkdir(parents=True, exist_ok=True)
    compiler = os.environ.get("CXX", "g++")
    library = build.library(cache, compiler, Path(torch.__file__).parent, torch.__version__)
    folder.mkdir(parents=True, exist_ok=True)
    options = {"memory": TEST_MEMORY, **options}
    return build.environment(folder, library, 1, **options) | {"PYTHONSAFEPATH": "1"}


@dataclass(frozen=True)
class Machine:
    """What a part runs on: this process sees the GPU already, as `cuda:0`."""

    folder: Path  # for experiments and other files of the part
    real: bool  # False: the test device, with sizes to match

    def run(self, *command: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, and return what it printed."""
        return subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)

    def launch_command(self, name: str, flags: dict[str, str]) -> list[str]:
        """Return the command of an experiment that writes to `folder/name`."""
        arguments = [argument for flag, value in flags.items() for argument in (flag, *value.split())]
        place = ["--output-dir", str(self.folder), "--name", name, "--quiet"]
        return [sys.executable, "-m", "esper_ab.launch", *arguments, *place]

    def launch(self, name: str, flags: dict[str, str]) -> History:
        """Run an experiment to its end; RuntimeError with its last words if it fails."""
        process = self.run(*self.launch_command(name, flags))
        if process.returncode:
            raise RuntimeError(
                f"the experiment {name} ended with exit status {process.returncode}: {process.stderr[-800:]}"
            )
        return load(self.folder / name).history

    def result(self, name: str) -> str:
        """Return the hash of all results of an experiment."""
        verdict: dict[str, Any] = json.loads((self.folder / name / "verdict.json").read_bytes())
        return str(verdict["result"])


def digests(history: History, run: str) -> list[str]:
    """Return the digests of a run's episodes, and last that of its evaluation."""
    ended = history.runs[run]
    assert ended.evaluation is not None, f"{run} was not evaluated"
    return [*ended.columns.digests, ended.evaluation.digest]
