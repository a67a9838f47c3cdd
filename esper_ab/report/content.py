"""Contents of a report before any layout, and verdict.json, the answer for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import msgspec

from esper_ab.analysis.analyse import Analysis, analyse
from esper_ab.analysis.reward_audit import RewardAuditFindings
from esper_ab.contracts.wording import shell_command, visible_json
from esper_ab.design.design import Design, rule
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import RunOutcome
from esper_ab.report.document import State
from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.verdict.comparison import Comparison

# --- content ---------------------------------------------------------------------------------------------------------
# Journal history -> contents of a report, before any layout: the state of the experiment and its conclusions.
#
# Pure. Text, JSON and HTML are renderings of one `Content`, so they cannot disagree.


@dataclass(frozen=True, kw_only=True)
class Content:
    """Everything that a report contains."""

    history: History
    state: State
    analysis: Analysis
    place: str = "EXPERIMENT"  # its directory, as suggested commands name it

    @property
    def design(self) -> Design:
        """The design, declared before the first run."""
        return self.history.design

    @property
    def experiment(self) -> ResolvedExperiment:
        """The settings of the plan."""
        return self.history.plan.experiment

    @property
    def outcomes(self) -> dict[str, RunOutcome]:
        """Outcomes by run, in plan order."""
        return self.analysis.outcomes

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Comparisons in the order of the design."""
        return self.analysis.comparisons

    @property
    def groups(self) -> tuple[str, ...]:
        return self.history.groups

    @property
    def title(self) -> str:
        return f"{against(self.groups)} on {self.experiment.task_title}"

    def of_group(self, group: str) -> tuple[RunOutcome, ...]:
        """Return the outcomes of one group, by replicate."""
        return tuple(self.outcomes[run.ref.name] for run in self.history.of_group(group))


def against(groups: Sequence[str]) -> str:
    """Name the groups that are compared."""
    return (" against " if len(groups) == 2 else ", ").join(groups)


def content(history: History, *, held: bool = True, place: str = "EXPERIMENT") -> Content:
    """Derive a report's contents from a history.

    `held`: if the journal has no end, whether a process still works on the experiment. `place`: the experiment
    directory, for commands.
    """
    return Content(history=history, state=_state(history, place, held=held), analysis=analyse(history), place=place)


def _state(history: History, place: str, *, held: bool) -> State:
    runs = history.runs.values()
    finished = sum(run.evaluation is not None for run in runs)
    left_out, lost = sum(run.left_out for run in runs), sum(run.lost for run in runs)
    started = len(runs) - left_out
    spared = f"; {left_out} more were not needed, because their comparisons were decided" if left_out else ""
    dropped = f"; {lost} {'was' if lost == 1 else 'were'} given up after failures" if lost else ""
    done = f"{finished} of {started} runs are evaluated{dropped}{spared}"
    if history.ended is None and held:
        return State("in progress", f"It is running: {done}.")
    if history.ended is None:
        on = shell_command("resume", place)
        return State("stale", f"Its coordinator died before the end; `{on}` continues it: {done}.")
    status, detail = history.ended.status, history.ended.detail
    if status == "finished" and finished == started:
        return State("finished", f"Finished: all {started} runs are evaluated{spared}.")
    because = f" ({detail})" if detail else ""
    if status == "finished":
        return State("incomplete", f"Ended{because}: {done}.")
    how = "was interrupted" if status == "interrupted" else status
    return State(status, f"The experiment {how}{because}: {done}.")


# --- verdict json ----------------------------------------------------------------------------------------------------
# Content -> verdict.json: the answer for programs. Every key is documented in docs/verdict.md.


VERDICT_SCHEMA = 8
# Keys that are fields of a Comparison, before and after the descriptive statistics.
_FIRST = ("used", "same_records", "estimate", "low", "high", "level", "test", "effect", "plain")
_LAST = (
    "equivalence", "pairs_needed", "pairs_anew", "most_pairs", "smallest_resolvable", "lost", "imputed",
    "limits_with_losses", "findings", "capped_by", "unseen", "inconclusive", "unaudited",
)  # fmt: skip


