"""What a death means: start the worker again, give the replicate up, or end the experiment.

A run whose worker dies three times without getting any further dies of something that a fourth start will not mend: its
replicate is given up in every group (`Limits.deaths`, for those who want more or fewer starts). A worker that does not
even get as far as a run, three times over, or three replicates given up for one reason before any was complete, is a
fault of the whole set-up: going on would only burn through the plan.
"""

from __future__ import annotations

import re
from collections import Counter

from esper_ab.journal.fold import History

DEATHS_OUTSIDE = 3  # of one lane's worker without a run
DROPS = 3  # replicates given up for one reason, with none complete


class Deaths:
    """Counts deaths since the last progress."""

    def __init__(self, most: int) -> None:
        """`most`: deaths at one milestone of a run that cost the replicate."""
        self._most = most
        self._of_run: dict[str, tuple[int, int]] = {}  # run -> last recorded milestone, deaths since
        self._of_lane: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._accounts: dict[str, str] = {}  # run -> of its last death

    def in_run(self, run: str, milestone: int) -> bool:
        """One more death of `run`, recorded up to `milestone`; whether its replicate is to be given up."""
        before, deaths = self._of_run.get(run, (milestone, 0))
        deaths = deaths + 1 if before == milestone else 1
        self._of_run[run] = (milestone, deaths)
        return deaths >= self._most

    def alike(self, run: str, account: str) -> bool:
        """One more death of `run`, told by `account`; whether its last one was told alike, but for numbers."""
        before = self._accounts.get(run)
        self._accounts[run] = _without_numbers(account)
        return self._accounts[run] == before

    def outside(self, lane: str) -> bool:
        """One more death without a run at work; whether the experiment is to end."""
        self._of_lane[lane] += 1
        return self._of_lane[lane] >= DEATHS_OUTSIDE

    def got_on(self, lane: str) -> None:
        """The lane's worker has reported something of a run."""
        self._of_lane.pop(lane, None)

    def gave_up(self, reason: str) -> bool:
        """One more replicate was given up; whether that many were for this reason. Numbers in it do not count."""
        alike = _without_numbers(reason)
        self._reasons[alike] += 1
        return self._reasons[alike] >= DROPS


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "#", text)


def any_complete(history: History) -> bool:
    """Whether some replicate has the outcomes of all its runs that were not left out."""
    for block in history.blocks:
        runs = [history.runs[spec.ref.name] for spec in block.runs]
        begun = [run for run in runs if not run.left_out]
        if begun and all(run.evaluation is not None and not run.lost for run in begun):
            return True
    return False


def nothing_left(history: History) -> bool:
    """Whether runs were given up, no more will come and there is nothing to compare."""
    runs = history.runs.values()
    return any(run.lost for run in runs) and not any(run.expected for run in runs) and not any_complete(history)
