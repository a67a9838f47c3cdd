"""`esper-ab fetch`: download what a task needs and does not ship, in a child (`workers.commands.fetch`)."""

from __future__ import annotations

import json as json_module

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._options import shared_options
from esper_ab.execution.child import answer_of


@click.command(epilog=epilog("esper-ab fetch cifar10", "esper-ab fetch cifar10 --data-dir data"))
@click.argument("task", metavar="TASK")
@click.option("--data-dir", default="", metavar="DIR", help="Where to put it. [default: the user's cache]")
@shared_options("json")
def command(task: str, data_dir: str, json: bool) -> None:
    """Download what TASK needs (cifar10), verified by size and checksum."""
    line = json_module.dumps([task, data_dir]).encode()
    said = json_module.loads(answer_of("workers.commands.fetch", line=line))
    click.echo(json_module.dumps({"task": task, "detail": said}) if json else said)