def render_verdict(content: Content) -> bytes:
    """Render indented JSON, keys in a fixed order, ending in a newline."""
    history, analysis = content.history, content.analysis
    plan = history.plan
    document = {
        "schema": VERDICT_SCHEMA, "experiment": plan.experiment.name, "task": plan.experiment.task, "plan": plan.digest,
        "result": analysis.result_hash, "estimand": plan.estimand, "rule": rule(history.design),
        "design": history.design, "replicates": history.replicates, "state": content.state.word,
        "complete": content.state.complete, "groups": content.groups,
        "comparisons": [comparison_json(item) for item in content.comparisons],
        "audit": analysis.findings, "cross": analysis.cross,
        "learning": analysis.learning, "conduct": analysis.conduct, "evaluation": _noise(analysis.noise),
        "reward_audit": _reward_audit(analysis.reward_audit),
        "runs": [
            {"state": history.runs[name].state, **msgspec.to_builtins(one)} for name, one in content.outcomes.items()
        ],
        "looks": history.looks, "incidents": history.incidents,
        "versions": history.started.versions, "machine": history.started.machine, "code": history.started.code,
    }
    return indented(document) + b"\n"


def indented(document: dict[str, Any]) -> bytes:
    """Return a document as indented JSON for terminals and files, keys in the order in which they are given."""
    data = msgspec.json.format(msgspec.json.encode(msgspec.to_builtins(document)), indent=2)
    return visible_json(data).encode()


def _noise(noise: EvaluationNoise | None) -> dict[str, Any] | None:
    if noise is None:
        return None
    eval_episodes = noise.next_eval_episodes
    return {
        **msgspec.to_builtins(noise.components), "cost_share": noise.cost_share,
        "training_episode_s": noise.training_episode_s, "evaluation_episode_s": noise.evaluation_episode_s,
        "next_eval_episodes": eval_episodes, "next_variance": noise.variance_times(eval_episodes),
        "next_cost": noise.cost_times(eval_episodes),
    }


def _reward_audit(found: RewardAuditFindings | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "digest": found.reward_audit.digest, "best_of": {n: float(found.own_curve[n - 1]) for n in found.shown_n},
        "rewards": [
            {
                "reward": reward.name, "best_of": {n: float(reward.curve[n - 1]) for n in found.shown_n},
                "regret": reward.regret, "rank_correlation": reward.rank_correlation,
                "favourite": found.behaviours[reward.favourite].name,
                "worst_pair": reward.pairs[0].loss if reward.pairs else 0.0, "distance": reward.distance,
                "spread": reward.spread, "largest": reward.largest, "half_paid": reward.half_paid,
                "on_last_step": reward.on_last_step,
                "found": None if reward.found is None else fmean(reward.found.behaviour.held_out_accuracy),
            }
            for reward in found.rewards
        ],
    }


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return the object of one comparison."""
    question, course = comparison.question, comparison.course
    return {
        "a": question.a, "b": question.b, "verdict": comparison.verdict, "headline": comparison.headline,
        "sentence": comparison.sentence, "rule": comparison.rule, "caveats": comparison.caveats,
        "warnings": comparison.warnings, "scope": question.scope, "alpha": question.alpha,
        "margin": question.design.margin, "planned": question.planned,
        "decision": course.decision, "decided_at": course.decided_at, "finished": course.finished,
        **{key: getattr(comparison, key) for key in _FIRST}, "level": str(comparison.level),
        "simultaneous_low": comparison.simultaneous[0], "simultaneous_high": comparison.simultaneous[1],
        **comparison.descriptive, **{key: getattr(comparison, key) for key in _LAST},
        "looks": course.looks, "pairs": comparison.pairs, "samples": comparison.samples,
    }
