"""`eval_info.json` of LeRobot's lerobot-eval: episodes of one policy, of one environment or of several tasks.

Episodes of a task begin as their numbers say: lerobot-eval seeds episode i of each policy with its seed and i.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.known import Format
from esper_ab.formats.known._json import read_json
from esper_ab.formats.known._records import columns_of
from esper_ab.formats.source_table import SourceTable

_NAME = "an eval_info.json of LeRobot"
_TASK, _EPISODE = "task", "episode"
_MEASURES = {"successes": "success", "sum_rewards": "sum_reward", "max_rewards": "max_reward"}


def _recognises(file: Path, head: bytes) -> bool:
    start = head.lstrip()[:100].replace(b" ", b"").replace(b"\n", b"")
    if start.startswith(b'{"per_task":[{"task_group":'):
        return True
    return start.startswith(b'{"per_episode":[{"episode_ix":') and b'"sum_reward"' in head


def _read(file: Path) -> list[SourceTable]:
    document = read_json(file)
    try:
        rows = list(
            _rows_by_task(document["per_task"]) if "per_task" in document else _episodes(document["per_episode"])
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{file}, {_NAME}, is damaged: {type(error).__name__} {error}") from None
    if not rows:
        raise UsageError(f"{file}, {_NAME}, has no episodes")
    columns = columns_of(f"{file}, {_NAME}", rows)
    return [
        SourceTable(
            file=file,
            format=_NAME,
            columns=columns,
            row_numbers=range(1, len(rows) + 1),
            roles={"item": _EPISODE} | ({"task": _TASK} if _TASK in columns else {}),
            outcomes=tuple(name for name in _MEASURES.values() if name in columns),
            better="higher",
        )
    ]


def _rows_by_task(tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the episodes of all tasks, as lerobot-eval writes them since 0.4."""
    for task in tasks:
        name = f"{task['task_group']}/{task['task_id']}"
        measures = {our_name: task["metrics"][their_name] for their_name, our_name in _MEASURES.items()}
        for episode, values in enumerate(zip(*measures.values(), strict=False)):
            yield {_TASK: name, _EPISODE: episode} | dict(zip(measures, values, strict=True))


def _episodes(episodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield episodes of the only environment, as up to 0.3."""
    for episode in episodes:
        yield {_EPISODE: episode["episode_ix"]} | {name: episode[name] for name in _MEASURES.values()}


FORMAT = Format(_NAME, _recognises, _read, order=0)
