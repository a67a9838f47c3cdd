"""Experiment directories that ask one question on different rng seeds: the same groups, task and outcome.

If their plans are the same as well, they can be pooled as one larger experiment. Runs of different rng seeds share no
randomness, so no run of one forms a pair with one of another. Experiments with the same rng seed repeat the same runs,
which count once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from esper_ab.analysis.pooling import JoinedExperiment
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import listed
from esper_ab.design.design import Contrast, rule
from esper_ab.journal.fold import History
from esper_ab.plan.plan import EarlierExperiment
from esper_ab.plan.pooling import compared_pairs, fixed_rule
from esper_ab.readers.agreement import Source, differing, differing_rewards, trainer_source
from esper_ab.readers.command_code import CommandCode, command_code
from esper_ab.settings.circumstances import TRAINER_SOURCE, Treatment, circumstances_in_words, treatment_of
from esper_ab.settings.differences import CODE, flat
from esper_ab.settings.experiment import ResolvedExperiment

_ARITHMETIC = "arithmetic"  # does not change the question
_DIFFERENT = "these experiments ask different questions, so nothing joins them; leave out those that differ in:"


@dataclass(frozen=True, kw_only=True)
class Relation:
    """How experiments that ask the same question are related."""

    one_plan: bool  # they differ in nothing but the rng seed, code and versions
    declared: bool  # the newest plan names all others as those with which it is pooled, and no further ones
    missing: tuple[str, ...]  # experiments that a plan names as pooled with it, but that were not given
    repeated: tuple[str, ...]  # a sentence for each experiment that repeats the runs of another, and so is left out
    differs: tuple[str, ...]  # a line for each fact that differs besides the rng seed
    command_code: CommandCode


@dataclass(frozen=True, kw_only=True)
class SameQuestion(Relation):
    """Experiments that ask the same question, each with its own rng seed."""

    experiments: tuple[JoinedExperiment, ...]

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The comparisons that all experiments planned, as the first one names them."""
        first_experiment, *others = self.experiments
        planned_pairs = [compared_pairs(other.history.plan, other.names) for other in others]
        return tuple(
            contrast
            for contrast in first_experiment.history.design.comparisons
            if all(frozenset(contrast.groups) in pairs for pairs in planned_pairs)
        )


def on_other_seeds(sources: Sequence[Source]) -> bool:
    """True if the sources have at least two rng seeds, so that their runs cannot form pairs."""
    return len({history.plan.experiment.rng_seed for _, history in sources}) > 1


def same_question(sources: Sequence[Source]) -> SameQuestion:
    """Return what the sources have in common; UsageError, with one line per difference, if they ask different things.

    The sources have at least two rng seeds. They are called by the names of their folders, or by their paths if two
    folders have one name.
    """
    names = called_by_folder([name for name, _ in sources])
    sources = [(name, history) for name, (_, history) in zip(names, sources, strict=True)]
    refuse_different(different_questions(sources))
    kept_names, repetitions = in_order(
        [
            Repeatable(
                name=name,
                rng_seed=_rng_seed(history),
                finished_runs=finished_runs(history),
                pooling=_declared_pooling(history),
            )
            for name, history in sources
        ]
    )
    by_name = dict(sources)
    return joined([(name, by_name[name]) for name in kept_names], repetitions)


def refuse_different(lines: Iterable[str]) -> None:
    """Raise UsageError if there is a line on a difference of questions."""
    listed_lines = tuple(lines)
    if listed_lines:
        raise UsageError("\n  ".join((_DIFFERENT, *listed_lines)))


