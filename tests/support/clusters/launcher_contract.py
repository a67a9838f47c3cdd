"""Run the launcher contract for a launcher that needs a cluster."""

import subprocess
import sys
from pathlib import Path

from support.processes.children import environment

ROOT = Path(__file__).resolve().parents[3]


def check_contract(name: str, folder: Path) -> None:
    """Run tests/catalog/test_launchers.py for the launcher `name`; no test may be skipped for lack of a cluster."""
    tests = [str(ROOT / "tests" / "catalog" / "test_launchers.py"), "-k", name, "-rs", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", "--basetemp", str(folder / "pytest"), *tests]
    process = subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout[-5000:]
    assert "tests/cluster calls these tests" not in process.stdout, "they were not skipped for want of a cluster"
