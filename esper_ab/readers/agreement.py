"""Facts that must agree between several experiment directories so that their runs can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from esper_ab.analysis.analyse import facts_of
from esper_ab.analysis.observe import progress_of
from esper_ab.journal.fold import History
from esper_ab.plan.user_code import sources_of_rewards
from esper_ab.settings.circumstances import TRAINER_SOURCE, circumstances_in_words, source_of_trainer

Source = tuple[str, History]  # an experiment directory's name, as the user gave it, and its history


def incomparable(sources: Sequence[Source]) -> tuple[str, ...]:
    """Return a line for each setting or fact that should agree but differs, and for each flaw that prevents comparing.

    Treatments of groups may differ, because the comparison is about them.
    """
    lines = list(differing(sources))
    for source, history in sources:
        lines += _flaws(source, history)
    return tuple(lines)


def differing(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a line for each fact that differs, as in "rng_seed: 0 in one; 1 in other"."""
    facts = {source: _facts(history) for source, history in sources}
    for key in _keys(facts):
        yield from _compare_fact(
            key, {source: recorded_facts.get(key, "not recorded") for source, recorded_facts in facts.items()}
        )
    yield from differing_rewards(sources)


def differing_rewards(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a line for each reward function of the user's whose code differs."""
    rewards = {source: sources_of_rewards(history.plan) for source, history in sources}
    for key in _keys(rewards):  # a reward is compared only between the sources that use it
        hashes = {source: used_hashes[key] for source, used_hashes in rewards.items() if key in used_hashes}
        yield from _compare_fact(key, hashes)


def _keys(facts: Mapping[str, Mapping[str, str]]) -> dict[str, None]:
    """Return the keys of the facts of all sources, each once, in the order in which they first occur."""
    keys: dict[str, None] = {}
    for recorded_facts in facts.values():
        keys |= dict.fromkeys(recorded_facts)
    return keys


def _compare_fact(key: str, values: Mapping[str, str]) -> Iterator[str]:
    """Yield a line that names the sources of each value, if the values (by source) differ."""
    holders: dict[str, list[str]] = {}
    for source, value in values.items():
        holders.setdefault(value, []).append(source)
    if len(holders) > 1:
        yield f"{key}: " + "; ".join(f"{value} in {', '.join(names)}" for value, names in holders.items())


def _facts(history: History) -> dict[str, str]:
    """Return, by key and as text, the facts that must agree so that a replicate means the same in all directories."""
    experiment = history.plan.experiment
    first_event = history.started
    outcome = history.outcome
    facts = {
        "rng_seed": str(experiment.rng_seed),
        "eval_episodes": str(experiment.eval_episodes),
        "outcome": f"{outcome.title} ({outcome.better} is better)",
        "margin": f"{history.design.margin:g}",
    }
    facts |= circumstances_in_words(experiment)
    facts[TRAINER_SOURCE] = trainer_source(history)
    # Two commits may have equal sources; a journal without their hash has the commit only.
    state = "sources" if "sources" in first_event.code else "commit"
    facts["code"] = f"{state} {first_event.code.get(state, 'unknown')}"
    return facts | {f"version of {package}": version for package, version in first_event.versions.items()}


def trainer_source(history: History) -> str:
    """Return what identifies the trainer's files with which runs were trained; "none" without a trainer."""
    mended_sha256 = "" if history.mended is None else history.mended.sha256
    return source_of_trainer(history.plan.trainer, mended_sha256) or "none"


def _flaws(source: str, history: History) -> Iterator[str]:
    """Yield a line for each reason why the groups of an experiment cannot be compared with other runs."""
    if history.plan.experiment.unpaired:
        yield f"unpaired: the groups of {source} share no randomness with each other or with other runs"
    for finding in facts_of(history, progress_of(history)).findings:
        if finding.weight == "blocks" and finding.kind != "aliased":  # positions are never balanced across directories
            yield f"audit of {source}: {finding.sentence}"