def joined(sources: Sequence[Source], repetitions: tuple[str, ...] = ()) -> SameQuestion:
    """Return what sources of one question, each with its own rng seed, have in common; the first one names groups."""
    first_history = sources[0][1]
    experiments = tuple(
        JoinedExperiment(name=name, history=history, names=_map_names(first_history, history))
        for name, history in sources
    )
    rules = [(fixed_rule(item.history.plan, item.names), trainer_source(item.history)) for item in experiments]
    one_plan = all(rule == rules[0] for rule in rules)
    poolings = [_declared_pooling(history) for _, history in sources]
    missing_names = find_missing(poolings)
    return SameQuestion(
        experiments=experiments,
        one_plan=one_plan,
        declared=one_plan and not missing_names and is_declared(poolings),
        missing=missing_names,
        repeated=repetitions,
        differs=(*_differing_rules(sources), *_differing_facts(sources)),
        command_code=command_code({name: (history,) for name, history in sources}),
    )


def called_by_folder(paths: Sequence[str]) -> Sequence[str]:
    """Return the names of the folders, or their paths if two folders have one name."""
    names = [path.rstrip("/").rpartition("/")[2] for path in paths]
    return paths if len(set(names)) < len(names) else names


def different_questions(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a line for each part of the question that differs."""
    questions = {name: _question(history) for name, history in sources}
    for key in next(iter(questions.values())):
        line = line_of(key, {name: question[key] for name, question in questions.items()})
        if line:
            yield line
    yield from _different_groups(sources)
    # A path does not identify the code of a reward function, whose hash `differing` compares.
    yield from differing_rewards(sources)


def line_of(key: str, values: Mapping[str, str]) -> str:
    """Return a line that names the sources of each value, by source; "" if all are equal."""
    holders: dict[str, list[str]] = {}
    for name, value in values.items():
        holders.setdefault(value, []).append(name)
    if len(holders) < 2:
        return ""
    return f"{key}: " + "; ".join(f"{value} in {', '.join(names)}" for value, names in holders.items())


def _question(history: History) -> dict[str, str]:
    """Return the parts of the question in words: what is measured, on what, and after which training."""
    outcome = history.outcome
    circumstances = circumstances_in_words(history.plan.experiment)
    return {
        **{key: words for key, words in circumstances.items() if not key.startswith(_ARITHMETIC)},
        "outcome": outcome.label,
        "unit of the outcome": outcome.unit or "none",
        "direction": f"{outcome.better} is better",
    }


def _different_groups(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a line for each setting or code of a group that differs, or for groups that some sources lack."""
    if len({_treatments_as_json(history) for _, history in sources}) == 1:
        return
    names = {name: ", ".join(sorted(history.groups)) for name, history in sources}
    if line := line_of("groups", names):
        yield line
        return
    for group in sources[0][1].groups:
        tables = {name: _table(history, group) for name, history in sources}
        for key in next(iter(tables.values())):
            if line := line_of(f"{key} of {group}", {name: table[key] for name, table in tables.items()}):
                yield line


def _table(history: History, name: str) -> dict[str, str]:
    """Return the treatment of a group as text by key."""
    experiment = history.plan.experiment
    group = next(group for group in experiment.groups if group.name == name)
    return {CODE: treatment_of(experiment, group).state or "the files as they were", **flat(group)}


def _treatments(history: History) -> dict[str, Treatment]:
    experiment = history.plan.experiment
    return {group.name: treatment_of(experiment, group) for group in experiment.groups}


def _treatments_as_json(history: History) -> tuple[bytes, ...]:
    """Return the treatments of all groups as JSON, whatever the names and the order of the groups."""
    return tuple(sorted(msgspec.json.encode(treatment) for treatment in _treatments(history).values()))


@dataclass(frozen=True, kw_only=True)
class DeclaredPooling:
    """The digest of an experiment's plan, and the experiments with which the plan says that it is pooled."""

    digest: str
    earlier: tuple[EarlierExperiment, ...]


@dataclass(frozen=True, kw_only=True)
class Repeatable:
    """An experiment that may repeat the runs of another, or replicate it."""

    name: str
    rng_seed: int
    finished_runs: int  # over all of its tasks
    pooling: DeclaredPooling


def in_order(experiments: Sequence[Repeatable]) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of those that count, replications after what they replicate, and a line on each of the others.

    Of experiments with one rng seed, the one with most finished runs counts.
    """
    by_seed: dict[int, list[Repeatable]] = {}
    for item in experiments:
        by_seed.setdefault(item.rng_seed, []).append(item)
    kept_experiments = []
    sentences = []
    for rng_seed, repeats in by_seed.items():
        best = max(repeats, key=lambda item: item.finished_runs)
        kept_experiments.append(best)
        others = [item.name for item in repeats if item is not best]
        if others:
            verb = "repeats" if len(others) == 1 else "repeat"
            sentences.append(
                f"{listed(others)} {verb} the runs of {best.name}, with the same rng seed ({rng_seed}): counted once."
            )
    if _replication_comes_first([item.pooling for item in kept_experiments]):
        kept_experiments.sort(key=lambda item: len(item.pooling.earlier))
    return [item.name for item in kept_experiments], tuple(sentences)


def _replication_comes_first(poolings: Sequence[DeclaredPooling]) -> bool:
    """True if an experiment is named before one that it replicates."""
    digests = [pooling.digest for pooling in poolings]
    for place, pooling in enumerate(poolings):
        if any(earlier.digest in digests[place + 1 :] for earlier in pooling.earlier):
            return True
    return False


def finished_runs(history: History) -> int:
    """Return the number of runs that have an outcome."""
    return sum(run.evaluation is not None for run in history.runs.values())


def _declared_pooling(history: History) -> DeclaredPooling:
    return DeclaredPooling(digest=history.plan.digest, earlier=history.plan.earlier)


def _rng_seed(history: History) -> int:
    return history.plan.experiment.rng_seed


def _map_names(first_history: History, history: History) -> dict[str, str]:
    """Return the first experiment's name of each group, which has the same treatment there."""
    treatments = _treatments(first_history)
    free = dict(treatments)
    names: dict[str, str] = {}
    own_treatments = sorted(_treatments(history).items(), key=lambda item: treatments.get(item[0]) != item[1])
    for group, treatment in own_treatments:  # those with the same name and treatment first
        name = _match_name(group, treatment, free)
        names[group] = name
        del free[name]
    return names


def _match_name(group: str, treatment: Treatment, free: Mapping[str, Treatment]) -> str:
    if free.get(group) == treatment:
        return group
    return next(name for name, other_treatment in free.items() if other_treatment == treatment)


def _differing_rules(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a line for each setting of the plan that differs, besides those of the question and the rng seed.

    Plans with equal settings may still differ in the rule, as those of different versions do.
    """
    tables = {name: _settings(history.plan.experiment) for name, history in sources}
    lines = [line_of(key, {name: table[key] for name, table in tables.items()}) for key in next(iter(tables.values()))]
    if not any(lines):
        lines = [line_of("rule", {name: rule(history.plan.design) for name, history in sources})]
    yield from filter(None, lines)


def _settings(experiment: ResolvedExperiment) -> dict[str, str]:
    """Return the settings of a plan as text by key, without those of groups, its name and its rng seed."""
    table = msgspec.to_builtins(experiment)
    for key in ("name", "rng_seed", "groups", "arithmetic"):
        del table[key]
    return {key: msgspec.json.encode(value).decode().strip('"') for key, value in table.items()}


def _differing_facts(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a line for each other arithmetic, code or package version."""
    if line := line_of(TRAINER_SOURCE, {name: trainer_source(history) for name, history in sources}):
        yield line
    for line in differing(sources):
        if line.startswith(("arithmetic", "code: ", "version of ")):
            yield line


def find_missing(poolings: Sequence[DeclaredPooling]) -> tuple[str, ...]:
    """Name the experiments with which a plan says that it is pooled, but that are not among these."""
    digests = {pooling.digest for pooling in poolings}
    return tuple(
        dict.fromkeys(
            earlier.name for pooling in poolings for earlier in pooling.earlier if earlier.digest not in digests
        )
    )


def is_declared(poolings: Sequence[DeclaredPooling]) -> bool:
    """True if one plan names all others as those with which it is pooled."""
    digests = {pooling.digest for pooling in poolings}
    return any({pooling.digest, *(earlier.digest for earlier in pooling.earlier)} == digests for pooling in poolings)
