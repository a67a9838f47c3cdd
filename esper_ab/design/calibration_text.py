"""A calibration in words, as `esper-ab calibrate` prints it. Pure."""

from __future__ import annotations

import textwrap

from esper_ab.design.calibration_file import Calibration
from esper_ab.design.episodes_text import next_text, share_text
from esper_ab.design.false_claims import FalseClaims
from esper_ab.design.power_text import table_lines
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.text import digits_for

_WIDTH = 100


def calibration_text(found: Calibration) -> str:
    """Everything that a calibration found, in words, lines of at most 100 characters."""
    s, outcome, digits = found.spread, found.outcome, digits_for(found.margin)
    mean = outcome.value(f"{s.mean:.{digits - 1}f}")
    unit = f", {outcome.apart}" if outcome.apart else ""
    lines = [
        found.sentence,
        f"Mean {outcome.label} {mean}; task {found.circumstances['task']}, outcome "
        f"{found.circumstances['outcome_over']}.",
        f"{_curve_sentence(found)}.",
        *_noise_lines(found),
        "",
        f"Device and start order (least squares, 95 % intervals{unit}):",
        *_effect_lines(found, digits),
        "",
        "Determinism: two devices with the same randomness gave the same records."
        if found.deterministic
        else "Determinism: two devices with the same randomness gave DIFFERENT records: pairs share less than they "
        "should.",
        "",
        f"How often each rule finds a difference where there is none, with these runs dealt at random into two groups "
        f"of {found.replicates}{_fewer(found)}; 5 % is what a rule promises:",
        *(_claim_line(claims, found.replicates) for claims in found.claims),
    ]
    lines += _margin_lines(found)
    if found.power:
        lines += ["", "The pair correlation rho is not known from one mode; an experiment shows its own.", ""]
        lines += table_lines(found.power, outcome.apart)
    return "\n".join(
        textwrap.fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False) if line[:1].isalpha() else line
        for line in lines
    )


def _margin_lines(found: Calibration) -> list[str]:
    """Return what a margin costs, where none was named: a hint, for how much matters only the user knows."""
    if found.margin_named or not found.power:
        return []
    margin = found.outcome.difference(f"{found.margin:g}")
    return [
        "",
        f"No margin was named. {max(found.planned, LEAST_PAIRS)} seeds find a difference of {margin} with 80 % "
        "power, if pairs turn out to share nothing. Name the smallest difference that is worth acting on; a margin far "
        "below this one takes more seeds. The table is for this one.",
    ]


def _fewer(found: Calibration) -> str:
    if found.replicates == found.planned:
        return ""
    return f" ({found.planned} are planned, but need {2 * found.planned} runs)"


def _noise_lines(found: Calibration) -> list[str]:
    if found.noise is None:
        return []
    return [f"Evaluation noise: {share_text(found.noise)} of the runs' variance. {next_text(found.noise)}."]


def _curve_sentence(found: Calibration) -> str:
    told = []
    if found.autocorrelation is None:
        needs = "needs four episodes that vary, with an outcome in all runs"
        told.append(f"Autocorrelation of the training outcome: {needs}")
    else:
        told.append(f"Autocorrelation of the training outcome at lag 1: {found.autocorrelation:.2f}")
    icc = found.intraclass
    if icc is None:
        told.append("intraclass correlation: not defined here")
    else:
        told.append(
            f"intraclass correlation of the last {icc.episodes} episodes: {icc.r:.2f} ({icc.low:.2f} to {icc.high:.2f})"
        )
    return "; ".join(told)


def _effect_lines(found: Calibration, digits: int) -> list[str]:
    if not found.effects:
        return ["  one device, one place: nothing to compare"]
    lines = []
    for effect in found.effects:
        lines += [
            f"  {effect.factor} {level.level} against {level.against}: {level.mean:+.{digits}f} "
            f"[{level.low:+.{digits}f}, {level.high:+.{digits}f}]"
            for level in effect.levels
        ] or [f"  {effect.factor}: too few runs"]
    if any(effect.aliased for effect in found.effects):
        lines.append("  Device and start order go together in this plan: each is estimated as if it were alone.")
    return lines


def _claim_line(claims: FalseClaims, per_group: int) -> str:
    size = "" if claims.runs_per_group == per_group else f" ({claims.runs_per_group} run per group)"
    return f"  {claims.rate:6.1%}  {claims.rule}{size}"
