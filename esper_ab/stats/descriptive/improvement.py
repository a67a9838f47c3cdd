"""The probability of improvement, with the count of wins over pairs."""

from __future__ import annotations

from esper_ab.stats.probability_of_improvement import ProbabilityOfImprovement, in_words, probability_of_improvement
from esper_ab.stats.statistic import Beside, Statistic


def _show(found: ProbabilityOfImprovement, beside: Beside) -> str:
    words = in_words(beside.a, beside.b, found)
    return f"{words}; A12 = {found.a12:.2f}, Cliff's delta {found.cliffs_delta:+.2f}"


STATISTIC = Statistic[ProbabilityOfImprovement](
    label="improvement", kind="effect", place=1, show=_show, of_equal=True,
    compute=lambda a, b, _: probability_of_improvement(a, b),
)  # fmt: skip
