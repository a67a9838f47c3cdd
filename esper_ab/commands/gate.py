"""`esper-ab gate`: is a change to the code worse, or better? Answered within minutes, where code is merged."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._options import ARGUMENTS, RecordingCommand, shared_options
from esper_ab.commands._parameters import PATH, valued
from esper_ab.contracts.errors import ConditionNotMet, EsperError, Interrupted, refused
from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.contracts.visible import visible_json, visible_line

if TYPE_CHECKING:
    from esper_ab.campaign.campaign import CampaignPlan
    from esper_ab.gate.answer import GateAnswer
    from esper_ab.gate.begun_gate import BegunGate


@command_with(
    "esper-ab gate",
    "esper-ab gate ci/gate.toml --base origin/main --minutes 10 --comment comment.md",
    cls=RecordingCommand,
)
@click.argument("file", metavar="[FILE]", type=PATH, default=Path("gate.toml"), required=False)
@valued(
    "--base", "STATE", "Compare with this commit, branch, tag or folder. [default: where head left the default branch]"
)
@valued("--head", "STATE", "The state in question. [default: your working tree]")
@valued("--minutes", "M", "Minutes of wall-clock time for everything. [default: from FILE]", type=float)
@valued(
    "--comment",
    "PATH",
    "Write the answer as Markdown, at most 15 lines, or the error, as for a pull request.",
    type=PATH,
)
@shared_options("references", "references_limit", "output_dir", "dry_run", "json")
def command(file: Path, **options: Any) -> None:
    """Judge a change to your code by the question in FILE (gate.toml), within its minutes.

    Two states of the code train the same seeds. The exit status is 0 if the claim of FILE was shown, 12 if not. The
    same command goes on with a gate that was interrupted; a changed head is another gate.
    """
    if options["dry_run"] or options["comment"] is None:
        _judge(file, options)
        return
    try:
        _judge(file, options)
    except (ConditionNotMet, Interrupted):  # which has a comment; which says nothing about the change
        raise
    except EsperError as error:
        from esper_ab.gate.comment import comment_on_error  # only for this error

        with suppress(EsperError):  # the first error counts
            _write(options["comment"], comment_on_error(error, file))
        raise


def _judge(file: Path, options: Mapping[str, Any]) -> None:
    # Imported here, so that --help is fast.
    from esper_ab.gate.gate_file import read_gate_file
    from esper_ab.gate.running import GateOptions, plan_gate, run_gate
    from esper_ab.live.console import outlive_terminal

    keys = ("base", "head", "minutes", "references", "references_limit")
    question = read_gate_file(file).question(**{key: options[key] for key in keys})
    resuming = shell_command("gate", *click.get_current_context().meta.get(ARGUMENTS, ()))
    gate_options = GateOptions(
        folder=options["output_dir"],
        say=str if options["json"] else _say,
        command=resuming,
        unsealed=tuple(path for path in (file, options["comment"]) if path is not None),
    )
    if options["dry_run"]:
        plan = plan_gate(question, gate_options)
        if options["json"]:
            _show_plan(plan)
        gate_options.say("Nothing was started.")
        return
    fallback = outlive_terminal()
    atexit.register(fallback.leave, options["output_dir"])  # of a gate that was refused, and so has no directory
    answer = run_gate(question, replace(gate_options, use_directory=fallback.use))
    if options["comment"] is not None:
        _write(options["comment"], answer.markdown)
    _show(answer, json=options["json"])
    if not answer.passed:
        raise ConditionNotMet(answer.complaint)


def _say(line: str) -> None:
    click.echo(typeable(visible_line(line)))


def _show_plan(plan: CampaignPlan | BegunGate) -> None:
    """Print a plan as JSON or, if the gate has begun already, its state."""
    from esper_ab.campaign.campaign import CampaignPlan  # as above
    from esper_ab.campaign.description import encode
    from esper_ab.report.verdict_json import indented

    data = encode(plan) if isinstance(plan, CampaignPlan) else indented({"begun": plan.document})
    click.echo(visible_json(data))


def _show(answer: GateAnswer, *, json: bool) -> None:
    if json:
        from esper_ab.report.verdict_json import indented  # the report has loaded it

        click.echo(visible_json(indented(answer.document)))
        return
    for line in answer.lines:
        _say(line)
    _say(f"Report: {answer.report}")


def _write(path: Path, text: str) -> None:
    """Write the comment; UsageError, or DiskFull, if that is not possible."""
    try:
        write_below(path.parent, path.name, text.encode())
    except OSError as error:
        raise refused(error, f"--comment {path}: {error.strerror}") from None
