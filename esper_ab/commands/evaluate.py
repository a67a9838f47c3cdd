"""`esper-ab evaluate`: the options; a child of the data plane, `workers.commands.evaluate`, does the work."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import click

from esper_ab.analysis.trained_by import code_states, named, telling
from esper_ab.commands._exit_status import epilog
from esper_ab.contracts.errors import EsperError
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.visible import visible_line
from esper_ab.control import provenance
from esper_ab.execution.child import child_environment
from esper_ab.journal.load import load


@click.command(epilog=epilog(
    "esper-ab evaluate experiments/EXPERIMENT/policies/shaped/*.pt",
    "esper-ab evaluate experiments/EXPERIMENT/policies/shaped/0.pt --rng-seed 7 --hosts 64",
))  # fmt: skip
@click.argument("policies", metavar="POLICY…", nargs=-1, required=True, type=click.Path())
@click.option("--hosts", type=click.IntRange(1), metavar="N", help="Hosts to grow. [default: as in the run]")
@click.option("--rng-seed", type=int, metavar="N", help="Other hosts and other draws. [default: the run's own, which "
              "repeats it, on the kind of device it had]")
@click.option("--device", default="cpu", show_default=True, metavar="NAME", help="For the hosts: cpu, or a GPU as "
              "plans name it.")
@click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
def command(policies: tuple[str, ...], hosts: int | None, rng_seed: int | None, device: str, json: bool) -> int:
    """Evaluate saved policies, frozen with their normalisers, on fresh hosts.

    POLICY is a file such as EXPERIMENT/policies/GROUP/REPLICATE.pt.
    """
    for line in describe_other_code(policies):
        click.echo(f"warning: {visible_line(line)}", err=True)
    arguments = ["--device", device]
    arguments += [] if hosts is None else ["--hosts", str(hosts)]
    arguments += [] if rng_seed is None else ["--rng-seed", str(rng_seed)]
    arguments += ["--json"] if json else []
    child = child_command("workers.commands.evaluate", *arguments, "--", *policies)
    return subprocess.run(child, check=False, env=child_environment()).returncode


def describe_other_code(policies: Sequence[str]) -> list[str]:
    """A sentence for each experiment directory whose policies were trained by another state of the code than this one.

    Nothing is said of a policy that no longer lies in its experiment directory, or whose journal cannot be read.
    """
    runs: dict[Path, set[str]] = {}
    for path in map(Path, policies):
        if len(path.absolute().parents) > 2:
            runs.setdefault(path.absolute().parents[2], set()).add(f"{path.parent.name}/{path.stem}")
    here, lines = provenance.code(), []
    for experiment_dir, asked in runs.items():
        try:
            states = code_states(load(experiment_dir).history)
        except (EsperError, OSError):
            continue
        there = [state.code for state in states if asked & set(state.runs)]
        key = telling([here, *there])
        others = [named(code) for code in there if code.get(key, "") != here.get(key, "")]
        if others:
            lines.append(
                f"{experiment_dir.name}: trained by {' and by '.join(others)}, while the code here is {named(here)}: "
                "numbers may differ from those of the run"
            )
    return lines
