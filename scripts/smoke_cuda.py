"""Run the GPU tests alone, and say in the last line what ran on which GPU.

    scripts/smoke_cuda [--require-gpus N] [arguments of pytest]

Without a GPU, tests that need one are skipped, the others run on the test device (tests/gpu/device), and the last line
says "no GPU was tested". The exit status is pytest's, and 1 if there is a GPU that torch cannot use, if torch can use
fewer GPUs than --require-gpus says, or if --require-gpus is given and no GPU test was executed.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LONGEST_PROBE_S = 300


@dataclass
class Gpus:
    """What this machine has: the NVIDIA driver's version ("" without a GPU), and what torch can do with its GPUs."""

    driver: str
    torch: str
    usable: list[str]  # the names of those on which torch can compute
    failing: list[str]  # of the others, why

    @property
    def versions(self) -> str:
        return ", ".join(filter(None, [self.driver and f"driver {self.driver}", self.torch, *self.failing]))

    def error(self, required: int) -> str:
        """Return why these cannot be tested as required; "" if they can."""
        if self.driver and not self.usable:
            return f"this machine has a GPU that torch cannot use: {self.versions}"
        if len(self.usable) < required:
            return f"--require-gpus {required}, but torch can use {len(self.usable)} here: {self.versions}"
        return ""


@dataclass
class Tally:
    """What became of each test; a plugin of pytest."""

    executed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    skipped: Counter[str] = field(default_factory=Counter)  # by reason

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1
        elif report.when == "call" or report.failed:
            self.executed.add(report.nodeid)
        if report.failed:
            self.failed.add(report.nodeid)

    @property
    def reasons(self) -> str:
        return ", ".join(
            f"{count} ({of_several(reason) if count > 1 else reason})" for reason, count in self.skipped.most_common()
        )


def of_several(reason: str) -> str:
    return f"need {needed_thing}" if (needed_thing := reason.removeprefix("needs ")) != reason else reason


def last_line(gpus: list[str], tally: Tally) -> str:
    """Return what ran, and where."""
    run_count = f"{len(tally.executed)} of {len(tally.executed) + tally.skipped.total()} GPU tests"
    if gpus:
        line = f"{run_count} on {' and '.join(f'{count} x {name}' for name, count in Counter(gpus).items())}"
    else:
        line = f"no GPU was tested; {run_count} on the test device"
    if tally.failed:
        line += f", {len(tally.failed)} failed"
    return f"{line}; skipped: {tally.reasons}" if tally.skipped else line


def driver() -> str:
    """Return the version of NVIDIA's driver if it has a GPU; "" if not."""
    listed_gpus = asked_smi("-L")
    if not listed_gpus.startswith("GPU") and not Path("/dev/nvidia0").exists():
        return ""
    versions = asked_smi("--query-gpu=driver_version", "--format=csv,noheader").splitlines()
    return versions[0] if versions else "unknown"


def asked_smi(*arguments: str) -> str:
    try:
        process = subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout if process.returncode == 0 else ""


def gpus_of_machine() -> Gpus:
    """Return what this machine has. Raises SystemExit with one line if torch cannot say so."""
    command = [sys.executable, ROOT / "scripts" / "usable_gpus.py"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_PROBE_S, check=False)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"error: torch has not found its GPUs within {LONGEST_PROBE_S} s") from None
    if process.returncode != 0:
        lines = process.stderr.splitlines() or [f"exit status {process.returncode}"]
        raise SystemExit(f"error: torch cannot be asked for GPUs: {lines[-1]}")
    return Gpus(driver=driver(), **json.loads(process.stdout))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--require-gpus", type=int, default=0, metavar="N", help="fail if torch can use fewer than N")
    options, pytest_arguments = parser.parse_known_args()
    gpus = gpus_of_machine()
    if error := gpus.error(options.require_gpus):
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(gpus.versions, flush=True)
    tally = Tally()
    status = pytest.main([str(ROOT / "tests" / "gpu"), "-m", "gpu", "-rs", *pytest_arguments], plugins=[tally])
    if options.require_gpus and not tally.executed:
        sys.stdout.flush()
        print(f"error: no GPU test was executed; skipped: {tally.reasons or 0}", file=sys.stderr)
        return 1
    print(last_line(gpus.usable, tally))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
