"""Part 3: the tests of tests/gpu, by scripts/smoke_cuda."""

import os
import sys
from typing import Any

from signoff.machine import ROOT, Machine

TITLE = "The GPU tests"
BUDGET_S = 230
_REHEARSED_TESTS = (
    "-k",
    "plan_for_eight or torch_build_for_other",
)  # of a rehearsal: CI runs all tests of the test device anyway


def measure(machine: Machine) -> dict[str, Any]:
    """Run the tests; return the exit status and the last line, which counts them."""
    options = ("--require-gpus", "1") if machine.real else _REHEARSED_TESTS
    # The tests make test devices of their own where they need one.
    env = {name: value for name, value in os.environ.items() if name != "TEST_GPUS"} | {"PYTHON": sys.executable}
    process = machine.run(ROOT / "scripts" / "smoke_cuda", *options, env=env)
    lines = process.stdout.strip().splitlines() or [""]
    failed_lines = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    output = (process.stdout + process.stderr)[-8000:] if process.returncode else ""
    return {"exit_status": process.returncode, "last_line": lines[-1], "failed": failed_lines, "output": output}


def problems(findings: dict[str, Any]) -> list[str]:
    """A test that failed, or no test at all; smoke_cuda says with its exit status that none ran."""
    lines: list[str] = findings["failed"]
    if findings["exit_status"] and not lines:
        return [f"scripts/smoke_cuda ended with exit status {findings['exit_status']}: {findings['last_line']}"]
    return lines


def render(findings: dict[str, Any]) -> list[str]:
    """Return what the script says last."""
    return [f"`scripts/smoke_cuda`: {findings['last_line']}."]
