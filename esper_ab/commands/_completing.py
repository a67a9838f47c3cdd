"""What a shell may offer behind the cursor: experiments and their logs, groups, tasks, slots, devices, settings.

Each function completes one kind of value, in the form that click's `shell_complete` takes. Light: no catalogue is
imported, only listed or parsed, no journal is read, and no driver is asked.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from click.shell_completion import CompletionItem

from esper_ab.contracts import catalog
from esper_ab.contracts.run_files import LOGS, RUNS
from esper_ab.joint.directory import is_joint, refuse_joint
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.settings.assignments import EXPERIMENT_KEYS, GROUP_KEYS, SHORT
from esper_ab.trackers.subject import NAMES

_USUAL = "experiments"  # where `launch` puts them
_USUAL_TASK = "digits"
_GPUS = Path("/proc/driver/nvidia/gpus")  # a folder per GPU
_CATALOGUES = {"reward.mode": "workers.rewards", "controller.name": "workers.controllers"}


class ExperimentDirectory(click.Path):
    """The type of an argument that names an experiment directory; it need not exist.

    `joint`: whether the command takes that of a joint experiment, too; else it is refused with the parts that it takes.
    """

    def __init__(self, *, joint: bool = False) -> None:
        super().__init__(path_type=Path)
        self._joint = joint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        path = super().convert(value, param, ctx)
        if not self._joint and isinstance(path, Path):
            refuse_joint(path, ctx.info_name if ctx and ctx.info_name else "this command")
        return path

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Experiment directories below the folder that is typed, the newest first, and folders to look into."""
        above = incomplete[: incomplete.rfind("/") + 1]
        found = _runs(above, incomplete)
        if not incomplete:
            found = [*_runs(f"{_USUAL}/", ""), *found]
        return [CompletionItem(value) for value in dict.fromkeys(found)]


def _runs(above: str, incomplete: str) -> list[str]:
    """Experiment directories directly below the folder `above`, newest first; then its other folders, with a slash."""
    runs: list[tuple[float, str]] = []
    folders: list[str] = []
    with suppress(OSError), os.scandir(above or ".") as entries:
        for entry in entries:
            name = above + entry.name
            if entry.name.startswith(".") or not name.startswith(incomplete) or not entry.is_dir():
                continue
            with suppress(OSError):
                journal = Path(entry.path, JOURNAL_NAME)
                if journal.exists() or is_joint(Path(entry.path)):
                    runs.append(((journal if journal.exists() else Path(entry.path)).stat().st_mtime, name))
                else:
                    folders.append(f"{name}/")
    return [name for _, name in sorted(runs, reverse=True)] + sorted(folders)


def groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete reward modes and controllers, in the last place of a list such as `shaped,mine=sp`."""
    before, piece = _last(incomplete, ",")
    name, meaning = _last(piece, "=")
    taken = {one.partition("=")[0] for one in before.split(",")} if not name else set()
    return [before + name + one for one in _modes() if one.startswith(meaning) and one not in taken]


def rewards(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete a reward mode of workers/rewards."""
    return [name for name in catalog.names("workers.rewards") if name.startswith(incomplete)]


def named_groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete groups that the command line names already, in the last place of a list."""
    before, piece = _last(incomplete, ",")
    typed = str(ctx.params.get("groups") or "").split(",") if ctx.params.get("groups") else _modes()
    altered = [str(text).partition(":")[0] for text in ctx.params.get("group") or ()]
    names = [text.partition("=")[0] for text in (*typed, *altered)]
    return [before + name for name in dict.fromkeys(names) if name.startswith(piece)]


def tasks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a task of workers/tasks."""
    return [name for name in catalog.names("workers.tasks") if name.startswith(incomplete)]


