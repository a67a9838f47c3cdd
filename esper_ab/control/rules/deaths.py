"""What follows the death of a worker: restart it, give the replicate up, or end the experiment.

If a run's worker dies three times without progress (`Limits.deaths`), a fourth start would hardly help: its replicate
is given up in every group. If a worker dies three times in a row without a run, or three replicates are given up for
the same reason before any is complete, the set-up itself is at fault. Then the experiment ends, because
continuing would only use up the plan.
"""

from __future__ import annotations

import re
from collections import Counter

from esper_ab.journal.fold import History

DEATHS_OUTSIDE = 3  # deaths in a row of one lane's worker without a run
DROPS = 3  # replicates given up for the same reason, with none complete


class Deaths:
    """Counts deaths since the last progress."""

    def __init__(self, death_limit: int) -> None:
        """`death_limit`: the number of deaths at one milestone after which the replicate is given up."""
        self.most = death_limit
        self._by_run: dict[str, tuple[int, int]] = {}  # run -> last recorded milestone, deaths since
        self._by_lane: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._accounts: dict[str, str] = {}  # run -> account of its last death

    def count_in_run(self, run: str, milestone: int) -> bool:
        """Count the death of a worker of `run`; True if the run's replicate is to be given up.

        `milestone`: the run's last recorded milestone. The count restarts when the run has got further since the last
        death.
        """
        milestone_before, deaths = self._by_run.get(run, (milestone, 0))
        deaths = deaths + 1 if milestone_before == milestone else 1
        self._by_run[run] = (milestone, deaths)
        return deaths >= self.most

    def record_account(self, run: str, account: str) -> bool:
        """Store the `account` of a death of `run`; True if it equals the previous one except for numbers."""
        account_before = self._accounts.get(run)
        self._accounts[run] = _mask_numbers(account)
        return self._accounts[run] == account_before

    def count_outside_run(self, lane: str) -> bool:
        """Count a death of the lane's worker outside a run; True if the experiment is to end."""
        self._by_lane[lane] += 1
        return self._by_lane[lane] >= DEATHS_OUTSIDE

    def reset_lane(self, lane: str) -> None:
        """Reset the lane's count, because its worker has made progress."""
        self._by_lane.pop(lane, None)

    def count_given_up(self, reason: str) -> bool:
        """Count a replicate given up; True if too many were given up for this reason.

        Numbers in reasons are ignored.
        """
        masked_reason = _mask_numbers(reason)
        self._reasons[masked_reason] += 1
        return self._reasons[masked_reason] >= DROPS


def _mask_numbers(text: str) -> str:
    return re.sub(r"\d+", "#", text)


def number_complete(history: History) -> int:
    """Return how many replicates have the outcomes of all their runs that were not left out."""
    number = 0
    for block in history.blocks:
        runs = [history.runs[spec.ref.name] for spec in block.runs]
        begun_runs = [run for run in runs if not run.left_out]
        if begun_runs and all(run.evaluation is not None and not run.lost for run in begun_runs):
            number += 1
    return number


def any_complete(history: History) -> bool:
    """True if some replicate is complete."""
    return number_complete(history) > 0


def any_expected(history: History) -> bool:
    """True if the outcome of some run is still to come."""
    return any(run.expected for run in history.runs.values())


def nothing_left(history: History) -> bool:
    """True if runs were given up, none is still expected and no replicate is complete."""
    any_lost = any(run.lost for run in history.runs.values())
    return any_lost and not any_expected(history) and not any_complete(history)
