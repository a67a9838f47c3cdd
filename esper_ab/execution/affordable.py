"""Asking before an experiment that is estimated to need more than the machine has, or more than a day."""

from __future__ import annotations

import sys

import click
import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.execution.experiment import PlannedExperiment
from esper_ab.health.processor import Room, room
from esper_ab.plan.estimate import Estimate, estimate

_DAY_S = 24 * 3600.0


def excesses(cost: Estimate, there: Room) -> tuple[str, ...]:
    """Say what of an estimate exceeds a day or the memory that is there."""
    found = []
    if cost.duration_s > _DAY_S:
        found.append(f"it is estimated to take {cost.duration_s / _DAY_S:.1f} days")
    if there.bytes < cost.memory_bytes and (there.bytes or there.by):
        has = f"{there.bytes / 2**30:.1f} GiB are available{f' by {there.by}' if there.by else ''}"
        found.append(f"it is estimated to need {cost.memory_bytes / 2**30:.1f} GiB of memory, and {has}")
    return tuple(found)


def confirm(*planned: PlannedExperiment, yes: bool, dry_run: bool) -> None:
    """Warn of what the machine may not afford and ask, unless `yes`; UsageError without an assent.

    `planned`: experiments that are carried out one after the other. Without a terminal nobody can assent. `dry_run`:
    only the warning, because nothing will be started.
    """
    costs = [estimate(one.plan.experiment, one.plan.lanes, one.machine) for one in planned]
    whole = max(costs, key=lambda cost: cost.memory_bytes)
    whole = msgspec.structs.replace(whole, duration_s=sum(cost.duration_s for cost in costs))
    lanes = [lane for one in planned for lane in one.plan.lanes]
    on_gpu = any(device.startswith("cuda") for lane in lanes for device in lane.devices)
    found = excesses(whole, Room(0, "") if on_gpu else room())  # a GPU's memory is checked when lanes are planned
    for sentence in found:
        click.echo(f"warning: {sentence}", err=True)
    if not found or yes or dry_run:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{'; '.join(found)}: --yes starts it all the same")
    if not click.confirm("Start it all the same?", err=True):
        raise UsageError("not started; fewer seeds, episodes or environments make a smaller plan")
