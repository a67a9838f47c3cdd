"""A planned campaign in words: a few lines for each part, or all of it; and as JSON."""

from __future__ import annotations

import json
import shutil
from typing import Any

import msgspec

from esper_ab.campaign.campaign import CampaignPlan, PartPlan
from esper_ab.contracts.visible import visible_line
from esper_ab.health.processor import room
from esper_ab.plan.budget import EVIDENCE, known_sd_of_pairs
from esper_ab.plan.estimate import duration
from esper_ab.plan.text import WIDTH, plan_text, short_text

_NARROWEST = 40  # characters: a narrower terminal wraps sentences itself


def describe(plan: CampaignPlan, *, whole: bool = False) -> str:
    """Return a plan as text that fits the terminal.

    It has the cost and the rule of several parts, the author's remarks, and the plan of each part in a few lines or,
    with `whole`, in full.
    """
    width = min(WIDTH, max(_NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns))
    if whole:
        first, *others = (whole_plan(part, width) for part in plan.parts)
    else:
        first, *others = (_short_plan(part, width) for part in plan.parts)
    first = "\n".join([*_remarks(plan.campaign.about), first])
    if plan.over_all is None:
        return first
    return "\n\n".join([_describe_joint(plan), first, *others])


def whole_plan(part: PartPlan, width: int = WIDTH) -> str:
    """Return the plan of a part in full."""
    memory = room()
    left = f"{memory.bytes / 2**30:.1f} available under {memory.by}" if memory.by else ""
    text = plan_text(part.plan, part.machine, part.cost, part.folder, width, left)
    return "\n".join(filter(None, (text, power_line(part))))


def _short_plan(part: PartPlan, width: int) -> str:
    return short_text(part.plan, part.machine, part.cost, part.folder, power_line(part), width)


def power_line(part: PartPlan) -> str:
    """Return a sentence on the difference that a plan can detect; "" if it cannot be computed before training."""
    from esper_ab.design.power_text import KnownSD, design_power_line  # needs scipy, which --help does not

    calibration = part.prior.calibration
    sd = part.plan.run_sd
    if sd is None and calibration is not None:
        sd = calibration.spread.sd
    measured = known_sd_of_pairs(part.plan.experiment)
    known = KnownSD(measured, EVIDENCE) if measured is not None else None
    return design_power_line(part.plan.design, sd, known)


def _remarks(about: dict[str, Any]) -> list[str]:
    """Return the author's remarks on the experiment and its variants, a line each."""
    if not about:
        return []
    lines = [about["description"]]
    for name, variant in about["variants"].items():
        if variant["description"]:
            lines.append(f"  {name}: {variant['description']}")
    return [visible_line(line) for line in lines if line]


def _describe_joint(plan: CampaignPlan) -> str:
    """Return the cost of all parts, and the rule of the comparisons over all of them."""
    from esper_ab.verdict.sentences import rule_sentence  # needs scipy

    over_all = plan.over_all
    assert over_all is not None
    margins = "; ".join(f"{scale.task}: {scale.outcome.difference(f'{scale.margin:g}')}" for scale in over_all.scales)
    return "\n".join(
        (
            f"{plan.directory}: {len(plan.parts)} parts, one after the other, and one verdict over all of them",
            f"estimate of all parts: {duration(sum(part.cost.duration_s for part in plan.parts))}",
            f"margins: {margins}",
            f"rule over all parts: {rule_sentence(over_all.design)}",
            f"sha256 of the plan: {over_all.digest}",
        )
    )


def encode(plan: CampaignPlan) -> bytes:
    """Encode plans, estimates and directories as JSON."""
    parts = [msgspec.Raw(_encode_part(part)) for part in plan.parts]
    if plan.over_all is None:
        return bytes(parts[0])
    where = msgspec.Raw(json.dumps(str(plan.directory)).encode())  # it may have bytes that are not UTF-8
    return msgspec.json.encode({"experiment_dir": where, "sha256": plan.over_all.digest, "parts": parts})


def _encode_part(part: PartPlan) -> bytes:
    where = msgspec.Raw(json.dumps(str(part.folder)).encode())  # as above
    return msgspec.json.encode({"plan": part.plan, "estimate": part.cost, "experiment_dir": where})