def assignment(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete `KEY=VALUE` of any setting."""
    return _assignments(incomplete, {**GROUP_KEYS, **EXPERIMENT_KEYS})


def group(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete `NAME:KEY=VALUE,KEY=VALUE`: a group, and settings that may differ between groups."""
    name, colon, settings = incomplete.partition(":")
    if not colon:
        return [f"{one}:" for one in named_groups(ctx, param, incomplete)]
    before, piece = _last(settings, ",")
    return [f"{name}:{before}{one}" for one in _assignments(piece, GROUP_KEYS)]


def choice(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete a value of the setting that has the option's own name, whatever section it is in."""
    kinds = {**GROUP_KEYS, **EXPERIMENT_KEYS}
    keys = [key for key in kinds if key.rpartition(".")[2] == param.name]
    return [value for key in keys for value in _values(key, kinds) if value.startswith(incomplete)]


def slots(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete slots of the task that is named, or of the usual one, that the list does not have yet."""
    return _not_yet(_slots_of(str(ctx.params.get("task") or _USUAL_TASK)), ctx, param, incomplete)


def devices(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete `cuda` and its devices where there are any, `cpu` and its cores, that the list does not have yet."""
    pool = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = len(list(_GPUS.iterdir())) if _GPUS.is_dir() else 0
    if pool is not None:
        gpus = min(gpus, len([one for one in pool.split(",") if one not in ("", "-1")]))
    kinds = {"cuda": gpus, "cpu": os.cpu_count() or 0}
    names = [name for kind, count in kinds.items() if count for name in (kind, *(f"{kind}:{i}" for i in range(count)))]
    return _not_yet(names, ctx, param, incomplete)


def logs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete what has a log in the experiment directory: runs as GROUP/REPLICATE, workers, trackers, the console."""
    folder = Path(ctx.params.get("experiment_dir") or ".")
    runs = [name.rpartition("-") for name in _listed(folder / RUNS)]
    written = [name.removesuffix(".log") for name in _listed(folder / LOGS) if name.endswith(".log")]
    others = [name for name in written if tuple(name.rpartition("-")) not in runs]
    if (folder / "console.log").exists():
        others.append("console")
    runs.sort(key=lambda run: (run[0], len(run[2]), run[2]))  # 10 after 9
    names = [f"{group}/{replicate}" for group, _, replicate in runs]
    return [name for name in (*names, *others) if name.startswith(incomplete)]


def trackers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete trackers, in the last place of a list."""
    before, piece = _last(incomplete, ",")
    return [before + name for name in NAMES if name.startswith(piece) and name not in before.split(",")]


def mode(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete one reward mode or controller."""
    return [name for name in _modes() if name.startswith(incomplete)]


def _not_yet(names: Iterable[str], ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the last item of a comma-separated list with `names` that the list does not have."""
    before, piece = _last(incomplete, ",")
    there = {*before.split(","), *str(ctx.params.get(param.name or "") or "").split(",")}
    return [before + name for name in names if name.startswith(piece) and name not in there]


def _listed(folder: Path) -> list[str]:
    with suppress(OSError):
        return sorted(path.name for path in folder.iterdir())
    return []


def _slots_of(task: str) -> tuple[str, ...]:
    """Slots of a task as its file declares them; the file is read and not run, so none when they are computed there."""
    if task not in catalog.names("workers.tasks"):
        return ()
    tree = ast.parse(catalog.file("workers.tasks", task).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "slots":
            with suppress(ValueError):
                return tuple(map(str, ast.literal_eval(node.value)))
    return ()


def _last(text: str, separator: str) -> tuple[str, str]:
    """`text` up to its last `separator`, with it, and what follows."""
    cut = text.rfind(separator) + 1
    return text[:cut], text[cut:]


def _modes() -> list[str]:
    return [*catalog.names("workers.rewards"), *catalog.names("workers.controllers")]


def _assignments(piece: str, kinds: dict[str, Any]) -> list[str]:
    key, equals, value = piece.partition("=")
    if not equals:
        return [f"{one}=" for one in (*kinds, *SHORT) if one.startswith(piece)]
    return [f"{key}={one}" for one in _values(SHORT.get(key, key), kinds) if one.startswith(value)]


def _values(key: str, kinds: dict[str, Any]) -> Iterable[str]:
    """All values of a setting that has few; none of any other."""
    kind = kinds.get(key)
    if key in _CATALOGUES:
        return (*catalog.names(_CATALOGUES[key]), *(("ppo",) if key == "controller.name" else ()))
    if get_origin(kind) is Literal:
        return map(str, get_args(kind))
    return ("true", "false") if kind is bool else ()
