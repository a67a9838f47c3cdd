"""`esper-ab completion`: a script for the shell that asks `esper-ab` itself what fits behind the cursor."""

from __future__ import annotations

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._shells import PROGRAM, SHELLS, VARIABLE


@click.command(epilog=epilog(
    'eval "$(esper-ab completion bash)"  # in ~/.bashrc',
    'eval "$(esper-ab completion zsh)"  # in ~/.zshrc, after compinit',
    "esper-ab completion fish > ~/.config/fish/completions/esper-ab.fish",
))  # fmt: skip
@click.argument("shell", type=click.Choice(tuple(SHELLS)))
def command(shell: str) -> None:
    """Print a script that completes commands, options, experiments, groups and settings in SHELL."""
    root = click.get_current_context().find_root().command
    click.echo(SHELLS[shell](root, {}, PROGRAM, VARIABLE).source(), nl=False)
