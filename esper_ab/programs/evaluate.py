"""`esper-ab evaluate`: the options, and the child of the data plane that does it (`python -m workers.evaluate`)."""

from __future__ import annotations

import subprocess
import sys

import click

from esper_ab.examples import epilog
from esper_ab.programs.child import child_environment


@click.command(epilog=epilog(
    "esper-ab evaluate runs/RUN/policies/shaped/*.pt",
    "esper-ab evaluate runs/RUN/policies/shaped/0.pt --rng-seed 7 --episodes 4",
))  # fmt: skip
@click.argument("policies", metavar="POLICY…", nargs=-1, required=True, type=click.Path())
@click.option("--episodes", type=click.IntRange(min=1), metavar="N", help="Hosts per environment. [default: as in the "
              "run]")
@click.option("--rng-seed", type=int, metavar="N", help="Other hosts and other draws. [default: the run's own, which "
              "repeats it, on the kind of device it had]")
@click.option("--device", default="cpu", show_default=True, metavar="NAME", help="For the hosts: cpu, or a GPU as "
              "plans name it.")
@click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
def command(
    policies: tuple[str, ...], episodes: int | None, rng_seed: int | None, device: str, json: bool
) -> int:
    """Evaluate saved policies (RUN/policies/GROUP/REPLICATE.pt), frozen with their normalisers, on fresh hosts."""
    arguments = ["--device", device]
    arguments += [] if episodes is None else ["--episodes", str(episodes)]
    arguments += [] if rng_seed is None else ["--rng-seed", str(rng_seed)]
    arguments += ["--json"] if json else []
    child = [sys.executable, "-m", "workers.evaluate", *arguments, "--", *policies]
    return subprocess.run(child, check=False, env=child_environment()).returncode
