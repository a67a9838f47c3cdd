"""Question 1: lockstep or independent? Records bit for bit, time on the wall, and the share of it that is waiting."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from esper_ab.journal.file import JOURNAL_NAME
from esper_ab.journal.fold import History, RunHistory
from questions.experiments import MODES, REPEATS, TIMING, history_of, run

_WORTH = 0.10  # of the wall: the saving from which a result that is wanted soon should do without the barrier


def measure(folder: Path) -> dict[str, Any]:
    """Every mode `REPEATS` times, in turn."""
    names = [(mode, f"{mode}-{repeat}") for repeat in range(REPEATS) for mode in MODES]
    found: dict[str, list[Path]] = {mode: [] for mode in MODES}
    for mode, name in names:
        found[mode].append(run(folder, name, (*TIMING, "--sync", mode)))
    results = {
        digests(history_of(experiment_dir)) for experiment_dirs in found.values() for experiment_dir in experiment_dirs
    }
    return {
        "experiment": TIMING,
        "repeats": REPEATS,
        "identical": len(results) == 1,
        "modes": {
            mode: [_times(experiment_dir) for experiment_dir in experiment_dirs]
            for mode, experiment_dirs in found.items()
        },
        "at_best": [_at_best(history_of(experiment_dir)) for experiment_dir in found["lockstep"]],
    }


def digests(history: History) -> tuple[tuple[str, ...], ...]:
    """Every record of every run."""
    return tuple(
        (name, *(record.digest for record in one.curve()), one.evaluation.digest if one.evaluation else "")
        for name, one in sorted(history.runs.items())
    )


def _times(experiment_dir: Path) -> dict[str, float]:
    """Seconds from the first to the last release of the blocks, together, and how much of it the runs did not work."""
    history = history_of(experiment_dir)
    begun: dict[int, float] = {}
    ended: dict[int, float] = {}
    for line in (experiment_dir / JOURNAL_NAME).read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["event"]["kind"] == "released":
            at, block = datetime.fromisoformat(entry["t"]).timestamp(), entry["event"]["replicate"]
            begun.setdefault(block, at)
            ended[block] = at
    wall = sum(ended[block] - begun[block] for block in begun)
    busy = sum(sum(_durations(one)) for one in history.runs.values())
    return {"wall_s": wall, "waiting": 1.0 - busy / (wall * len(history.groups))}


def _durations(one: RunHistory) -> list[float]:
    """Seconds of each piece of work of a run: its episodes, then its evaluation."""
    evaluation = [one.evaluation.timing.total_s] if one.evaluation else []
    return [*(record.timing.total_s for record in one.curve()), *evaluation]


def _at_best(history: History) -> float:
    return saved_at_best([[_durations(history.runs[spec.ref.name]) for spec in block.runs] for block in history.blocks])


def saved_at_best(blocks: list[list[list[float]]]) -> float:
    """Share of the time that doing without a barrier would save if every piece of work took as long as it did.

    `blocks`: by block, by run, seconds of its pieces. Each block is awaited as a whole either way.
    """
    lockstep = sum(max(pieces) for block in blocks for pieces in zip(*block, strict=True))
    independent = sum(max(sum(pieces) for pieces in block) for block in blocks)
    return float(1.0 - independent / lockstep)


def table(found: dict[str, Any]) -> str:
    """Markdown, and the recommendation that follows from the numbers."""
    lines = ["| | wall, s: median (all) | share of it that runs wait |", "|---|---|---|"]
    for mode, times in found["modes"].items():
        walls = ", ".join(f"{one['wall_s']:.1f}" for one in times)
        waits = median(one["waiting"] for one in times)
        lines.append(f"| {mode} | {_wall(found, mode):.1f} ({walls}) | {waits:.0%} |")
    return "\n".join([*lines, "", *_said(found)])


def _wall(found: dict[str, Any], mode: str) -> float:
    return float(median(one["wall_s"] for one in found["modes"][mode]))


def _said(found: dict[str, Any]) -> list[str]:
    same = found["identical"]
    saved = 1.0 - _wall(found, "independent") / _wall(found, "lockstep")
    best = median(found["at_best"])
    what = "Not one record differs, to the bit" if same else "Records differ"
    told = (
        f"{what}. Without the barrier the wall was {abs(saved):.0%} {'shorter' if saved > 0 else 'longer'}; from the "
        f"durations of the lockstep runs, {best:.0%} is the most that could be saved, because a block ends when its "
        "slower run does, barrier or not."
    )
    if not same:
        return [told, "", "**Recommendation: lockstep**, until it is known why the records differ."]
    if max(saved, best) < _WORTH:
        advice = (
            "**Recommendation: lockstep**, the default. What the barrier costs is small, and with it groups are at the "
            "same episode whenever one looks, and a normaliser can be shared."
        )
    else:
        advice = (
            "**Recommendation: lockstep** to watch groups at equal episodes or to share a normaliser; "
            "`--sync independent` when only the result counts and one group's episodes take longer than the other's."
        )
    return [told, "", advice]
