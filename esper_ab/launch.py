"""`python -m esper_ab.launch`, also `esper-ab launch`: from flags to a finished comparison. Decides nothing itself.

Its first imports are few: `--help` loads nothing heavy, and spawned workers import this module as their main one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from esper_ab.exit_status import EPILOG, invoke
from esper_ab.options import ExperimentCommand, experiment_options
from esper_ab.programs.experiment import as_asked, carry_out, planned


def _conclude(run_dir: Path, as_json: bool) -> None:
    from esper_ab.report.build import build_report, render_report

    paths = build_report(run_dir)
    click.echo(paths.verdict.read_text(encoding="utf-8").strip() if as_json else render_report(paths))


@click.command(
    cls=ExperimentCommand,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@experiment_options()
def command(**options: Any) -> None:
    """Train one policy per group and replicate, all groups at the same time on paired randomness, and compare them."""
    import msgspec

    from esper_ab.estimate import estimate
    from esper_ab.plan_text import plan_text

    ready = planned(as_asked(options), options["out"])
    cost = estimate(ready.plan, ready.machine)
    if options["json"] and options["dry_run"]:
        click.echo(msgspec.json.encode({"plan": ready.plan, "estimate": cost, "run_dir": str(ready.run_dir)}))
    elif not options["json"]:
        click.echo(plan_text(ready.plan, cost, ready.run_dir))
    if options["dry_run"]:
        return
    carry_out(ready, options["launcher"], watched=not (options["quiet"] or options["json"]))
    _conclude(ready.run_dir, options["json"])


def main() -> int:
    """Entry of `python -m esper_ab.launch`."""
    return invoke(command, sys.argv[1:], "python -m esper_ab.launch")


if __name__ == "__main__":
    sys.exit(main())
