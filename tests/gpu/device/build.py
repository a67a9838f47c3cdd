"""Builds device.cpp, once for a torch and a compiler, and says what GPUs a process shall have."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def library(cache: Path, compiler: str, torch: Path, version: str) -> Path:
    """device.cpp for the torch in the folder `torch`, made if it is not in `cache`."""
    source = HERE / "device.cpp"
    key = hashlib.sha256(source.read_bytes() + f"{version} {compiler}".encode()).hexdigest()[:16]
    library_path = cache / f"{key}.so"
    draft = cache / f"{key}.draft"
    if not library_path.exists():
        include = [f"-I{torch / 'include'}", f"-I{torch / 'include/torch/csrc/api/include'}"]
        link_flags = [f"-L{torch / 'lib'}", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{torch / 'lib'}"]
        flags = ["-std=c++20", "-O1", "-fPIC", "-shared", "-w"]
        subprocess.run([compiler, *flags, *include, source, "-o", draft, *link_flags], check=True)
        draft.rename(library_path)
    return library_path


def environment(folder: Path, built: Path, count: int = 2, **options: object) -> dict[str, str]:
    """Variables of a process with `count` GPUs; `made` changes what they are like."""
    usual_options = {"memory": 8 << 30, "taken": {}, "taken_later": {}, "lost_after": {}, "comes_back": False}
    usual_options |= {
        "alone": False,
        "cuda": "13.0",
        "hip": None,
        "capability": [9, 0],
        "library": str(built),
        "count": count,
    }
    (folder / "gpus.json").write_text(json.dumps(usual_options | options))
    variables = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return variables | {"TEST_GPUS": str(folder), "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}
