"""`samples_TASK_TIME.jsonl` of lm-evaluation-harness: what one checkpoint answered, a line per document and filter."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.known import Format
from esper_ab.formats.known._json import read_lines
from esper_ab.formats.known._records import columns_of
from esper_ab.formats.source_table import SourceTable

_NAME = "a samples file of lm-evaluation-harness"
_ITEM = "doc_id"
_TASK = "task"
_FILTER = "filter"
_METRICS = "metrics"
_SAMPLE = ("doc", "target", "arguments", "resps", "filtered_resps", "doc_hash", "prompt_hash", "target_hash")
_KNOWN = frozenset({_ITEM, _FILTER, _METRICS, *_SAMPLE})
_START = re.compile(rb'\{"doc_id": ?\d+, ?"doc":')
_FILE = re.compile(r"samples_(?P<task>.+?)(_\d{4}-\d\d-\d\dT[\d.:-]+)?")
_LOWER = ("perplexity", "bits_per_byte", "ppl", "loss", "brier", "ter", "wer")


def _recognises(file: Path, head: bytes) -> bool:
    return bool(_START.match(head)) and b'"filtered_resps"' in head


def _read(file: Path) -> list[SourceTable]:
    """Return a row per document. A metric under several filters has a column for each: exact_match,strict-match."""
    documents: dict[Any, dict[str, Any]] = {}
    numbers: list[int] = []
    filters: dict[str, None] = {}
    metrics: dict[tuple[str, str], None] = {}
    for number, record in read_lines(file):
        item = record.get(_ITEM)
        if not isinstance(item, int | str):
            raise UsageError(f"{file}, row {number}, {_NAME}: no {_ITEM}")
        filter_name = str(record.get(_FILTER, ""))
        filters[filter_name] = None
        if item not in documents:
            documents[item] = {}
            numbers.append(number)
        for name in _measured(record):
            metrics[name, filter_name] = None
            documents[item][f"{name},{filter_name}"] = record[name]
    columns_by_metric = {}  # metric and filter -> name of the column
    for name, filter_name in metrics:
        columns_by_metric[name, filter_name] = name
        if len(filters) > 1:
            columns_by_metric[name, filter_name] = f"{name},{filter_name}"
    name_parts = _FILE.fullmatch(file.stem)
    task = name_parts["task"] if name_parts else file.stem
    rows = []
    for item, cells in documents.items():
        row = {_TASK: task, _ITEM: item}
        for (name, filter_name), column in columns_by_metric.items():
            row[column] = cells.get(f"{name},{filter_name}")
        rows.append(row)
    outcomes = tuple(columns_by_metric.values())
    better = "higher"
    if outcomes and any(word in outcomes[0] for word in _LOWER):
        better = "lower"
    return [
        SourceTable(
            file=file,
            format=_NAME,
            columns=columns_of(f"{file}, {_NAME}", rows),
            row_numbers=numbers,
            roles={"task": _TASK, "item": _ITEM},
            outcomes=outcomes,
            better=better,
            notes=_notes(file, outcomes),
        )
    ]


def _measured(record: dict[str, Any]) -> list[str]:
    """Return the names of metrics with a number for this document; others have a number only for all of them."""
    names = record.get(_METRICS)
    if not isinstance(names, list):  # before version 0.4.3
        names = [name for name in record if name not in _KNOWN]
    return [name for name in names if isinstance(name, str) and isinstance(record.get(name), bool | int | float)]


def _notes(file: Path, outcomes: tuple[str, ...]) -> tuple[str, ...]:
    if not outcomes:
        raise UsageError(f"{file}, {_NAME}: no metric has a number for each document")
    if len({name.partition(",")[0] for name in outcomes}) < len(outcomes):
        return (f"Each document was scored after several filters; {outcomes[0]} is the first.",)
    return ()


FORMAT = Format(_NAME, _recognises, _read, order=0)
