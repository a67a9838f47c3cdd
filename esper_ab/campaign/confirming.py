"""Ask before a campaign is started that may take more than a day, or more memory than there is."""

from __future__ import annotations

import sys

import click
import msgspec

from esper_ab.campaign.campaign import CampaignPlan
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_command import typeable
from esper_ab.health.processor import Room, room
from esper_ab.plan.estimate import Estimate

_DAY_S = 24 * 3600.0


def confirm(plan: CampaignPlan, *, yes: bool, dry_run: bool) -> None:
    """If the plan may take more than a day or too much memory, warn the user and, unless `yes` is true, ask.

    Raises UsageError if the user declines, or if there is no terminal to ask. With `dry_run`, only warn, because
    nothing will be started.
    """
    costs = [part.cost for part in plan.parts]
    largest_cost = max(costs, key=lambda cost: cost.memory_bytes)
    total_cost = msgspec.structs.replace(largest_cost, duration_s=sum(cost.duration_s for cost in costs))
    lanes = [lane for part in plan.parts for lane in part.plan.lanes]
    on_gpu = any(device.startswith("cuda") for lane in lanes for device in lane.devices)
    memory = Room(0, "") if on_gpu else room()  # planning lanes has already checked a GPU's memory
    sentences = excesses(total_cost, memory)
    for sentence in sentences:
        click.echo(typeable(f"warning: {sentence}"), err=True)
    if not sentences or yes or dry_run:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{'; '.join(sentences)}: --yes starts it anyway")
    if not click.confirm("Start it anyway?", err=True):
        raise UsageError("not started; for a smaller plan, reduce seeds, episodes or environments")


def excesses(cost: Estimate, memory: Room) -> tuple[str, ...]:
    """Return a sentence if the estimated time exceeds a day, and one if the estimated memory exceeds the available."""
    sentences = []
    if cost.duration_s > _DAY_S:
        sentences.append(f"it is estimated to take {cost.duration_s / _DAY_S:.1f} days")
    if memory.bytes < cost.memory_bytes and (memory.bytes or memory.by):
        available_words = f"{memory.bytes / 2**30:.1f} GiB are available"
        if memory.by:
            available_words += f" by {memory.by}"
        sentences.append(
            f"it is estimated to need {cost.memory_bytes / 2**30:.1f} GiB of memory, but {available_words}"
        )
    return tuple(sentences)
