"""A calibration in words, as `esper-ab calibrate` prints it. Pure."""

from __future__ import annotations

import textwrap

from msgspec import UnsetType

from esper_ab.design.calibration_file import Calibration
from esper_ab.design.episodes_text import next_text, share_text
from esper_ab.design.outcome_windows import needs_of, window_lines
from esper_ab.design.power_text import table_lines
from esper_ab.design.shape_risk import risk_line
from esper_ab.design.window_advice import advice_of, advice_sentence
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.text import digits_for

_WIDTH = 100


def calibration_text(calibration: Calibration) -> str:
    """Describe all results of a calibration, in lines of at most 100 characters."""
    outcome = calibration.outcome
    digits = digits_for(calibration.margin)
    mean = outcome.value(f"{calibration.spread.mean:.{digits - 1}f}")
    task = calibration.circumstances["task"]
    outcome_over = calibration.circumstances["outcome_over"]
    lines = [calibration.sentence, f"Mean {outcome.label} {mean}; task {task}, outcome {outcome_over}."]
    if calibration.noise is not None:
        lines.append(
            f"Evaluation noise: {share_text(calibration.noise)} of the runs' variance. {next_text(calibration.noise)}."
        )
    if not isinstance(calibration.shape_risk, UnsetType):
        lines.append(risk_line(calibration.shape_risk, "runs"))
    if calibration.deterministic:
        lines.append("Determinism: two devices with the same randomness gave the same records.")
    else:
        lines.append(
            "Determinism: two devices with the same randomness gave DIFFERENT records: pairs have less in common than "
            "they should."
        )
    lines += _margin_lines(calibration)
    if calibration.power:
        lines += ["", "One group does not show the pair correlation rho; an experiment will show its own.", ""]
        lines += table_lines(calibration.power, outcome.apart)
        needs = needs_of(calibration.windows, calibration.power)
        windows = window_lines(needs, calibration.power, outcome.apart)
        if windows:
            lines += ["", *windows]
        advice = advice_of(needs, calibration.group_changes, calibration.margin)
        if advice is not None:
            lines.append(advice_sentence(advice, calibration.margin, outcome.apart))
    return "\n".join(_wrapped(line) for line in lines)


def _wrapped(line: str) -> str:
    """Wrap a sentence; other lines are those of a table, or empty."""
    if not line[:1].isalpha():
        return line
    return textwrap.fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _margin_lines(calibration: Calibration) -> list[str]:
    """Explain the margin used here if the user gave none; only the user knows which difference matters."""
    if calibration.margin_named or not calibration.power:
        return []
    margin = calibration.outcome.difference(f"{calibration.margin:g}")
    replicates = max(calibration.planned, LEAST_PAIRS)
    return [
        "",
        f"No margin was named. {replicates} seeds can find a difference of {margin} with 80 % power, if pairs are "
        "uncorrelated; the table uses this margin. Name the smallest difference worth acting on; a much smaller margin "
        "needs more seeds.",
    ]
