"""A planned campaign in words: a few lines for each part, or all of it; and as JSON."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import msgspec

from esper_ab.campaign.campaign import CampaignPlan, PartPlan
from esper_ab.contracts.visible import visible_line
from esper_ab.health.processor import room
from esper_ab.plan.budget import MEASURED_ON, known_sd_of_pairs
from esper_ab.plan.estimate import duration
from esper_ab.plan.text import WIDTH, plan_text, replication_words, short_text, wrapped

if TYPE_CHECKING:  # needs scipy, which --help does not
    from esper_ab.design.calibration_file import Calibration
    from esper_ab.design.endings_text import AssumedSpread, Cost
    from esper_ab.design.window_advice import WindowAdvice

_NARROWEST = 40  # characters: a narrower terminal wraps sentences itself


def describe(plan: CampaignPlan, *, in_full: bool = False) -> str:
    """Return a plan as text that fits the terminal.

    It has the cost and the rule of several parts, the author's remarks, and the plan of each part in a few lines or,
    with `in_full`, in full.
    """
    width = min(WIDTH, max(_NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns))
    if in_full:
        first_text, *other_texts = (whole_plan(part, width) for part in plan.parts)
    else:
        first_text, *other_texts = (_short_plan(part, width) for part in plan.parts)
    remarks = [*_remarks(plan.campaign.about), *_budget(plan)]
    if plan.over_all is None:
        return "\n".join([*remarks, first_text])
    return "\n\n".join(["\n".join([*remarks, _describe_joint(plan)]), first_text, *other_texts])


def whole_plan(part: PartPlan, width: int = WIDTH) -> str:
    """Return the plan of a part in full."""
    memory = room()
    memory_words = f"{memory.bytes / 2**30:.1f} available under {memory.by}" if memory.by else ""
    text = plan_text(part.plan, part.machine, part.cost, part.folder, width, memory_words)
    sentences = [power_line(part)]
    if len(part.plan.design.comparisons) > 1:
        sentences.append(_saved_seeds(part))
    sentences += _kept_runs_lines(part)
    return "\n".join(filter(None, (text, *(wrapped(sentence, width) for sentence in sentences), *chances(part, width))))


def _saved_seeds(part: PartPlan) -> str:
    """Say what moderated variances would save; "" if nothing, or if the plan decides nothing by pairs."""
    if part.plan.is_confounded or part.plan.experiment.unpaired:
        return ""
    from esper_ab.design.moderation_text import saved_seeds  # needs scipy, which --help does not

    return saved_seeds(part.plan.design)


def _short_plan(part: PartPlan, width: int) -> str:
    text = short_text(part.plan, part.machine, part.cost, part.folder, power_line(part), width)
    return "\n".join((*(wrapped(sentence, width) for sentence in _kept_runs_lines(part)), text))


def _kept_runs_lines(part: PartPlan) -> tuple[str, ...]:
    """Say which kept runs are reused, if there is a folder of them."""
    if part.offers is None:
        return ()
    from esper_ab.kept_runs.words import in_plan  # most experiments have no such folder

    return in_plan(part.offers)


def power_line(part: PartPlan) -> str:
    """Return sentences on the difference that a plan can detect, and on what would decide more often.

    Return "" if nothing can be computed before training.
    """
    # Imported here, because they need scipy, which --help does not.
    from esper_ab.design.any_shape_text import price_line
    from esper_ab.design.endings_text import advice, open_ended_line
    from esper_ab.design.power_text import KnownSD, design_power_line
    from esper_ab.design.shape_risk import risk_lines

    measured_sd = known_sd_of_pairs(part.plan.experiment)
    known_sd = KnownSD(measured_sd, MEASURED_ON) if measured_sd is not None else None
    design = part.plan.design
    spread = _spread(part)
    sentences = [design_power_line(design, _run_sd(part), known_sd)]
    if design.any_shape:
        sentences.append(price_line(design, None if spread is None else spread.sd, _cost(part)))
    elif spread is None and design.anytime_after is not None and not part.plan.is_confounded:
        sentences.append(open_ended_line(design, _cost(part)))
    if not design.any_shape and part.prior.calibration is not None:
        sentences += risk_lines(part.prior.calibration.shape_risk, "runs of the calibration")
    if spread is not None:
        sentences += advice(part.plan.design, spread, _cost(part))
    calibration = part.prior.calibration
    if calibration is not None:
        window = _window_advice(part, calibration)
        if window is not None and window.finding == "recommended":
            sentences.append(_window_sentence(part, window))
    return " ".join(filter(None, sentences))


def chances(part: PartPlan, width: int = WIDTH) -> list[str]:
    """Return a table of the chance of each verdict, unless the plan has no maximum, and why no window is recommended.

    Return [] if the spread of pairs is unknown.
    """
    from esper_ab.design.endings_text import endings_lines  # needs scipy, which --help does not

    spread = _spread(part)
    if spread is None:
        return []
    lines = endings_lines(part.plan.design, spread, _cost(part))
    calibration = part.prior.calibration
    if calibration is not None:
        window = _window_advice(part, calibration)
        if window is not None and window.finding != "recommended":  # which the plan's first lines say
            lines.append(wrapped(_window_sentence(part, window), width))
    return lines


def _spread(part: PartPlan) -> AssumedSpread | None:
    """Return the spread of pairs by a calibration, where pairs are taken as uncorrelated, or by the evidence.

    Return None if it is unknown, or the plan decides nothing by pairs.
    """
    if part.plan.is_confounded:
        return None
    from esper_ab.design.endings_text import AssumedSpread  # needs scipy, which --help does not
    from esper_ab.design.power import sd_of_differences

    run_sd = _run_sd(part)
    sd = known_sd_of_pairs(part.plan.experiment) if run_sd is None else sd_of_differences(run_sd, 0.0)
    if not sd:
        return None
    design = part.plan.design
    return AssumedSpread(sd=sd, margin=design.margin, unit=design.outcome.apart)


def _window_advice(part: PartPlan, calibration: Calibration) -> WindowAdvice | None:
    """Return what a calibration says about the last third of training as outcome, if the plan compares evaluations."""
    design = part.plan.design
    if design.outcome_over != "evaluation" or part.plan.is_confounded:
        return None
    from esper_ab.design.window_advice import WINDOW, advice_of_plan  # needs scipy, which --help does not

    if WINDOW not in [window.outcome_over for window in calibration.windows]:
        return None
    episodes = part.plan.experiment.eval_episodes
    sds = (calibration.run_sd(WINDOW, episodes), calibration.run_sd("evaluation", episodes))
    return advice_of_plan(design, calibration.group_changes, *sds)


def _window_sentence(part: PartPlan, window: WindowAdvice) -> str:
    from esper_ab.design.window_advice import advice_sentence  # needs scipy, which --help does not

    design = part.plan.design
    return advice_sentence(window, design.margin, design.outcome.apart, _cost(part))


def _run_sd(part: PartPlan) -> float | None:
    """Return the SD of the runs of one group, by the calibration; None if there is none."""
    calibration = part.prior.calibration
    if part.plan.run_sd is None and calibration is not None:
        return calibration.spread.sd
    return part.plan.run_sd


def _cost(part: PartPlan) -> Cost:
    """Return a function that says how long a number of seeds takes."""
    start_up_s = part.cost.start_up_s
    seed_s = (part.cost.duration_s - start_up_s) / part.plan.experiment.seeds
    return lambda seeds: duration(start_up_s + seeds * seed_s).removeprefix("about ")


def _remarks(author_remarks: dict[str, Any]) -> list[str]:
    """Return the author's remarks on the experiment and its variants, a line each."""
    if not author_remarks:
        return []
    lines = [author_remarks["description"]]
    for name, variant in author_remarks["variants"].items():
        if variant["description"]:
            lines.append(f"  {name}: {variant['description']}")
    return [visible_line(line) for line in lines if line]


