"""Part 1: the machine: its GPUs, driver, torch, this code, and what `esper-ab doctor` says."""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from benchmarks.markdown import table

from esper_ab.contracts import own_packages, source_files
from esper_ab.control import provenance
from signoff.machine import ROOT, Machine

TITLE = "The machine"
BUDGET_S = 20
_SMI = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")


def measure(machine: Machine) -> dict[str, Any]:
    """Describe the machine."""
    doctor = machine.run(sys.executable, "-m", "esper_ab.commands.cli", "doctor", "--json")
    machine_facts = provenance.machine()
    return {
        "gpus": [_gpu(index) for index in range(torch.cuda.device_count())],
        "driver": _driver(machine) if machine.real else "none",
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "processor": machine_facts["processor"],
        "cores": int(machine_facts["cores"]),
        "python": machine_facts["python"],
        **provenance.code(),
        "of_this_checkout": _modules(own_packages.folder("esper_ab").parent) == _modules(ROOT),
        "doctor": {"exit_status": doctor.returncode, "said": _warnings(doctor.stdout)},
    }


def _gpu(index: int) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(index)
    return {
        "name": properties.name,
        "memory_gib": round(properties.total_memory / 2**30, 1),
        "capability": f"{properties.major}.{properties.minor}",
    }


def _driver(machine: Machine) -> str:
    process = machine.run(*_SMI)
    return process.stdout.splitlines()[0].strip() if process.returncode == 0 and process.stdout.strip() else "unknown"


def _modules(root: Path) -> str:
    """Return a hash of both packages' modules below `root`: those of a wheel, or those of this checkout."""
    files = [path for package in ("esper_ab", "workers") for path in (root / package).rglob("*.py")]
    return source_files.source_sha256(root, [path.relative_to(root).as_posix() for path in files])


def _warnings(answer: str) -> list[str]:
    """Return the doctor's lines that are not "ok"."""
    diagnoses = json.loads(answer)["diagnoses"] if answer.strip() else []
    return [f"{diagnosis['topic']}: {diagnosis['what']}" for diagnosis in diagnoses if diagnosis["level"] != "ok"]


def problems(findings: dict[str, Any]) -> list[str]:
    """No GPU, wheels of other sources, a doctor who finds a problem."""
    lines = []
    if not findings["gpus"]:
        lines.append(f"torch {findings['torch']} can use no GPU here")
    if not findings["of_this_checkout"]:
        lines.append("the installed package was not built from this checkout: build its wheel again")
    if findings["doctor"]["exit_status"]:
        complaints = "; ".join(findings["doctor"]["said"])
        lines.append(f"esper-ab doctor ended with exit status {findings['doctor']['exit_status']}: {complaints}")
    return lines


def device(findings: dict[str, Any]) -> str:
    """Return the GPUs in words, as in "2 x NVIDIA A100"."""
    names = [gpu["name"] for gpu in findings["gpus"]]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))


def render(findings: dict[str, Any]) -> list[str]:
    """Return a table of the machine."""
    gpu = findings["gpus"][0]
    rows = [
        ("GPUs", f"{device(findings)}, {gpu['memory_gib']} GiB, compute capability {gpu['capability']}"),
        ("driver", findings["driver"]),
        ("torch", f"{findings['torch']}, for CUDA {findings['cuda']}"),
        ("processor", f"{findings['processor']}, {findings['cores']} usable cores"),
        ("Python", findings["python"]),
        ("commit", findings.get("commit", "not a git checkout")),
        ("doctor", f"exit status {findings['doctor']['exit_status']}"),
    ]
    return table("what | found", rows)
