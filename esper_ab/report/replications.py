"""The verdicts of experiments that replicate each other, one beside the other; each by its own plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from esper_ab.contracts.wording import counted, listed
from esper_ab.report.content import Content
from esper_ab.report.document import Document, Node, Paragraphs, Section, Verdicts
from esper_ab.report.tables.groups import results_table
from esper_ab.report.verdict_json import comparison_json, indented
from esper_ab.report.verdicts import verdicts

SCHEMA = 2


def replications_report(found: Sequence[tuple[str, Content]], remarks: Sequence[str]) -> Document:
    """Return the report on experiments with these names and contents; `remarks`: facts that differ between them."""
    seeds = listed([str(one.experiment.rng_seed) for _, one in found])
    same = (
        f"The same groups with different rng seeds ({seeds}): replications, whose runs share no randomness and so form "
        "no pairs. Each experiment is judged by its own plan, and the verdicts are not pooled."
    )
    return Document(
        rest="the same command with -v",
        nodes=(
            Paragraphs((same,)),
            *(node for name, one in found for node in _verdicts(name, one)),
            Paragraphs(tuple(remarks), "Differs besides the rng seed", "caveat"),
            Section(tuple(replace(results_table(one), title=f"Outcome by group of {name}") for name, one in found)),
        ),
    )


def replications_json(found: Sequence[tuple[str, Content]], remarks: Sequence[str]) -> str:
    """Render one JSON object; every key is in docs/data.md."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "replications": [
            {
                "experiment": name,
                "rng_seed": one.experiment.rng_seed,
                "replicates": one.history.replicates,
                "state": one.state.word,
                "comparisons": [comparison_json(item) for item in one.comparisons],
            }
            for name, one in found
        ],
        "differs": tuple(remarks),
    }
    return indented(document).decode()


def _verdicts(name: str, found: Content) -> Iterator[Node]:
    shown = verdicts(found)
    where = f"{name} (rng seed {found.experiment.rng_seed}, {counted(found.history.replicates, 'seed')})"
    yield Verdicts(shown.cards, shown.scope, shown.shared, where)
    if not found.state.complete:
        yield Paragraphs((f"{found.state.warning}. {found.state.sentence}",), look="caveat")
