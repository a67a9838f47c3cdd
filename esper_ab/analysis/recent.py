"""History -> numbers and alarms of a live view. Pure."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from esper_ab.contracts.measures import episode_sizes
from esper_ab.contracts.messages import RunSpec
from esper_ab.contracts.terminal_text import visible_line
from esper_ab.contracts.wording import counted
from esper_ab.journal.events import Incident
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import mean, mean_known, outcome_of

# --- recent ----------------------------------------------------------------------------------------------------------
# History -> numbers of a live view: recent means of training per group, outcomes of complete pairs. Pure.


RECENT = 5  # last episodes that count as recent, of a group's newest run that has any
REWARD_LABEL = "reward (not comparable)"
DIFFERENCE_LABEL = "outcome so far; only a look decides"


class GroupNow(msgspec.Struct, frozen=True, kw_only=True):
    """One group: means over the RECENT last episodes of its newest run that has any; None before the first."""

    group: str
    episodes: int  # recorded, over all runs
    of_episodes: int
    outcome: float | None  # of training
    reward: float | None  # on the scale of the group's own mode
    entropy: float | None
    seconds: float | None  # per episode


class DifferenceNow(msgspec.Struct, frozen=True, kw_only=True):
    """Mean of a - b in the outcome over the complete pairs, unadjusted. No inference."""

    a: str
    b: str
    pairs: int  # complete ones
    difference: float | None  # None before the first


def group_now(history: History, group: str) -> GroupNow:
    """Return the present numbers of `group`."""
    runs = history.of_group(group)
    latest = [run.columns for run in runs if len(run.columns)][-1:]  # the latest replicate that has any

    def recent(name: str) -> float | None:
        return mean_known(value for columns in latest for value in columns.of(name)[-RECENT:])

    return GroupNow(
        group=group, episodes=sum(len(run.columns) for run in runs),
        of_episodes=sum(run.spec.episodes for run in runs if not (run.left_out or run.lost)),
        outcome=recent("outcome"), reward=recent("reward"), entropy=recent("entropy"), seconds=recent("total_s"),
    )


def differences_now(history: History) -> tuple[DifferenceNow, ...]:
    """Return the planned comparisons so far."""
    declared, outcomes = history.design.outcome_over, dict[tuple[str, int], float]()
    for run in history.runs.values():
        if (value := outcome_of(run, declared)) is not None:
            outcomes[run.ref.group_id, run.ref.replicate] = value
    differences = {
        (a, b): [end - outcomes[b, replicate] for (group, replicate), end in outcomes.items()
                 if group == a and (b, replicate) in outcomes]
        for a, b in (contrast.groups for contrast in history.design.comparisons)
    }  # fmt: skip
    return tuple(DifferenceNow(a=a, b=b, pairs=len(d), difference=mean(d)) for (a, b), d in differences.items())


def evaluation_work(spec: RunSpec) -> float:
    """Return the evaluation's work in episodes; a learner plays the first one with greedy actions, too."""
    return float(len(episode_sizes(spec.eval_episodes, spec.n_envs)) + (spec.ref.controller == "ppo"))


def worked_s(history: History) -> float:
    """Return how long the lane that has worked most was at work, in seconds: what went before this view."""
    lanes: defaultdict[str, float] = defaultdict(float)
    for run in history.runs.values():
        evaluated = run.evaluation.timing.total_s if run.evaluation else 0.0
        lanes[run.ref.device] += (run.warm_up_s or 0.0) + sum(run.columns.of("total_s")) + evaluated
    return max(lanes.values(), default=0.0)


# --- alarms ----------------------------------------------------------------------------------------------------------
# Lines for incidents in a live view: a pathology of updates is shown once per group, then counted. Pure.


class Alarms:
    """Formats incidents: `line(entry)` for each, and `counts()` at the end."""

    def __init__(self, before: History | None) -> None:
        """Count the pathologies in `before`, the history before the view opened, without showing them again."""
        self._runs: dict[tuple[str, str], dict[str, None]] = {}  # group and kind -> runs, in order
        self._repeated: set[tuple[str, str]] = set()  # repeated after they were shown
        if before is not None:
            for entry in before.incidents:
                if entry.category == "ppo_pathology":
                    self._runs.setdefault(_key(entry, before), {}).setdefault(entry.run_name)

    def line(self, entry: Incident, history: History) -> str:
        """Return the line to show; "" for a pathology that an earlier run of the group also had."""
        if entry.category == "ppo_pathology":
            befell = self._runs.setdefault(_key(entry, history), {})
            befell.setdefault(entry.run_name)
            if len(befell) > 1:
                self._repeated.add(_key(entry, history))
                return ""
        about = f" {entry.run_name}" if entry.run_name else ""
        return f"! {entry.category}{about}: {visible_line(entry.detail)}"

    def counts(self) -> list[str]:
        """Return one line per group and pathology that affected further runs after the first was shown."""
        return [
            f"! ppo_pathology {group}: {visible_line(kind)} in {counted(len(runs), 'run')}, {next(iter(runs))} first"
            for (group, kind), runs in self._runs.items()
            if (group, kind) in self._repeated
        ]


def _key(entry: Incident, history: History) -> tuple[str, str]:
    return history.runs[entry.run_name].ref.group_id, str(entry.confounder)
