"""What several experiment directories of one question say together, in Python.

answer = compare_experiments(["experiments/demo", "experiments/demo-again"])
print(answer)
answer.sentences
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from esper_ab.api.arguments import path_of
from esper_ab.contracts.errors import UsageError
from esper_ab.readers.compared import read_sources
from esper_ab.readers.joint_directory import is_joint
from esper_ab.readers.same_question import on_other_seeds, same_question
from esper_ab.readers.same_question_over_tasks import read_over_tasks, same_question_over_tasks
from esper_ab.report.confirmation import confirmations
from esper_ab.report.replications import replications_json, replications_report
from esper_ab.report.text import render_text
from esper_ab.report.together import Together, together, together_over_tasks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class ComparedExperiments:
    """The answer of experiments of one question. `str()` returns the text that `esper-ab compare -v` prints."""

    answer: Together

    def __str__(self) -> str:
        return render_text(replications_report(self.answer), in_full=True)

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence per comparison on all experiments: confirmed or not, and the effect with its interval."""
        return confirmations(self.answer)

    @property
    def planned(self) -> bool:
        """True if a plan declared that exactly these experiments are pooled; if not, the answer is exploratory."""
        return self.answer.question.declared

    @property
    def verdicts(self) -> dict[tuple[str, str, str], str]:
        """The pooled verdict by (a, b, task), where experiments are pooled.

        The task is "" if the experiments have one, and "mean over tasks" for the mean over several.
        """
        return {
            (*item.contrast.groups, item.contrast.task): str(item.pooled.comparison.verdict)
            for item in self.answer.contrasts
            if item.pooled is not None
        }

    @property
    def figure(self) -> Figure:
        """The forest plot that `--figure` draws, as a matplotlib Figure."""
        from esper_ab.report.figures.forest import forest_figure  # needs matplotlib, which verdicts do not

        return forest_figure(self.answer)

    def as_dict(self) -> dict[str, Any]:
        """Return the output of `--json` as Python objects."""
        return dict(msgspec.json.decode(replications_json(self.answer)))


def compare_experiments(paths: Sequence[str | Path]) -> ComparedExperiments:
    """Join experiments of one question, on one task or on several, on different rng seeds, as `esper-ab compare` does.

    Raises UsageError, with a line per reason, if their questions differ or all have the same rng seed.
    """
    listed_paths = [paths] if isinstance(paths, str | Path) else paths
    folders = [path_of("paths", path) for path in listed_paths]
    if any(is_joint(folder) for folder in folders):
        return ComparedExperiments(answer=together_over_tasks(same_question_over_tasks(read_over_tasks(folders))))
    sources = read_sources(folders)
    if not on_other_seeds(sources):
        raise UsageError("these experiments have one rng seed, so their seeds form pairs: use `esper-ab compare`")
    return ComparedExperiments(answer=together(same_question(sources)))
