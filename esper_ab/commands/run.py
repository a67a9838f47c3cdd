"""`esper-ab run FILE`: an experiment that a Python or TOML file declares. Decides nothing itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._options import PATH
from esper_ab.execution.affordable import confirm
from esper_ab.live.console import outlive_terminal
from esper_ab.report.build import printed

_FLAGS = {"max_parallel": "--max-parallel", "out": "--output-dir"}  # by key


@click.command(epilog=epilog(
    "esper-ab run experiment.py --dry-run", "esper-ab run experiment.py --output-dir results --max-parallel 4",
    "esper-ab run experiment.toml --no-retry",
))  # fmt: skip
@click.argument("file", metavar="FILE", type=PATH)
@click.option("--dry-run", is_flag=True, help="Print the plan and stop.")
@click.option("--output-dir", type=PATH, default=Path("experiments"), show_default=True,
              metavar="DIR", help="Where experiment directories go.")
@click.option("--parallel/--no-parallel", default=True, help="As many runs at once as the devices carry, or one.")
@click.option("--max-parallel", type=click.IntRange(min=1), metavar="N", help="At most N runs at the same time.")
@click.option("--no-retry", is_flag=True, help="A run whose worker dies is given up at once. [default: it is taken up "
              "again, at most twice without progress]")
@click.option("-v", "--verbose", is_flag=True, help="A line on stderr for everything that is recorded, in place of the "
              "live view.")
def command(file: Path, **options: Any) -> None:
    """Run the experiment that FILE declares and compare its variants.

    FILE.py: what create_NAME_experiment(), get_experiment() or experiment, defined in it, gives (docs/python.md).
    FILE.toml: the format of `launch --config`.
    """
    if not options["parallel"] and (options["max_parallel"] or 1) > 1:
        raise click.UsageError("--no-parallel is one run at a time; leave it or --max-parallel out")
    # Here, so that --help waits for no numpy or scipy.
    from esper_ab.api.files import load_declaration
    from esper_ab.api.results import Results
    from esper_ab.api.running import Runner, conduct, prepare, show_plan

    declared = load_declaration(file)
    runner = Runner(
        output_dir=options["output_dir"], parallel_runs=options["parallel"], max_parallel_runs=options["max_parallel"],
        retry_failed_runs=not options["no_retry"], launcher=declared.launcher, narrated=options["verbose"],
        watched=not options["verbose"], words=_FLAGS,
    )  # fmt: skip
    planned = prepare(declared, runner, only_plan=options["dry_run"])
    show_plan(planned)
    confirm(planned, yes=True, dry_run=options["dry_run"])
    if options["dry_run"]:
        return
    outlive_terminal(planned.experiment_dir)
    paths, failure = conduct(planned, runner)
    click.echo(printed(paths, "brief"))
    for line in Results(planned.experiment_dir, paths.content, "").failure_lines:
        click.echo(line)
    if failure is not None:
        raise failure
