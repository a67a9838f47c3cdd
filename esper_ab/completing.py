"""What a shell may offer behind the cursor: run directories, names of groups and tasks, keys and values of settings.

Light: no catalogue is imported, only listed, and no journal is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from click.shell_completion import CompletionItem

_USUAL = "runs"  # where `launch` puts run directories
_CATALOGUES = {"reward.mode": "workers.rewards", "controller.name": "workers.controllers"}


class RunDirectory(click.Path):
    """The type of an argument that names a run directory; it need not exist."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[Any]]:
        """Run directories below the folder that is typed, the newest first, and folders to look into."""
        above = incomplete[: incomplete.rfind("/") + 1]
        found = _runs(above, incomplete)
        if not incomplete:
            found = [*_runs(f"{_USUAL}/", ""), *found]
        return [CompletionItem(value) for value in dict.fromkeys(found)]


def _runs(above: str, incomplete: str) -> list[str]:
    """Run directories directly below the folder `above`, newest first; then its other folders, with a slash."""
    from esper_ab.journal.file import JOURNAL_NAME

    runs: list[tuple[float, str]] = []
    folders: list[str] = []
    with suppress(OSError), os.scandir(above or ".") as entries:
        for entry in entries:
            name = above + entry.name
            if entry.name.startswith(".") or not name.startswith(incomplete) or not entry.is_dir():
                continue
            with suppress(OSError):
                journal = Path(entry.path, JOURNAL_NAME)
                if journal.exists():
                    runs.append((journal.stat().st_mtime, name))
                else:
                    folders.append(f"{name}/")
    return [name for _, name in sorted(runs, reverse=True)] + sorted(folders)


def groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """`shaped,w…`, `mine=sh…`: reward modes and controllers, in the last place of the list."""
    before, piece = _last(incomplete, ",")
    name, meaning = _last(piece, "=")
    taken = {one.partition("=")[0] for one in before.split(",")} if not name else set()
    return [before + name + one for one in _modes() if one.startswith(meaning) and one not in taken]


def named_groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Groups that the command line names already, in the last place of the list."""
    before, piece = _last(incomplete, ",")
    typed = str(ctx.params.get("groups") or "").split(",") if ctx.params.get("groups") else _modes()
    altered = [str(text).partition(":")[0] for text in ctx.params.get("group") or ()]
    names = [text.partition("=")[0] for text in (*typed, *altered)]
    return [before + name for name in dict.fromkeys(names) if name.startswith(piece)]


def tasks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of workers/tasks."""
    from esper_ab.contracts import catalog

    return [name for name in catalog.names("workers.tasks") if name.startswith(incomplete)]


def assignment(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """`KEY=VALUE` of any setting."""
    from esper_ab.assignments import EXPERIMENT_KEYS, GROUP_KEYS

    return _assignments(incomplete, {**GROUP_KEYS, **EXPERIMENT_KEYS})


def group(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """`NAME:KEY=VALUE,KEY=VALUE` of settings that may differ between groups."""
    from esper_ab.assignments import GROUP_KEYS

    name, colon, settings = incomplete.partition(":")
    if not colon:
        return [f"{one}:" for one in named_groups(ctx, param, incomplete)]
    before, piece = _last(settings, ",")
    return [f"{name}:{before}{one}" for one in _assignments(piece, GROUP_KEYS)]


def choice(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Values of the experiment's setting of the option's own name."""
    from esper_ab.assignments import EXPERIMENT_KEYS

    return [value for value in _values(param.name or "", EXPERIMENT_KEYS) if value.startswith(incomplete)]


def mode(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """One reward mode or controller."""
    return [name for name in _modes() if name.startswith(incomplete)]


def _last(text: str, separator: str) -> tuple[str, str]:
    """`text` up to its last `separator`, with it, and what follows."""
    cut = text.rfind(separator) + 1
    return text[:cut], text[cut:]


def _modes() -> list[str]:
    from esper_ab.contracts import catalog

    return [*catalog.names("workers.rewards"), *catalog.names("workers.controllers")]


def _assignments(piece: str, kinds: dict[str, Any]) -> list[str]:
    from esper_ab.assignments import SHORT

    key, equals, value = piece.partition("=")
    if not equals:
        return [f"{one}=" for one in (*kinds, *SHORT) if one.startswith(piece)]
    return [f"{key}={one}" for one in _values(SHORT.get(key, key), kinds) if one.startswith(value)]


def _values(key: str, kinds: dict[str, Any]) -> Iterable[str]:
    """All values of a setting that has few."""
    from esper_ab.contracts import catalog

    kind = kinds.get(key)
    if key in _CATALOGUES:
        return (*catalog.names(_CATALOGUES[key]), *(("ppo",) if key == "controller.name" else ()))
    if get_origin(kind) is Literal:
        return map(str, get_args(kind))
    return ("true", "false") if kind is bool else ()
