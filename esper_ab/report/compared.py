"""Several experiment directories compared: what may be said of them together, as JSON and as text for a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from esper_ab.analysis.across import Across, Treatment, across
from esper_ab.analysis.across_words import caveats, disagreement, sentence
from esper_ab.analysis.comparable import Source, incomparable
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.visible import visible
from esper_ab.design.design import Design
from esper_ab.journal.load import load
from esper_ab.journal.lock import holder
from esper_ab.live.status import state_of
from esper_ab.report.tables.table import NONE, Table, mean_and_sd, number, signed, span
from esper_ab.report.text import paragraph, render_table
from esper_ab.stats.text import counted


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Experiment directories that may be compared, and what follows."""

    sources: tuple[Source, ...]
    states: tuple[str, ...]  # of each, as in `status`
    found: Across
    caveats: tuple[str, ...]

    @property
    def design(self) -> Design:
        """That of the first, in whose unit and decimals all is written."""
        return self.sources[0].history.design


def compare(experiment_dirs: tuple[Path, ...]) -> Compared:
    """Compare the groups of `experiment_dirs`.

    UsageError, with a line per reason, when they cannot be compared, or one of them is no experiment directory.
    """
    _check_apart(experiment_dirs)
    held = [holder(experiment_dir) is not None for experiment_dir in experiment_dirs]
    sources = tuple(_source(experiment_dir) for experiment_dir in experiment_dirs)
    reasons = incomparable(sources)
    if reasons:
        raise UsageError("\n  ".join(("these experiment directories cannot be compared:", *reasons)))
    found = across(sources)
    states = tuple(state_of(source.history, held=one) for source, one in zip(sources, held, strict=True))
    return Compared(sources=sources, states=states, found=found, caveats=caveats(sources, found))


def _check_apart(experiment_dirs: tuple[Path, ...]) -> None:
    if len(experiment_dirs) < 2:
        one = shell_command("report", experiment_dirs[0])
        raise UsageError(f"compare needs two experiment directories at least; `{one}` tells of one")
    seen: dict[Path, Path] = {}
    for experiment_dir in experiment_dirs:
        if (first := seen.setdefault(experiment_dir.resolve(), experiment_dir)) is not experiment_dir:
            raise UsageError(f"{first} and {experiment_dir} are one experiment directory")


def _source(experiment_dir: Path) -> Source:
    return Source(name=str(experiment_dir), history=load(experiment_dir).history)


def render_json(compared: Compared) -> str:
    """A comparison of experiment directories as one JSON object."""
    found, design = compared.found, compared.design
    document = {
        "runs": [
            {"run": source.name, "state": state, "digest": source.history.plan.digest}
            for source, state in zip(compared.sources, compared.states, strict=True)
        ],
        "treatments": found.treatments,
        "disagreements": [
            {**msgspec.to_builtins(one), "sentence": disagreement(one, design)} for one in found.disagreements
        ],
        "declared": found.declared,
        "exploratory": [
            {**msgspec.to_builtins(one), "verdict": None, "sentence": sentence(one, design)}
            for one in found.exploratory
        ],
        "caveats": compared.caveats,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def render_text(compared: Compared) -> str:
    """A comparison of experiment directories as text for a terminal."""
    found, design = compared.found, compared.design
    parts = ["\n".join(
        f"{source.name}: {state}, {', '.join(source.history.groups)}, "
        f"{counted(source.history.replicates, 'replicate')} planned"
        for source, state in zip(compared.sources, compared.states, strict=True)
    )]  # fmt: skip
    parts += [paragraph(f"! {disagreement(one, design)}", "", hanging="  ") for one in found.disagreements]
    parts.append(render_table(_conditions(found, design)))
    if found.declared:
        lines = (f"{one.source}: {one.sentence}" for one in found.declared)
        parts.append("Declared before the runs\n" + "\n".join(paragraph(line, hanging="  ") for line in lines))
    if found.exploratory:
        parts.append("EXPLORATORY, between experiment directories\n" + "\n".join((
            *(paragraph(sentence(one, design), hanging="  ") for one in found.exploratory),
            *(paragraph(f"! {caveat}", hanging="  ") for caveat in compared.caveats),
        )))  # fmt: skip
        parts.append(render_table(_differences(found, design)))
    else:
        parts.append("No two treatments are left to compare that an experiment directory has not compared itself.")
    return visible("\n\n".join(parts))


def _conditions(found: Across, design: Design) -> Table:
    rows = tuple(
        (
            one.name, "; ".join(f"{member.group} in {member.source}" for member in one.members), _checked(one),
            str(len(one.endpoints)), mean_and_sd(one.endpoints.values(), design.digits),
        )
        for one in found.treatments
    )
    columns = ("treatment", "groups", "records of equal settings", "runs", f"{design.outcome.title} (SD)")
    return Table(title="Treatments", columns=columns, rows=rows, words=3)


def _checked(one: Treatment) -> str:
    if len(one.members) < 2:
        return "one group only"
    count = len(one.confirmed)
    return f"equal in {count} replicate{'' if count == 1 else 's'}" if count else "no replicate in common"


def _differences(found: Across, design: Design) -> Table:
    rows = []
    for one in found.exploratory:
        plain, flip, rank, beside = one.plain, one.sign_flip, one.rank, one.correlation
        rows.append((
            f"{one.a} - {one.b}", ", ".join(one.settings) or "nothing that is read", str(len(one.pairs)),
            signed(plain.mean if plain else None, design.digits),
            span(plain.low, plain.high, design.digits) if plain else NONE,
            _p(plain.p if plain else None), _p(flip.p if flip else None), _p(rank.p if rank else None),
            number(beside.r if beside else None),
        ))
    unit = design.outcome.apart or "difference"
    columns = ("a - b", "differ in", "pairs", unit, "95 %, uncorrected", "t p", "sign flip p", "rank p", "r")
    return Table(title="Differences over common replicates", columns=columns, rows=tuple(rows), words=2)


def _p(value: float | None) -> str:
    return "< 0.0001" if value is not None and value < 0.0001 else number(value, 4)
