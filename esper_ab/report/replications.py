"""The verdicts of experiments that replicate each other, one beside the other; each by its own plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from esper_ab.contracts.wording import counted, listed
from esper_ab.report.content import Content
from esper_ab.report.document import Document, Node, Paragraphs, Section
from esper_ab.report.tables.groups import results_table
from esper_ab.report.verdict_json import comparison_json, indented
from esper_ab.report.verdicts import verdicts

SCHEMA = 2


def replications_report(experiments: Sequence[tuple[str, Content]], remarks: Sequence[str]) -> Document:
    """Return the report on experiments with these names and contents; `remarks`: facts that differ between them."""
    rng_seeds = listed([str(content.experiment.rng_seed) for _, content in experiments])
    replication_words = (
        f"The same groups with different rng seeds ({rng_seeds}): replications, whose runs share no randomness and so "
        "form no pairs. Each experiment is judged by its own plan, and the verdicts are not pooled."
    )
    nodes: list[Node] = [Paragraphs((replication_words,))]
    tables = []
    for name, content in experiments:
        nodes += _verdicts(name, content)
        tables.append(replace(results_table(content), title=f"Outcome by group of {name}"))
    nodes.append(Paragraphs(tuple(remarks), "Differs besides the rng seed", "caveat"))
    nodes.append(Section(tuple(tables)))
    return Document(rest="the same command with -v", nodes=tuple(nodes))


def replications_json(experiments: Sequence[tuple[str, Content]], remarks: Sequence[str]) -> str:
    """Render one JSON object; every key is in docs/data.md."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "replications": [_replication(name, content) for name, content in experiments],
        "differs": tuple(remarks),
    }
    return indented(document).decode()


def _replication(name: str, content: Content) -> dict[str, Any]:
    return {
        "experiment": name,
        "rng_seed": content.experiment.rng_seed,
        "replicates": content.history.replicates,
        "state": content.state.word,
        "comparisons": list(map(comparison_json, content.comparisons)),
    }


def _verdicts(name: str, content: Content) -> Iterator[Node]:
    seeds = counted(content.history.replicates, "seed")
    place = f"{name} (rng seed {content.experiment.rng_seed}, {seeds})"
    yield replace(verdicts(content), where=place)
    if not content.state.complete:
        yield Paragraphs((f"{content.state.warning}. {content.state.sentence}",), look="caveat")
