"""Run a program from a simulated user's shell, directly and by a launch, and record its environment."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.processes.children import environment

PAGE = Path(__file__).parents[3] / "docs" / "your-trainer.md"
# An unusual umask, limit and pair of ignored signals, and variables of the user's own.
SHELL = """
umask 027; ulimit -Sn 777; ulimit -Sc 0; trap '' HUP USR2
unset PYTHONSAFEPATH; export OWN='two
lines' PYTHONHASHSEED=3
exec "$@"
"""
PROBE = """
import json, os, resource, sys
import beside

def masks():
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return {name: lines[name].strip() for name in ("SigIgn", "SigBlk", "Umask")}

def open_descriptors():
    return sorted(number for number in range(256) if os.path.exists(f"/proc/self/fd/{number}"))

if __name__ == "__main__":
    seed, x, out, log = sys.argv[1:]
    limits = sorted(name for name in dir(resource) if name.startswith("RLIMIT_"))
    with open(log, "a") as file:
        file.write(json.dumps({
            "variables": dict(os.environ), "folder": os.getcwd(), **masks(), "descriptors": open_descriptors(),
            "limits": {name: resource.getrlimit(getattr(resource, name)) for name in limits},
            "path": sys.path, "flags": str(sys.flags),
        }) + chr(10))
    with open(os.path.join(out, "r.json"), "w") as file:
        json.dump({"score": int(seed) % 1000 + float(x)}, file)
"""

# A Python trainer whose helper processes are ended by SIGTERM, as those of vectorised environments are.
TRAINER = """
import json, multiprocessing, os, resource, subprocess, sys, time
from pathlib import Path
import esper_ab
import beside


class Settings(esper_ab.TrainerSettings):
    x: float = 1.0


def train(run):
    helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1e6,))
    helper.start()
    helper.terminate()
    helper.join()
    sleeper = subprocess.Popen(["sleep", "infinity"])
    sleeper.terminate()
    sleeper.wait()
    out = run.folder / "by hand"
    out.mkdir()
    log = Path(LOG)
    subprocess.run([sys.executable, HERE + "/probe.py", "1", "1", str(out), str(log)], check=True)
    yield run.Point({"score": run.seed("a") % 1000 + run.settings.x}, state={"score": run.seed("a") % 1000})


def evaluate(run, state):
    return float(state["score"])
"""


def write(folder: Path) -> None:
    """Write the program probe.py, a module beside it, and a trainer."""
    (folder / "probe.py").write_text(PROBE)
    (folder / "beside.py").touch()
    constants = f"LOG, HERE = {str(folder / 'launched')!r}, {str(folder)!r}\n"
    (folder / "trainer.py").write_text(constants + TRAINER)


def in_a_users_shell(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command from the simulated shell in `folder`; it must succeed."""
    process = subprocess.run(
        ["bash", "-c", SHELL, "bash", *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=600,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process


def inherited_facts(folder: Path, *flags: str, program: str = "") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the facts that a program inherits from the shell and from each rehearsal and run of a launch.

    `flags`: those of the launch. `program`: the launched program.
    """
    write(folder)
    in_a_users_shell(folder, sys.executable, "probe.py", "1", "1", str(folder), "alone")
    program = program or f"{sys.executable} probe.py {{seed}} {{x}} {{out}} {folder / 'launched'}"
    in_a_users_shell(
        folder,
        sys.executable,
        "-m",
        "esper_ab.commands.cli",
        "launch",
        program,
        "--vary",
        "x=1,2",
        "--seeds",
        "1",
        "--higher",
        "score",
        "--margin",
        "1",
        "--quiet",
        "--name",
        "it",
        *flags,
    )
    (direct_facts,) = map(json.loads, (folder / "alone").read_text().splitlines())
    return direct_facts, [json.loads(line) for line in (folder / "launched").read_text().splitlines()]


def named_on_the_page() -> set[str]:
    """Return the variables that the section "What a command sees" of docs/your-trainer.md lists."""
    (section,) = re.findall(r"^### What a command sees\n(.*?)^##", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return set(re.findall(r"`([A-Z][A-Z_]+)`", section))


def changed(direct_facts: dict[str, str], launched_facts: dict[str, str]) -> set[str]:
    """Return the names of the variables that differ, or that are set in only one of the two cases."""
    return {
        name
        for name in direct_facts.keys() | launched_facts.keys()
        if direct_facts.get(name) != launched_facts.get(name)
    }
