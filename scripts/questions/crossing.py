"""Question 3: should policy A be scored by reward B? What the table shows, on the arm with separate normalisers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from esper_ab.analysis.cross import CrossEvaluation, cross_evaluation
from questions.experiments import GROUPS, TRAINING, history_of, run

_MEANS_SOMETHING = 0.7  # rank correlation over runs from which a reward is called a stand-in for the outcome


def measure(folder: Path) -> dict[str, Any]:
    """Of the runs that question 2 trained."""
    found = cross_evaluation(history_of(run(folder, "separate", TRAINING)))
    return {"experiment": TRAINING, "cross": msgspec.to_builtins(found)}


def table(found: dict[str, Any]) -> str:
    """Markdown, and what follows."""
    cross = msgspec.convert(found["cross"], CrossEvaluation)
    names = " | ".join(f"policies of {row.group}" for row in cross.rows)
    lines = [
        f"| scored by | {names} | rank correlation with accuracy: over {cross.meanings[0].runs.n} runs | over "
        f"{cross.meanings[0].episodes.n} hosts |",
        "|---|" + "---|" * (len(cross.rows) + 2),
        f"| held-out accuracy, % | {' | '.join(_number(row.outcome) for row in cross.rows)} | | |",
    ]
    for meaning in cross.meanings:
        scores = " | ".join(_number(row.rewards[meaning.mode]) for row in cross.rows)
        rho = f"{_rho(meaning.runs.spearman)} | {_rho(meaning.episodes.spearman)}"
        lines.append(f"| {meaning.mode} | {scores} | {rho} |")
    return "\n".join([*lines, "", *_said(cross)])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _rho(value: float | None) -> str:
    return "none" if value is None else f"{value:+.2f}"


def _said(cross: CrossEvaluation) -> list[str]:
    first, second = (next(row for row in cross.rows if row.group == group) for group in GROUPS)
    ahead = [mode for mode in cross.modes if (first.rewards[mode] or 0.0) > (second.rewards[mode] or 0.0)]
    behind = [mode for mode in cross.modes if mode not in ahead]
    more_accurate = first.group if (first.outcome or 0.0) > (second.outcome or 0.0) else second.group
    good = [one.mode for one in cross.meanings if (one.runs.spearman or 0.0) >= _MEANS_SOMETHING]
    poor = [one.mode for one in cross.meanings if one.mode not in good]
    told = (
        f"Policies of {first.group} score higher under {', '.join(ahead) or 'no mode'}, those of {second.group} under "
        f"{', '.join(behind) or 'no mode'}; by accuracy {more_accurate} is ahead. A reward that ranks runs as accuracy "
        f"does (rank correlation {_MEANS_SOMETHING} or more): {', '.join(good) or 'none'}; the others: "
        f"{', '.join(poor) or 'none'}."
    )
    own = "One of the others is no stand-in for the outcome, even of the policies that were trained on it."
    advice = (
        "**Recommendation: yes, always, and never as the outcome.** It costs no host: all modes are functions of the "
        "same facts. It is the one place where a reward is compared between groups, and it shows what each reward is "
        "worth as a stand-in for accuracy."
    )
    favours = first.group in ahead and second.group in behind
    coupled = " Each group's own reward prefers its own policies: the coupling that the question asks about."
    return [told + (f" {own}" if poor else "") + (coupled if favours else ""), "", advice]