def _budget(plan: CampaignPlan) -> list[str]:
    """Return what the author allows the answer to cost, beside what the plan takes at most; [] without a budget."""
    budget = plan.campaign.about.get("claim", {}).get("core_minutes")
    if budget is None:
        return []
    core_s = 0.0
    for part in plan.parts:
        devices = {device for lane in part.plan.lanes for device in lane.devices}  # which several lanes may share
        core_s += part.cost.duration_s * len(devices)
    return [f"budget: {budget:g} core minutes; the estimate of this plan is {core_s / 60.0:.1f} at most"]


def _describe_joint(plan: CampaignPlan) -> str:
    """Return the cost of all parts, and the rule of the comparisons over all of them."""
    from esper_ab.verdict.rule_sentence import rule_sentence  # needs scipy

    joint_plan = plan.over_all
    assert joint_plan is not None
    margins = "; ".join(f"{scale.task}: {scale.outcome.difference(f'{scale.margin:g}')}" for scale in joint_plan.scales)
    return "\n".join(
        (
            f"{plan.directory}: {len(plan.parts)} parts, one after the other, and one verdict over all of them",
            f"estimate of all parts: {duration(sum(part.cost.duration_s for part in plan.parts))}",
            f"margins: {margins}",
            f"rule over all parts: {rule_sentence(joint_plan.design)}",
            f"digest: {plan.digest}",
            *filter(None, (replication_words(plan.pooled_with, joint_plan.design),)),
        )
    )


def encode(plan: CampaignPlan) -> bytes:
    """Encode plans, estimates and directories as JSON."""
    parts = [msgspec.Raw(_encode_part(part)) for part in plan.parts]
    if plan.over_all is None:
        return bytes(parts[0])
    directory_json = msgspec.Raw(json.dumps(str(plan.directory)).encode())  # it may have bytes that are not UTF-8
    return msgspec.json.encode({"experiment_dir": directory_json, "digest": plan.digest, "parts": parts})


def _encode_part(part: PartPlan) -> bytes:
    folder_json = msgspec.Raw(json.dumps(str(part.folder)).encode())  # as above
    document = {"plan": part.plan, "estimate": part.cost, "experiment_dir": folder_json}
    if part.offers is not None:
        from esper_ab.kept_runs.words import as_json  # as above

        document["references"] = as_json(part.offers)
    return msgspec.json.encode(document)
