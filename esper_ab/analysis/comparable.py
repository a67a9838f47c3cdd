"""Checks whether groups of several experiment directories can be compared; one line per objection. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from esper_ab.analysis.audit import audit
from esper_ab.analysis.pairs import all_pairs
from esper_ab.design.calibration_file import circumstances_of
from esper_ab.journal.fold import History


@dataclass(frozen=True, kw_only=True)
class Source:
    """One experiment directory."""

    name: str  # as given by the user
    history: History


def incomparable(sources: Sequence[Source]) -> tuple[str, ...]:
    """Return one line per setting or fact that must agree and does not, and per experiment unfit for comparison.

    Settings of groups may differ: they are what is compared.
    """
    return (*_differing(sources), *(line for source in sources for line in _unfit(source)))


def _differing(sources: Sequence[Source]) -> Iterator[str]:
    facts = {source.name: _facts(source) for source in sources}
    rewards = {source.name: _rewards(source) for source in sources}
    for key in dict.fromkeys(key for found in facts.values() for key in found):
        yield from _line(key, {name: found.get(key, "not recorded") for name, found in facts.items()})
    for key in dict.fromkeys(key for found in rewards.values() for key in found):  # only where it is used
        yield from _line(key, {name: found[key] for name, found in rewards.items() if key in found})


def _line(key: str, values: Mapping[str, str]) -> Iterator[str]:
    holders: dict[str, list[str]] = {}
    for name, value in values.items():
        holders.setdefault(value, []).append(name)
    if len(holders) > 1:
        yield f"{key}: " + "; ".join(f"{value} in {', '.join(names)}" for value, names in holders.items())


def _facts(source: Source) -> dict[str, str]:
    """Return, as text by key, what must agree for a replicate to mean the same in all directories."""
    experiment, started = source.history.plan.experiment, source.history.started
    outcome = source.history.outcome
    found = {
        "rng_seed": str(experiment.rng_seed), "eval_hosts": str(experiment.eval_hosts),
        "outcome": f"{outcome.title} ({outcome.better} is better)",
    }
    for key, text in circumstances_of(experiment).items():
        value = msgspec.json.decode(text)
        if isinstance(value, dict):
            found |= {f"{key}.{below}": _text(one) for below, one in value.items()}
        else:
            found[key] = _text(value)
    # Two commits may have equal sources; a journal without their hash has the commit only.
    state = "sources" if "sources" in started.code else "commit"
    found["code"] = f"{state} {started.code.get(state, 'unknown')}"
    return found | {f"version of {package}": version for package, version in started.versions.items()}


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _rewards(source: Source) -> dict[str, str]:
    """Return the hashes of the user's reward functions, since a path does not identify their code."""
    specs = (spec for block in source.history.plan.blocks for spec in block.runs)
    return {f"source of {code.reference}": code.sha256 or "unknown" for spec in specs for code in spec.reward_code}


def _unfit(source: Source) -> Iterator[str]:
    experiment = source.history.plan.experiment
    if experiment.unpaired:
        yield f"unpaired: the groups of {source.name} share no randomness with each other or with any other run"
    if experiment.share_observation_norm:
        yield (
            f"share_observation_norm: the learners of {source.name} normalise by common moments, so that their records "
            "depend on the groups beside them"
        )
    for finding in audit(source.history, all_pairs(source.history)).findings:
        if finding.weight == "blocks" and finding.kind != "aliased":  # positions are never balanced across directories
            yield f"audit of {source.name}: {finding.sentence}"
