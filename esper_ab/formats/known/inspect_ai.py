"""Logs of Inspect, `.eval` (a ZIP archive) or `.json`: the scores of one model on one task, by sample and epoch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import counted
from esper_ab.formats.known import Format
from esper_ab.formats.known._archive import ZipArchive, names_in
from esper_ab.formats.known._json import decode, read_json
from esper_ab.formats.known._records import columns_of
from esper_ab.formats.source_table import SourceTable

_NAME = "an Inspect log"
_MODEL, _TASK, _SAMPLE, _EPOCH = "model", "task", "id", "epoch"
_ROLES = {"group": _MODEL, "task": _TASK, "item": _SAMPLE, "repeat": _EPOCH}
_HEADER, _START, _SUMMARIES = "header.json", "_journal/start.json", "summaries.json"
_SUMMARY_PARTS = "_journal/summaries/"  # of a run that has not ended
# As Inspect's value_to_float has them: correct, incorrect, partial, no answer.
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_DONE = "success"


def _recognises(file: Path, head: bytes) -> bool:
    if {_HEADER, _START} & {*names_in(file, head)}:
        return True
    start = head.lstrip()[:200].replace(b" ", b"").replace(b"\n", b"")
    return start.startswith(b'{"version":') and b'"eval":{' in start and b'"status":' in start


def _read(file: Path) -> list[SourceTable]:
    log, samples = _read_archive(file) if _is_archive(file) else _read_document(file)
    eval_facts = log.get("eval")
    if not isinstance(eval_facts, dict) or not isinstance(samples, list):
        raise UsageError(f"{file}, {_NAME}: it does not say what was evaluated")
    fixed_cells = {_MODEL: eval_facts.get(_MODEL, ""), _TASK: eval_facts.get(_TASK, "")}
    rows = []
    for sample in samples:
        if not isinstance(sample, dict) or _SAMPLE not in sample:
            raise UsageError(f"{file}, {_NAME}: a sample has no id")
        rows.append(
            fixed_cells | {_SAMPLE: sample[_SAMPLE], _EPOCH: sample.get(_EPOCH, 1)} | _scores(sample.get("scores"))
        )
    columns = columns_of(f"{file}, {_NAME}", rows)
    outcomes = tuple(name for name in columns if name not in fixed_cells | {_SAMPLE: "", _EPOCH: ""})
    if not outcomes:
        raise UsageError(f"{file}, {_NAME}: no sample has a score; its status is {log.get('status', 'unknown')}")
    return [
        SourceTable(
            file=file,
            format=_NAME,
            columns=columns,
            row_numbers=range(1, len(rows) + 1),
            roles=_ROLES,
            outcomes=outcomes,
            better="higher",
            notes=_notes(log, columns[outcomes[0]]),
        )
    ]


def _is_archive(file: Path) -> bool:
    return bool(names_in(file, b"PK\x03\x04"))


def _read_archive(file: Path) -> tuple[dict[str, Any], list[Any]]:
    """Return what the log says of itself, and its samples; both also if the run has not ended."""
    archive = ZipArchive(file)

    def part(name: str) -> Any:
        return decode(f"{file}, {name}", archive.read(name))

    log_name = _START
    if _HEADER in archive.names:
        log_name = _HEADER
    log = part(log_name)
    if not isinstance(log, dict):
        return {}, []
    if _SUMMARIES in archive.names:
        return log, part(_SUMMARIES)
    parts = [part(name) for name in archive.names if name.startswith(_SUMMARY_PARTS)]
    return {"status": "started"} | log, [
        sample for part_samples in parts if isinstance(part_samples, list) for sample in part_samples
    ]


def _read_document(file: Path) -> tuple[dict[str, Any], list[Any]]:
    log = read_json(file)
    return (log, log.get("samples") or []) if isinstance(log, dict) else ({}, [])


def _scores(scores: Any) -> dict[str, float | None]:
    """Return the numbers of a sample by scorer; a score with parts has a name for each, such as rubric/style."""
    numbers: dict[str, float | None] = {}
    for scorer, score in scores.items() if isinstance(scores, dict) else ():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, Mapping):
            numbers |= {f"{scorer}/{name}": _number(inner_value) for name, inner_value in value.items()}
        else:
            numbers[scorer] = _number(value)
    return numbers


def _number(value: Any) -> float | None:
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, str):
        if value in _GRADES or value.lower() in _GRADES:
            return _GRADES.get(value, _GRADES.get(value.lower()))
        try:
            return float(value)
        except ValueError:
            return None
    return None


def _notes(log: Mapping[str, Any], cells: Any) -> tuple[str, ...]:
    notes = []
    if (status := log.get("status")) != _DONE:
        notes.append(f"The log's status is {status!r}, not {_DONE!r}: samples may be missing.")
    if missing_count := sum(cell is None for cell in cells):
        notes.append(f"{counted(missing_count, 'sample')} of {len(cells)} without a score.")
    return tuple(notes)


FORMAT = Format(_NAME, _recognises, _read, order=0)
