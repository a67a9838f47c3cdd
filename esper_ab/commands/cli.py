"""`esper-ab`: the commands by name, each loaded only when it is called, so that `--help` and `status` stay light."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from esper_ab.commands._completing import RunDirectory
from esper_ab.commands._examples import epilog
from esper_ab.commands._exit_status import invoke
from esper_ab.commands._options import shared_options
from esper_ab.contracts.visible import visible


@click.group(epilog=epilog(
    "esper-ab doctor",
    "esper-ab launch --groups shaped,simplified --replicates 10",
    "esper-ab report runs/RUN",
), context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})  # fmt: skip
@click.version_option(package_name="esper-ab")
def group() -> None:
    """Which of these training conditions trains a better policy?"""


def _command(module: str) -> click.Command:
    command: click.Command = import_module(module).command
    return command


group.add_command(_command("esper_ab.commands.doctor"), "doctor")
group.add_command(_command("esper_ab.commands.init"), "init")
group.add_command(_command("esper_ab.commands.launch"), "launch")
group.add_command(_command("esper_ab.commands.run"), "run")
group.add_command(_command("esper_ab.commands.power"), "power")
group.add_command(_command("esper_ab.commands.calibrate"), "calibrate")
group.add_command(_command("esper_ab.commands.sensitivity"), "sensitivity")
group.add_command(_command("esper_ab.commands.attach"), "attach")
group.add_command(_command("esper_ab.commands.logs"), "logs")
group.add_command(_command("esper_ab.commands.stop"), "stop")
group.add_command(_command("esper_ab.commands.listing"), "list")
group.add_command(_command("esper_ab.commands.export"), "export")
group.add_command(_command("esper_ab.commands.compare"), "compare")
group.add_command(_command("esper_ab.commands.gc"), "gc")
group.add_command(_command("esper_ab.commands.evaluate"), "evaluate")
group.add_command(_command("esper_ab.commands.fetch"), "fetch")
group.add_command(_command("esper_ab.commands.heuristic"), "heuristic")
group.add_command(_command("esper_ab.commands.completion"), "completion")
group.add_command(_command("esper_ab.commands.track"), "track")

_run_dir = click.argument("run_dir", metavar="RUN", type=RunDirectory())
_as_json = click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
_detach = click.option("--detach", is_flag=True, help="Go on without this terminal; see `attach` and `stop`.")
_allow_changed_code = click.option("--allow-changed-code", is_flag=True, help="Go on with another state of the code "
                                   "than that of the records; the verdict is then BLOCKED.")


@group.command(epilog=epilog(
    "esper-ab report runs/RUN",
    "esper-ab report runs/RUN --format md",
    "esper-ab report runs/RUN --fail-unless 'simplified better-than shaped'",
))  # fmt: skip
@_run_dir
@_as_json
@click.option("--format", "form", type=click.Choice(("text", "md", "json")),
              help="What is printed; md: Markdown for a pull request. [default: text]")
@click.option("--fail-unless", "conditions", multiple=True, metavar="CONDITION",
              help="Exit status 12 unless the verdict supports it, as in 'simplified better-than shaped'; also "
              "worse-than, equivalent-to, not-worse-than. Can be repeated.")
def report(run_dir: Path, json: bool, form: str | None, conditions: tuple[str, ...]) -> None:
    """Rebuild summary.txt, verdict.json and report.html of RUN from its journal."""
    from esper_ab.execution.experiment import write_report
    from esper_ab.report.build import printed
    from esper_ab.verdict.condition import parse_condition, require

    if json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} exclude each other")
    paths = write_report(run_dir)
    history = paths.content.history
    asked = [parse_condition(text, history.groups, history.design.comparisons) for text in conditions]
    click.echo(printed(paths, "json" if json else form or "text"))
    require(asked, paths.content.comparisons)


@group.command(epilog=epilog(
    "esper-ab status runs/RUN",
    "esper-ab status runs/RUN --json",
))  # fmt: skip
@_run_dir
@_as_json
def status(run_dir: Path, json: bool) -> None:
    """How far RUN is, from its journal, and what became of the trackers that follow it."""
    from esper_ab.live.status import status_json, status_text
    from esper_ab.trackers.now import tracking_now, tracking_text

    trackers = tracking_now(run_dir)
    text = "" if json else "\n".join([status_text(run_dir), *tracking_text(run_dir, trackers)])
    click.echo(text or status_json(run_dir, trackers=trackers))


@group.command(epilog=epilog(
    "esper-ab query runs/RUN 'SELECT run, avg(final_accuracy) FROM evaluations GROUP BY run'",
    "esper-ab query runs/RUN 'SELECT * FROM seed_events' --csv",
))  # fmt: skip
@_run_dir
@click.argument("sql")
@_as_json
@click.option("--csv", is_flag=True, help="Comma-separated output with a header line.")
def query(run_dir: Path, sql: str, json: bool, csv: bool) -> None:
    """Ask RUN a question in SQL: views runs, episodes, env_episodes, evaluations, ppo_updates, seed_events, ledger."""
    from esper_ab.query.sql import query_csv, query_json, query_text

    if json and csv:
        raise click.UsageError("--json and --csv exclude each other")
    render = query_json if json else query_csv if csv else query_text
    answer = render(run_dir, sql)
    click.echo(visible(answer) if sys.stdout.isatty() else answer)  # a file gets CSV as it is


@group.command(epilog=epilog(
    "esper-ab extend runs/RUN --replicates 20 --dry-run",
    "esper-ab extend runs/RUN --replicates 20 --detach",
))  # fmt: skip
@_run_dir
@click.option("--replicates", type=click.IntRange(min=1), required=True, metavar="N", help="How many in all.")
@shared_options("launcher", "transport")
@click.option("--dry-run", is_flag=True, help="Print what would be added and by which rule, and stop.")
@_allow_changed_code
@shared_options("quiet")
@_as_json
@_detach
def extend(run_dir: Path, replicates: int, dry_run: bool, detach: bool, **how: Any) -> None:
    """Add replicates to a finished RUN; the stricter rule of an extended plan then holds for what is undecided."""
    from esper_ab.commands.extend import extend_run, preview
    from esper_ab.execution.experiment import make_launcher, write_report
    from esper_ab.live.console import outlive_terminal
    from esper_ab.report.build import render_report

    quiet, json, allowed = how["quiet"], how["json"], how["allow_changed_code"]
    shown = preview(run_dir, replicates, allow_changed_code=allowed)
    if not json:
        click.echo(shown)
    elif dry_run:
        click.echo(json_module.dumps(asdict(shown)))
    if dry_run:
        return
    if detach:
        _go_on_by_itself(run_dir, "extend", "--replicates", str(replicates), *_workers(how), json=json)
        return
    outlive_terminal(run_dir)
    launcher = make_launcher(how["launcher"], how["transport"])
    extend_run(run_dir, replicates, launcher, watched=not (quiet or json), allow_changed_code=allowed)
    paths = write_report(run_dir)
    click.echo(paths.verdict.read_text(encoding="utf-8").strip() if json else render_report(paths))


@group.command(epilog=epilog(
    "esper-ab resume runs/RUN",
    "esper-ab resume runs/RUN --detach",
))  # fmt: skip
@_run_dir
@shared_options("launcher", "transport", "quiet")
@_as_json
@click.option("--fail-unless", "conditions", multiple=True, metavar="CONDITION",
              help="Exit status 12 unless the verdict supports it, as in 'simplified better-than shaped'. Repeatable.")
@_allow_changed_code
@_detach
def resume(run_dir: Path, conditions: tuple[str, ...], detach: bool, **how: Any) -> None:
    """Go on with RUN, however it was stopped, from its journal and checkpoints, and report as launch does."""
    from esper_ab.commands.resume import resume_run, unfinished
    from esper_ab.execution.experiment import make_launcher, write_report
    from esper_ab.live.console import outlive_terminal
    from esper_ab.report.build import printed
    from esper_ab.verdict.condition import parse_condition, require

    quiet, json, allowed = how["quiet"], how["json"], how["allow_changed_code"]
    if detach and conditions:
        raise click.UsageError("--detach and --fail-unless exclude each other; `esper-ab report` takes it at the end")
    history = unfinished(run_dir, allow_changed_code=allowed)
    asked = [parse_condition(text, history.groups, history.design.comparisons) for text in conditions]
    if detach:
        _go_on_by_itself(run_dir, "resume", *_workers(how), json=json)
        return
    outlive_terminal(run_dir)
    launcher = make_launcher(how["launcher"], how["transport"])
    resume_run(run_dir, launcher, watched=not (quiet or json), allow_changed_code=allowed)
    paths = write_report(run_dir)
    click.echo(printed(paths, "json" if json else "text"))
    require(asked, paths.content.comparisons)


def _workers(how: dict[str, Any]) -> tuple[str, ...]:
    """The flags that say how workers are started and reached, and by which code, to be typed again."""
    allowed = ("--allow-changed-code",) if how["allow_changed_code"] else ()
    return ("--launcher", how["launcher"], "--transport", how["transport"], *allowed)


def _go_on_by_itself(run_dir: Path, name: str, *args: str, json: bool) -> None:
    """Run a command of this file for `run_dir` detached."""
    from esper_ab.execution.detach import detach

    detached = detach("esper_ab.commands.cli", [name, str(run_dir), *args], run_dir)
    click.echo(detached.shown(as_json=json))


@group.command(epilog=epilog(
    "esper-ab fsck runs/RUN",
    "esper-ab fsck runs/RUN --repair",
))  # fmt: skip
@_run_dir
@click.option("--repair", is_flag=True, help="Cut the journal at its first damaged line, keep what is cut off beside "
              "it, and remove temporary files of killed processes.")
@_as_json
def fsck(run_dir: Path, repair: bool, json: bool) -> int:
    """Verify RUN's journal, policies and checkpoints; exit status 5 when something is damaged."""
    from esper_ab.commands import fsck as program

    found = program.repair(run_dir) if repair else program.examine(run_dir)
    click.echo(program.fsck_json(found) if json else program.fsck_text(found))
    return found.exit_status


def main() -> int:
    """Entry of `esper-ab`."""
    return invoke(group, sys.argv[1:], "esper-ab")


if __name__ == "__main__":
    sys.exit(main())
