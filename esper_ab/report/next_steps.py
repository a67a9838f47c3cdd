"""The next steps after an experiment, by its state and its verdicts, with the command for each. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from esper_ab.analysis.baseline import missing_baseline
from esper_ab.analysis.learning import unsettled
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.wording import listed
from esper_ab.design.design import default_looks
from esper_ab.plan.budget import ENOUGH_EPISODES, enough_episodes
from esper_ab.report.content import Content
from esper_ab.report.document import Item
from esper_ab.report.kind import tables_of
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.identical_words import identical_step
from esper_ab.verdict.inconclusive import Inconclusive
from esper_ab.verdict.sample_size import extendable
from esper_ab.verdict.verdict import DIFFERENT, SMALL, Verdict

_MOST_PAIRS = 1000  # more are no advice
_LONGER = 4  # times as many episodes
_DIVERGING = (
    "Or, if a setting just diverges, let such a run report NaN as its outcome, and launch with --outcome-range: the "
    "NaN counts as the worse end."
)
_SUFFIXES = ("again", "baseline", "fixed", "larger", "longer", "training", "whole")  # of the names of next experiments


def next_steps(content: Content) -> tuple[Item, ...]:
    """Return the next steps, the most useful one first."""
    word = content.state.word
    place = content.place
    if word == "in progress":
        return (Item("It is still running; follow it.", shell_command("status", place, "--follow")),)
    if word in ("stale", "interrupted", "failed"):
        if any(run.expected for run in content.history.runs.values()):
            return (Item(_how_to_resume(content), shell_command("resume", place)),)
        return (Item("No seed is left: fix what failed, then launch it again.", _relaunch_command(content, "fixed")),)
    return tuple(_steps_after_end(content))


def _how_to_resume(content: Content) -> str:
    """Return what to do before and with an experiment that has not finished."""
    if not content.history.plan.experiment.trainer:
        return "Resume it from its checkpoints."
    if content.state.word != "failed":
        return "Resume it."
    if len(content.groups) > 1 and len(_failing_groups(content)) == 1:
        return f"Fix what failed, then resume it. {_DIVERGING}"
    return "Fix what failed, then resume it."


def _failing_groups(content: Content) -> set[str]:
    """Return the groups with runs in which a worker failed."""
    runs = content.history.runs
    failures = [entry for entry in content.history.incidents if entry.category in ("worker_death", "hung_worker")]
    return {runs[entry.run_name].ref.group_id for entry in failures if entry.run_name in runs}


def _steps_after_end(content: Content) -> Iterator[Item]:
    """Yield the next steps after an experiment that has ended."""
    if not content.comparisons:
        compare_command = shell_command("compare", content.place, "OTHER")
        yield Item("To compare it, train another group alone with the same settings and seeds:", compare_command)
        return
    verdicts = {item.verdict for item in content.comparisons}
    yield from _read_together(content)
    if Verdict.BLOCKED in verdicts:
        yield Item("Fix what the audit found, then launch it again.", _relaunch_command(content, "fixed"))
    if Verdict.NO_INFERENCE in verdicts:
        yield from _enough_pairs(content)
    if Verdict.INCONCLUSIVE in verdicts:
        yield from _more_pairs(content)
    if verdicts & DIFFERENT and not content.history.plan.earlier:
        yield Item("Before you rely on it, replicate it with fresh seeds.", _relaunch_command(content, "again"))
    yield from _suggest_baseline(content)
    if Verdict.NOT_WORSE in verdicts:
        yield Item("Use the group that is not worse if it is cheaper or simpler.")
    if Verdict.EQUIVALENT in verdicts:
        yield Item("Use whichever of the equivalent groups is cheaper or simpler.")
    without_effect = [
        item.question
        for item in content.comparisons
        if item.verdict is Verdict.IDENTICAL and not item.question.same_computation
    ]
    if without_effect:
        yield _train_longer(content, identical_step(without_effect[0]))
    elif verdicts == {Verdict.IDENTICAL}:
        yield Item("Nothing to compare: the settings make the same computation.")


def _suggest_baseline(content: Content) -> Iterator[Item]:
    """Yield the step that shows whether groups learned anything, if a difference is called small and nothing tells."""
    controller = missing_baseline(content.history)
    small_ones = [item for item in content.comparisons if item.verdict in SMALL | {Verdict.NOT_WORSE}]
    if controller and small_ones:
        flags = ["--groups", ",".join((*content.groups, controller))]
        flags += ["--untested", ",".join((*content.experiment.untested, controller))]
        if content.experiment.placement == "spread":
            flags += ["--placement", "auto"]  # the devices in the file may be too few for one more group
        yield Item(
            "Whether these groups learned anything is not known, and groups that learn nothing would be as close: "
            f"launch it again with a group {controller}.",
            _relaunch_command(content, "baseline", *flags),
        )


def _read_together(content: Content) -> Iterator[Item]:
    """Yield the step after a replication: read it together with the experiments with which it is pooled."""
    names = [earlier.name for earlier in content.history.plan.earlier]
    if names:
        parent, slash, _ = content.place.rpartition("/")
        places = [f"{parent}{slash}{name}" for name in names]
        yield Item(
            f"Read it together with {listed(names)}, which it replicates.",
            shell_command("compare", *places, content.place),
        )


def _enough_pairs(content: Content) -> Iterator[Item]:
    """Yield the steps after an experiment with too few pairs for any verdict."""
    failed_runs = [name for name, run in content.history.runs.items() if run.failed]
    if failed_runs:
        yield Item(
            f"Fix what made {failed_runs[0]} fail; its log:", shell_command("logs", content.place, failed_runs[0])
        )
    yield Item(
        f"Launch it again with {LEAST_PAIRS} seeds or more; twice as many are better.",
        _relaunch_command(content, "larger", replicates=2 * LEAST_PAIRS),
    )


def _more_pairs(content: Content) -> Iterator[Item]:
    """Yield the steps that would decide the comparison that is hardest to decide."""
    design = content.design
    open_ones = [item for item in content.comparisons if item.verdict is Verdict.INCONCLUSIVE]
    if any(item.capped_by for item in open_ones):
        yield Item("First fix what limits the verdict: more pairs alone do not help.")
        return
    if all(item.inconclusive is Inconclusive.FUTILE for item in open_ones):
        replicates = max(content.history.replicates, LEAST_EQUIVALENCE_PAIRS)
        yield Item(
            f"A difference of {design.margin_words} had become unlikely. To show that no difference is as large, "
            "launch it again without --futility; to find a smaller difference, name a smaller margin (--margin).",
            _relaunch_command(content, "whole", "--futility", "0", replicates=replicates),
        )
        return
    small_counts = [item.used for item in open_ones if item.small_from]
    if small_counts:
        # Allow for losing as many pairs again.
        replicates = content.history.replicates + max(0, LEAST_EQUIVALENCE_PAIRS - min(small_counts))
        claim = "a difference may be called smaller than the margin"
        if design.non_inferiority is not None:
            claim = "a group may be called not worse"
        yield Item(
            f"With {LEAST_EQUIVALENCE_PAIRS} pairs {claim}.",
            _relaunch_command(content, "larger", replicates=replicates),
        )
        return
    constants = [item.constant for item in open_ones if item.constant and not item.unmoved]
    if constants:
        yield Item(
            f"{constants[0]}, and would be in further pairs: judge that amount by your margin of {design.margin_words}."
        )
    elif any(item.degenerate for item in open_ones):
        yield from _more_spread(content)
    needed_pairs = [pairs for pairs in map(_pairs_to_detect, open_ones) if pairs is not None]
    if needed_pairs:
        yield from _more_training(content)
        yield from _enough_for_the_margin(content, needed_pairs)


def _enough_for_the_margin(content: Content, needed_pairs: list[tuple[int | None, int]]) -> Iterator[Item]:
    """Yield the steps to a plan that can detect the margin.

    `needed_pairs`: what `_pairs_to_detect` returns for each open comparison.
    """
    margin = content.design.margin_words
    extension_pairs, new_plan_pairs = max(needed_pairs, key=_pairs_if_continued)
    least_pairs = new_plan_pairs if extension_pairs is None else min(extension_pairs, new_plan_pairs)
    claims_not_worse = content.design.non_inferiority is not None
    purpose = f"to detect a difference of {margin} with 80 % power"
    if claims_not_worse:
        purpose = f"to show with 80 % power that groups which do not differ are not worse by {margin} or more"
    if least_pairs > _MOST_PAIRS:
        yield Item(
            f"More than {_MOST_PAIRS} pairs would be needed {purpose}: name a larger margin (--margin), train longer, "
            "or evaluate more episodes."
        )
    elif least_pairs <= content.history.replicates and claims_not_worse:
        yield Item(f"As many pairs suffice {purpose}: the group may well be worse by that much.")
    elif least_pairs <= content.history.replicates:
        yield Item(
            f"These pairs can detect {margin}; to detect a smaller difference, name a smaller "
            "margin (--margin) and plan more pairs."
        )
    else:
        yield from _extend_or_launch(content, extension_pairs, new_plan_pairs, purpose)


def _pairs_if_continued(pairs: tuple[int | None, int]) -> int:
    """Return the pairs needed with an extension or, if there can be none, in a new plan."""
    extension_pairs, new_plan_pairs = pairs
    if extension_pairs is None:
        return new_plan_pairs
    return extension_pairs


def _more_training(content: Content) -> Iterator[Item]:
    """Yield a step if longer training would help more than further pairs; a budget known to suffice comes first."""
    unsettled_groups = unsettled(content.design, content.analysis.learning)
    enough_count = enough_episodes(content.experiment)
    if enough_count is not None:
        reason = f"on {content.experiment.task}, seeds disagree less from about {ENOUGH_EPISODES} training episodes on"
        yield _train_longer(content, f"Train longer before more pairs: {reason}.", enough_count)
    elif unsettled_groups:
        policies = " and ".join(unsettled_groups)
        yield _train_longer(content, f"Train longer before more pairs: the policies of {policies} have not settled.")


def _train_longer(content: Content, reason: str, episodes: int | None = None) -> Item:
    if episodes is None:
        episodes = _LONGER * content.experiment.episodes
    return Item(reason, _relaunch_command(content, "longer", "--episodes", str(episodes)))


def _more_spread(content: Content) -> Iterator[Item]:
    """If most pairs have equal outcomes, yield a step that makes runs differ. A run of one episode has no curve."""
    curve = content.experiment.episodes > 1
    training_words = "after less training (--episodes) or " if curve else ""
    training = ""
    command = ""
    if curve and content.design.outcome_over == "evaluation":
        training = ", or compare training itself"
        command = _relaunch_command(content, "training", "--outcome-over", "curve-mean")
    yield Item(
        "Most pairs have equal outcomes, and so would most further pairs: compare "
        f"{training_words}on {tables_of(content).harder}{training}.",
        command,
    )


def _extend_or_launch(
    content: Content, extension_pairs: int | None, new_plan_pairs: int, purpose: str
) -> Iterator[Item]:
    """Yield the extension and, if a new plan needs fewer pairs in all, that plan; whichever trains fewer is first.

    `extension_pairs`: the pairs needed with an extension; None if the experiment cannot be extended.
    """
    launch = _relaunch_command(content, "larger", replicates=new_plan_pairs)
    new_launch = Item(f"Launch it again with {new_plan_pairs} seeds {purpose}.", launch)
    if extension_pairs is None:
        yield new_launch
        return
    extend = shell_command("resume", content.place, "--seeds", str(extension_pairs))
    if new_plan_pairs < extension_pairs - content.history.replicates:
        yield new_launch
        yield Item(f"Or extend it to {extension_pairs} seeds, under a stricter rule.", extend)
        return
    yield Item(f"Extend it to {extension_pairs} seeds {purpose}.", extend)
    if new_plan_pairs < extension_pairs:
        yield Item(f"Or launch it again with {new_plan_pairs} seeds, under a less strict rule.", launch)


def _pairs_to_detect(item: Comparison) -> tuple[int | None, int] | None:
    """Return how many pairs an extension (None if impossible) and a new plan would need."""
    if item.pairs_needed is None or item.inconclusive is Inconclusive.FUTILE:
        return None
    pairs_needed = item.pairs_anew or item.pairs_needed
    if not extendable(item.question, item.progress):
        return None, pairs_needed.pairs
    return item.pairs_needed.pairs, pairs_needed.pairs


def _relaunch_command(content: Content, suffix: str, *flags: str, replicates: int | None = None) -> str:
    """Write the command for the same settings with other `flags`; named looks are replaced if the seeds change.

    The new plan has other randomness: runs whose outcomes led to it must not count in it.
    """
    experiment = content.experiment
    flags = (*flags, "--rng-seed", str(experiment.rng_seed + 1))
    if replicates is not None:
        flags = ("--seeds", str(replicates), *flags)
        if experiment.looks:
            looks = default_looks(replicates, experiment.claim) if len(experiment.looks) > 1 else (replicates,)
            flags = (*flags, "--looks", ",".join(map(str, looks)))
    config = f"{content.place}/experiment.toml"
    return shell_command("launch", config, *flags, "--name", _next_name(experiment.name, suffix))


def _next_name(name: str, suffix: str) -> str:
    """Return the name with a suffix that replaces an earlier one and counts on: x, x-longer, x-larger-2, x-longer-3."""
    suffixes = "|".join(_SUFFIXES)
    name_match = re.fullmatch(rf"(.+)-(?:{suffixes})(?:-(\d+))?", name)
    if name_match is None:
        return f"{name}-{suffix}"
    count = int(name_match[2] or 1)
    return f"{name_match[1]}-{suffix}-{count + 1}"
