"""Part 3: the tests of tests/gpu, by scripts/smoke_cuda."""

import os
import sys
from typing import Any

from signoff.machine import ROOT, Machine

TITLE = "The GPU tests"
BUDGET_S = 230
_FEW = ("-k", "plan_for_eight or torch_build_for_other")  # of a rehearsal: CI runs all tests of the test device anyway


def measure(machine: Machine) -> dict[str, Any]:
    """Run the tests; return the exit status and the last line, which counts them."""
    options = ("--require-gpus", "1") if machine.real else _FEW
    # The tests make test devices of their own where they need one.
    env = {name: value for name, value in os.environ.items() if name != "TEST_GPUS"} | {"PYTHON": sys.executable}
    done = machine.run(ROOT / "scripts" / "smoke_cuda", *options, env=env)
    lines = done.stdout.strip().splitlines() or [""]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    output = (done.stdout + done.stderr)[-8000:] if done.returncode else ""
    return {"exit_status": done.returncode, "last_line": lines[-1], "failed": failed, "output": output}


def problems(found: dict[str, Any]) -> list[str]:
    """A test that failed, or no test at all; smoke_cuda says with its exit status that none ran."""
    lines: list[str] = found["failed"]
    if found["exit_status"] and not lines:
        return [f"scripts/smoke_cuda ended with exit status {found['exit_status']}: {found['last_line']}"]
    return lines


def render(found: dict[str, Any]) -> list[str]:
    """Return what the script says last."""
    return [f"`scripts/smoke_cuda`: {found['last_line']}."]
