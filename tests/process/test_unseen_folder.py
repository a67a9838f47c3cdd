"""A node that does not see the experiment's folder is refused by the command, in one line, before anything trains.

The nodes are stand-ins: `srun` runs the preflight here, for one of them where a tmpfs hides the folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.children import python

HIDE = 'mount -t tmpfs tmpfs "$0" && exec "$@"'  # of sh, with the folder and the command
SRUN = f"""#!/bin/sh
while [ "${{1#--}}" != "$1" ]; do
    case "$1" in --nodelist=*) node="${{1#--nodelist=}}" ;; esac
    shift
done
if [ "$node" = "$BLIND" ]; then
    exec unshare $NAMESPACES sh -c '{HIDE}' "$HIDDEN" "$@"
fi
exec "$@"
"""
SCONTROL = """#!/bin/sh
case "$1" in
    show) printf 'n1\\nn2\\n' ;;
    -o) echo "NodeName=$4 NodeAddr=127.0.0.1" ;;
esac
"""


def namespaces(folder: Path) -> str:
    """The options of unshare for a mount namespace of its own; skips the test where nobody may have one."""
    for words in ("-m", "-Urm") if shutil.which("unshare") else ():
        command = ["unshare", words, "sh", "-c", HIDE, str(folder), "true"]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return words
    pytest.skip("nobody may mount a tmpfs here")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", ["launch", pytest.param("doctor", marks=pytest.mark.slow)])
def test_the_node_and_the_folder_are_named(command: str, tmp_path: Path) -> None:
    folder, programs = tmp_path / "shared", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    flags = ["--launcher", "slurm", "--output-dir", str(folder / "new")]
    if command == "launch":
        flags += ["--task", "synthetic", "--groups", "shaped,wait", "--yes"]
    done = python(
        "-m", "esper_ab.commands.cli", command, *flags, PATH=f"{programs}:{os.environ['PATH']}", SLURM_JOB_ID="7",
        SLURM_JOB_NODELIST="n[1-2]", SLURM_JOB_CPUS_PER_NODE="2(x2)", BLIND="n2", HIDDEN=str(folder),
        NAMESPACES=namespaces(folder),
    )  # fmt: skip
    why = f"it does not see {folder}: all nodes must see this folder at the same path"
    assert list(folder.iterdir()) == []
    if command == "launch":
        assert (done.returncode, done.stderr) == (2, f"error: node n2: {why}\n"), done.stdout
        return
    assert done.returncode != 0
    told = [line.split(maxsplit=3) for line in done.stdout.splitlines() if " node n" in line]
    assert [(line[0], line[2]) for line in told] == [("ok", "n1"), ("problem", "n2")]
    assert told[1][3] == why
