"""`esper-ab stream`: candidates against the best so far, with an error rate over all of them."""

from __future__ import annotations

import json as json_module
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._parameters import PATH, Command, CommandGroup, json_flag, switch, valued
from esper_ab.contracts.errors import ConditionNotMet, EsperError, JournalError, UsageError, WorkerFailed
from esper_ab.contracts.shell_command import typeable

if TYPE_CHECKING:
    from esper_ab.stream.progress import StreamProgress
    from esper_ab.stream.proposal import Proposal

_NOT_ACCEPTED = ConditionNotMet.exit_code
_folder = click.argument("folder", metavar="FOLDER", type=PATH)


@click.group(
    cls=CommandGroup,
    epilog=epilog("esper-ab stream new agent stream.toml", "esper-ab stream try agent --code . --note 'wider net'"),
)
def command() -> None:
    """Try candidates one after the other, with an error rate over all of them."""


@command.command(cls=Command, epilog=epilog("esper-ab stream new agent stream.toml"))
@_folder
@click.argument("file", metavar="FILE", type=PATH)
@json_flag
def new(folder: Path, file: Path, json: bool) -> None:
    """Make a stream in FOLDER from the question in FILE, and measure the first incumbent.

    FILE is TOML: train, higher or lower, and if you like margin, alpha, seeds, code, unchanged and settings.
    """
    from esper_ab.stream.opening import open_stream  # --help needs no numpy
    from esper_ab.stream.progress import fold
    from esper_ab.stream.stream_file import read_stream_file

    question = read_stream_file(file, Path.cwd())
    ledger = open_stream(folder.resolve(), question)
    _show(fold(ledger.entries), ledger.head, json=json)


@command.command(
    "try",
    cls=Command,
    epilog=epilog(
        'echo \'{"code": ".", "note": "wider net"}\' | esper-ab stream try agent',
        "esper-ab stream try agent --code my-branch --set lr=0.01",
    ),
)
@_folder
@valued(
    "--code", "STATE", "The candidate's code: a commit, or a folder such as . [default: the incumbent's]", default=""
)
@valued(
    "--set", "KEY=VALUE", "A setting of the candidate, over the incumbent's. Repeatable.", "settings", multiple=True
)
@valued("--note", "TEXT", "What the candidate is, for people.", default="")
@switch("--again", "Compare a candidate anew, at a level of its own, that was answered before.", "is_repeated")
@switch("--give-up", "End an unfinished candidate, whose level is spent, if this is another one.", "gives_up")
def try_(folder: Path, code: str, settings: tuple[str, ...], note: str, is_repeated: bool, gives_up: bool) -> int:
    """Compare a candidate with the incumbent on fresh seeds, and print the decision as one JSON object.

    The candidate is a JSON object on stdin, {"code": ".", "settings": {"lr": 0.01}, "note": "…"}, or these flags. A
    candidate that was interrupted goes on if it is sent again. Exit status: 0 accepted; 12 rejected or undecided; 2
    refused; 4 its runs failed.
    """
    from esper_ab.stream.proposal import proposal_of_flags, read_proposal  # as above
    from esper_ab.stream.trying import CandidateRefused

    try:
        if code or settings or note or is_repeated:
            proposal = proposal_of_flags(code, settings, note, is_repeated=is_repeated)
        else:
            proposal = read_proposal(_stdin())
        return _tried(folder.resolve(), proposal, gives_up=gives_up)
    except EsperError as error:
        decision = "refused" if isinstance(error, CandidateRefused) else None
        click.echo(json_module.dumps({"decision": decision, "error": str(error), "exit_status": error.exit_code}))
        raise


def _stdin() -> str:
    if sys.stdin.isatty():
        raise UsageError("candidate: expected JSON on stdin, or --code and --set")
    return sys.stdin.read()


def _tried(folder: Path, proposal: Proposal, *, gives_up: bool) -> int:
    """Try a candidate, print the answer and return the exit status."""
    from esper_ab.stream.answer import answer_tree  # as above
    from esper_ab.stream.ledger import read_ledger
    from esper_ab.stream.progress import fold
    from esper_ab.stream.trying import try_candidate

    os.chdir(_working_folder(fold(read_ledger(folder).entries).question.folder))
    tried = try_candidate(folder, proposal, gives_up=gives_up)
    tree = answer_tree(tried)
    click.echo(json_module.dumps(tree))
    click.echo(typeable(f"{tree['decision']}: {tree['reason']}"), err=True)
    if tree["decision"] == "accepted":
        return 0
    return WorkerFailed.exit_code if tree["decision"] == "failed" else _NOT_ACCEPTED


def _working_folder(folder: str) -> str:
    if not Path(folder).is_dir():
        raise UsageError(f"{folder}: the folder in which the stream was made is gone; put it back")
    return folder


@command.command(
    cls=Command, epilog=epilog("esper-ab stream status agent", "esper-ab stream status agent --check --json")
)
@_folder
@switch("--check", "Check the chain of the ledger, and repeat every level, e-value and decision from its records.")
@json_flag
def status(folder: Path, check: bool, json: bool) -> None:
    """Show the incumbent with its value, the candidates so far, and what is left of the error rate."""
    from esper_ab.stream.checking import check as check_ledger  # as above
    from esper_ab.stream.ledger import read_ledger
    from esper_ab.stream.progress import fold
    from esper_ab.stream.status_text import check_line

    ledger = read_ledger(folder.resolve())
    checked_ledger = check_ledger(ledger) if check else None
    extra: dict[str, Any] = {} if checked_ledger is None else {"check": msgspec.to_builtins(checked_ledger)}
    _show(fold(ledger.entries), ledger.head, json=json, extra=extra)
    if checked_ledger is None:
        return
    if checked_ledger.problems:
        more_words = f", and {len(checked_ledger.problems) - 1} more" if len(checked_ledger.problems) > 1 else ""
        raise JournalError(f"{ledger.path}: {checked_ledger.problems[0]}{more_words}")
    if not json:
        click.echo(check_line(checked_ledger))


def _show(progress: StreamProgress, head: str, *, json: bool, extra: dict[str, Any] | None = None) -> None:
    """Print the state of a stream."""
    from esper_ab.stream.answer import incumbent_tree, stream_tree  # as above
    from esper_ab.stream.status_text import status_lines

    if json:
        tree = {"incumbent": incumbent_tree(progress.incumbent), "stream": stream_tree(progress), "head": head}
        click.echo(json_module.dumps({**tree, **(extra or {})}))
        return
    for line in status_lines(progress, head):
        click.echo(typeable(line))
