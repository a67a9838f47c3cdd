"""Pool finished experiments of one plan, on different rng seeds, as one larger experiment. Pure.

The pairs of all experiments are judged by the deciding test of their plan, at one look, so lost runs, audits, caveats
and words are those of any experiment. `stats/pooled_bound.py` says how the looks already taken are paid for. Plans
without a maximum, and extended ones, are judged by the anytime-valid t over all pairs, which needs no such correction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from esper_ab.analysis.analyse import facts_of
from esper_ab.analysis.baseline import BASELINE, joined_baseline_findings
from esper_ab.analysis.guarded_measures import guarded_rows
from esper_ab.analysis.observe import progress_of, rows_of, scale_of
from esper_ab.design.design import Boundary, Contrast, Design
from esper_ab.design.guardrails import Guardrails
from esper_ab.design.non_inferiority import NonInferiority
from esper_ab.journal.fold import History
from esper_ab.stats.distributions import f_sf
from esper_ab.stats.floats import Floats, exact_sum
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pooled_bound import alpha_of_pooling, bound_after_early_stops
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.judge import judge_looks
from esper_ab.verdict.looks import take_looks
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.observations import Facts, Observations
from esper_ab.verdict.runs import Runs

_UNLIKELY = 0.01  # p of equal differences, below which the experiments are said to disagree


@dataclass(frozen=True, kw_only=True)
class JoinedExperiment:
    """One of several experiments of the same question."""

    name: str  # of its directory
    history: History
    names: Mapping[str, str]  # its own name of a group -> the name in the joint answer


@dataclass(frozen=True, kw_only=True)
class PooledComparison:
    """The answer to one comparison from all pooled experiments together."""

    comparison: Comparison
    experiments: int
    planned_pairs: int  # that the experiments would have had without early stops
    means: tuple[float, ...]  # of the differences, per experiment
    disagreement: float | None  # p of equal means (one-way analysis of variance); None if it cannot be computed

    @property
    def saved_pairs(self) -> int:
        """Pairs that early stops saved."""
        return self.planned_pairs - len(self.comparison.pairs)

    @property
    def disagrees(self) -> bool:
        """True if the experiments differ by more than their seeds explain."""
        return self.disagreement is not None and self.disagreement < _UNLIKELY


def pool(experiments: Sequence[JoinedExperiment], contrasts: Sequence[Contrast]) -> tuple[PooledComparison, ...]:
    """Pool the experiments, in the order of their rng seeds, in each of `contrasts`, which share alpha."""
    in_order = sorted(experiments, key=lambda item: item.history.plan.experiment.rng_seed)
    facts = [facts_of(item.history, progress_of(item.history)) for item in in_order]
    return tuple(_pooled(in_order, facts, contrast, len(contrasts)) for contrast in contrasts)


def _pooled(
    experiments: Sequence[JoinedExperiment], facts: Sequence[Facts], contrast: Contrast, shares: int
) -> PooledComparison:
    """Pool one contrast, which gets the `shares`-th part of alpha."""
    collected_runs = _collect(experiments, contrast)
    design = _pooled_design(experiments, contrast, shares, collected_runs)
    plan = AnalysisPlan(
        groups=contrast.groups, replicates=collected_runs.replicates, scales=(scale_of(design),), design=design
    )
    observations = Observations(
        source="",
        pair_column="replicate",
        rows=collected_runs.runs,
        facts={"": joined_facts(experiments, facts)},
        repeatable=True,
        guardrails=collected_runs.guardrails,
    )
    answer = judge_looks(plan, observations, take_looks(plan, observations), bootstrap_seed(experiments))
    (comparison,) = answer.comparisons
    differences = _split(comparison.pairs.differences, collected_runs.sizes)
    return PooledComparison(
        comparison=comparison,
        experiments=len(experiments),
        planned_pairs=collected_runs.planned_pairs,
        means=means_of(differences),
        disagreement=disagreement(differences),
    )


@dataclass(frozen=True, kw_only=True)
class _CollectedRuns:
    """The runs of one comparison in all experiments, one experiment after the other."""

    runs: Runs
    guardrails: tuple[Runs, ...]  # the same runs with the measure of each guardrail
    replicates: tuple[str, ...]
    sizes: tuple[int, ...]  # pairs of each experiment
    planned_pairs: int  # that there would be without early stops

    @property
    def pairs(self) -> int:
        """Pairs of all experiments."""
        return sum(self.sizes)


def _collect(experiments: Sequence[JoinedExperiment], contrast: Contrast) -> _CollectedRuns:
    """Collect the runs of both groups in each replicate that has both, and number replicates by their experiment."""
    rows: list[Observation] = []
    replicates: list[str] = []
    sizes: list[int] = []
    planned_pairs = 0
    guarded_values: list[list[Floats]] = []  # by experiment and guardrail
    for number, item in enumerate(experiments):
        of_experiment = _rows_by_replicate(item, contrast)
        lost_pairs = sum(any(row.value is None for row in pair) for pair in of_experiment.values())
        planned_pairs += len(item.history.blocks) - lost_pairs
        sizes.append(len(of_experiment) - lost_pairs)
        own_rows = []
        for replicate, pair in of_experiment.items():
            replicates.append(f"{number}/{replicate}")
            own_rows += [msgspec.structs.replace(row, replicate=replicates[-1]) for row in pair]
        rows += own_rows
        guarded_values.append(_guarded_values(item.history, Runs.of(own_rows)))
    runs = Runs.of(rows)
    by_guardrail = [np.concatenate(values) for values in zip(*guarded_values, strict=True)]
    return _CollectedRuns(
        runs=runs,
        guardrails=tuple(replace(runs, value=values) for values in by_guardrail),
        replicates=tuple(replicates),
        sizes=tuple(sizes),
        planned_pairs=planned_pairs,
    )


def _guarded_values(history: History, runs: Runs) -> list[Floats]:
    """Return the measure of each guardrail for every run of an experiment."""
    guards = history.design.guards
    if guards is None:
        return []
    return [guarded_rows(history, runs, guardrail).value for guardrail in guards.items]


def _rows_by_replicate(item: JoinedExperiment, contrast: Contrast) -> dict[str, list[Observation]]:
    """Return the runs of both groups in each replicate that has both, finished or lost, under their pooled names."""
    by_replicate: dict[str, list[Observation]] = {}
    for row in rows_of(item.history):
        group = item.names[row.group]
        if group in contrast.groups:
            by_replicate.setdefault(row.replicate, []).append(msgspec.structs.replace(row, group=group))
    return {replicate: pair for replicate, pair in by_replicate.items() if len(pair) == len(contrast.groups)}


def _pooled_design(
    experiments: Sequence[JoinedExperiment], contrast: Contrast, shares: int, collected_runs: _CollectedRuns
) -> Design:
    """Return the design of one comparison over all experiments: one look at all replicates."""
    designs = [item.history.design for item in experiments]
    design = designs[0]
    replicates = len(collected_runs.replicates)
    # The variance of one comparison has nothing to be moderated with.
    common = {"comparisons": (contrast,), "early_stop": True, "futility": None, "variances": UNSET}
    if any(planned_design.anytime_after is not None for planned_design in designs):
        evidence = max(planned_design.evidence for planned_design in designs) * shares
        return msgspec.structs.replace(
            design,
            **common,
            not_worse=_claimed(design, ()),
            alpha=design.alpha / shares,
            looks=(),
            boundaries=(),
            anytime_after=replicates - 1,
            evidence=evidence,
        )
    alpha = alpha_of_pooling(design.alpha, len(experiments)) / shares
    bound = 0.0
    one_sided_bound = 0.0
    pairs = collected_runs.pairs
    if pairs >= LEAST_PAIRS:
        df = pairs - (design.positions if design.adjusted else 1)
        bound = bound_after_early_stops(alpha, df, pairs, collected_runs.planned_pairs)
        one_sided_bound = bound_after_early_stops(2.0 * alpha, df, pairs, collected_runs.planned_pairs) / 2.0
    return msgspec.structs.replace(
        design,
        **common,
        boundaries=(Boundary(open=1, alpha=alpha, nominal_p=(bound,)),) if bound else (),
        not_worse=_claimed(design, (one_sided_bound,)),
        guardrails=_guarded(design, bound / 2.0),
        alpha=alpha,
        looks=(replicates,),
        evidence=1.0 / alpha,
    )


def _claimed(design: Design, one_sided_bounds: tuple[float, ...]) -> NonInferiority | UnsetType:
    """Return the bounds of the claim that a group is not worse, for a design that asks for it."""
    return UNSET if design.non_inferiority is None else NonInferiority(nominal_p=one_sided_bounds)


def _guarded(design: Design, one_sided_bound: float) -> Guardrails | UnsetType:
    """Return the guardrails of a design that has some, at the bound of BETTER on one side."""
    if design.guards is None:
        return UNSET
    return Guardrails(items=design.guards.items, nominal_p=(one_sided_bound,))


def joined_facts(experiments: Sequence[JoinedExperiment], facts: Sequence[Facts]) -> Facts:
    """Return the facts that hold for all experiments, and the findings of each with its name.

    Whether groups are apart from a baseline is asked over all pairs instead.
    """
    histories = [item.history for item in experiments]
    findings = list(joined_baseline_findings(histories, [item.names for item in experiments]))
    same_settings = []
    coarse = []
    other_code = []
    same_records = []
    for item, own_facts in zip(experiments, facts, strict=True):
        for finding in own_facts.findings:
            if finding.kind == BASELINE:
                continue
            groups = tuple(item.names[group] for group in finding.groups)
            sentence = f"{item.name}: {finding.sentence}"
            findings.append(msgspec.structs.replace(finding, groups=groups, sentence=sentence))
        same_settings.append(_both_ways(own_facts.same_settings, item.names))
        coarse.append(_both_ways(own_facts.coarse, item.names))
        other_code.append(_both_ways(own_facts.other_code, item.names))
        same_records.append(_both_ways(own_facts.same_records, item.names))
    return msgspec.structs.replace(
        facts[0],
        findings=tuple(findings),
        paired=all(own_facts.paired for own_facts in facts),
        same_settings=frozenset.intersection(*same_settings),
        coarse=frozenset.union(*coarse),
        other_code=frozenset.union(*other_code),
        same_records=frozenset.intersection(*same_records),
    )


def _both_ways(pairs: frozenset[tuple[str, str]], names: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return the pairs of groups under their pooled names, in both orders."""
    named_pairs = [(names[a], names[b]) for a, b in pairs]
    return frozenset((*named_pairs, *((b, a) for a, b in named_pairs)))


