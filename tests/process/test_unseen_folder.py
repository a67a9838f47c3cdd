"""A node that does not see the experiment's folder is refused in one line before training starts.

The nodes are simulated: `srun` runs the preflight here, and for one node a tmpfs hides the folder.
"""

import subprocess
import sys

import pytest
from support.commands.progress_lines import without_progress
from support.processes.children import environment
from support.processes.hidden_folder import HIDE, namespaces

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


@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", ["launch", pytest.param("doctor", marks=pytest.mark.slow)])
def test_the_refusal_of_a_node_without_the_folder_names_the_node(command, tmp_path):
    folder = tmp_path / "shared"
    programs = tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    variables = environment(
        SLURM_JOB_ID="7",
        SLURM_JOB_NODELIST="n[1-2]",
        SLURM_JOB_CPUS_PER_NODE="2(x2)",
        BLIND="n2",
        HIDDEN=str(folder),
        NAMESPACES=namespaces(folder),
    )
    variables["PATH"] = f"{programs}:{variables['PATH']}"
    flags = ["--launcher", "slurm", "--output-dir", str(folder / "new")]
    if command == "launch":
        flags += ["--task", "synthetic", "--groups", "shaped,wait", "--yes"]
    result = subprocess.run(
        [sys.executable, "-m", "esper_ab.commands.cli", command, *flags],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    complaint = f"it does not see {folder}: all nodes must see this folder at the same path"
    assert list(folder.iterdir()) == []
    if command == "launch":
        assert (result.returncode, without_progress(result.stderr)) == (2, [f"error: node n2: {complaint}"]), (
            result.stdout
        )
        return
    assert result.returncode != 0
    ((word, _, node, reason),) = (line.split(maxsplit=3) for line in result.stdout.splitlines() if " node n" in line)
    assert (word, node, reason) == ("problem", "n2", complaint)
