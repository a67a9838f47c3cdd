"""Print what a command that trains is about to do."""

from __future__ import annotations

import click

from esper_ab.campaign.campaign import CampaignPlan
from esper_ab.campaign.description import describe, encode
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.visible import visible_json


def print_plan(plan: CampaignPlan, *, json: bool, in_full: bool, dry_run: bool) -> None:
    """Print a plan in a few lines or in full. With `json`, only a dry run prints it, as JSON."""
    if not json:
        click.echo(typeable(describe(plan, in_full=in_full)))
        if dry_run:
            click.echo("Nothing was started.")
    elif dry_run:
        click.echo(visible_json(encode(plan)))