def _split(differences: Floats, sizes: Sequence[int]) -> list[Floats]:
    """Return the differences of each experiment."""
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    return [differences[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def means_of(parts: Sequence[Floats]) -> tuple[float, ...]:
    """Return the mean of each part that has a difference."""
    return tuple(exact_sum(part) / part.size for part in parts if part.size)


def disagreement(parts: Sequence[Floats]) -> float | None:
    """Return the p of equal means in all parts by one-way analysis of variance; None if nothing varies within them."""
    parts = [part for part in parts if part.size]
    total = sum(part.size for part in parts)
    df = total - len(parts)
    if len(parts) < 2 or df < 1:
        return None
    means = [exact_sum(part) / part.size for part in parts]
    error_variance = sum(exact_sum((part - mean) ** 2) for part, mean in zip(parts, means, strict=True)) / df
    grand_mean = sum(exact_sum(part) for part in parts) / total
    squares_of_means = sum(part.size * (mean - grand_mean) ** 2 for part, mean in zip(parts, means, strict=True))
    if error_variance <= 0.0:
        return None
    return float(f_sf(squares_of_means / (len(parts) - 1) / error_variance, len(parts) - 1, df))


def bootstrap_seed(experiments: Iterable[JoinedExperiment]) -> int:
    """Return the seed of the bootstraps, which the plans' digests and rng seeds determine."""
    return int(hashlib.sha256("".join(_identities(experiments)).encode()).hexdigest()[:32], 16)


def _identities(experiments: Iterable[JoinedExperiment]) -> Iterator[str]:
    for item in experiments:
        yield f"{item.history.plan.digest} {item.history.plan.experiment.rng_seed}\n"
