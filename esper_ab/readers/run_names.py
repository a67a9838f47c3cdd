"""Groups and seeds from the names of folders, files or columns, by one pattern such as {group}-s{seed}. Pure.

A pattern describes one or several parts of a path, which "/" separates. {group}, {seed}, {run} and {task} stand for
what they are called, and * for any text. A pattern that ends with /... must not reach the end of the path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted

_KEYS = ("group", "seed", "run", "task")
_PIECE = re.compile(r"\{([^{}]*)\}|\*")
_REST = "/..."
SUFFIX = re.compile(r"\.(?:csv|tsv|txt|json|jsonl|npz|npy|parquet|eval|log|wandb)$")  # of a file's name
_MOST_SHOWN = 8  # groups


@dataclass(frozen=True)
class RunName:
    """What a name says about a run; "" for what it does not say."""

    group: str = ""
    seed: str = ""
    run: str = ""
    task: str = ""


def read_names(names: Sequence[str], pattern: str) -> list[RunName]:
    """Return what `names` say by `pattern`, which must describe the same parts of every name, counted from the end.

    Raises UsageError if the pattern is invalid or does not fit.
    """
    keys = _check_pattern(pattern)
    fitting_readings = [reading for reading in _readings(names, pattern) if reading is not None]
    for reading in fitting_readings:
        if len(set(reading)) == len(names) and ("group" not in keys or len({name.group for name in reading}) > 1):
            return reading
    if fitting_readings:
        return fitting_readings[0]
    misfit = next((name for name in names if all(reading is None for reading in _readings([name], pattern))), names[0])
    raise UsageError(SettingName("runs"), f" {pattern}: it does not fit {visible_line(misfit, 200)}")


def label_of(name: RunName) -> str:
    """Return a run's name for messages: "large, seed 3"."""
    parts = [part for part in (name.task, name.group) if part]
    if name.seed:
        parts.append(f"seed {name.seed}")
    if name.run:
        parts.append(f"run {name.run}")
    return visible_line(", ".join(parts), 100)


def show_names(pattern: str, names: Sequence[RunName]) -> tuple[str, str]:
    """Return two lines: the pattern, and the groups with their seeds."""
    seeds: dict[str, dict[str, None]] = {}
    for name in names:
        condition = ", ".join(filter(None, (name.task, name.group)))
        seeds.setdefault(condition, {})[name.seed or name.run] = None
    groups = [_list_seeds(group, list(group_seeds)) for group, group_seeds in list(seeds.items())[:_MOST_SHOWN]]
    if len(seeds) > _MOST_SHOWN:
        groups.append(f"and {counted(len(seeds) - _MOST_SHOWN, 'more group')}")
    return f"Groups and seeds from names: --runs '{pattern}'", "; ".join(groups)


def _list_seeds(group: str, seeds: Sequence[str]) -> str:
    if seeds == [""]:
        return group
    word = "seed" if len(seeds) == 1 else "seeds"
    numbers = f"{word} {_ranges(seeds)}"
    return f"{group}: {numbers}" if group else numbers


def _ranges(seeds: Sequence[str]) -> str:
    """Write seeds briefly: "0-5, 7"."""
    if not all(seed.isascii() and seed.isdigit() for seed in seeds):
        shown_seeds = list(seeds[:_MOST_SHOWN])
        if len(seeds) > _MOST_SHOWN:
            shown_seeds.append("…")
        return ", ".join(shown_seeds)
    ranges: list[list[int]] = []
    for number in sorted({int(seed) for seed in seeds}):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def _check_pattern(pattern: str) -> set[str]:
    """Return the keys in a pattern; UsageError if it has unknown ones, or neither a group nor a seed."""
    keys = {match[1] for match in _PIECE.finditer(pattern) if match[1] is not None}
    unknown_keys = sorted(keys - {*_KEYS})
    if unknown_keys or not keys & {"group", "seed", "run"}:
        complaint = f"{{{unknown_keys[0]}}} is unknown" if unknown_keys else "it has neither {group} nor {seed}"
        raise UsageError(
            SettingName("runs"),
            f" {pattern}: {complaint}; a pattern looks like {{group}}-s{{seed}} or {{group}}/{{seed}}",
        )
    return keys


def _readings(names: Sequence[str], pattern: str) -> Iterator[list[RunName] | None]:
    """Yield what the names say with the pattern at each place, counted from the end; None where it does not fit."""
    wanted_pattern = pattern.removesuffix(_REST).strip("/")
    least_skipped = 1 if pattern.endswith(_REST) else 0
    width = wanted_pattern.count("/") + 1
    paths = [_parts(name) for name in names]
    longest_path = max(map(len, paths), default=0)
    for seed in ("[0-9]+", "[^/]+"):  # a number wherever that fits all names
        regex = re.compile(_regex(wanted_pattern, seed))
        for skipped_parts in range(least_skipped, longest_path - width + 1):
            yield _read_at(paths, regex, width, skipped_parts)


def _read_at(
    paths: Sequence[Sequence[str]], regex: re.Pattern[str], width: int, skipped_parts: int
) -> list[RunName] | None:
    names = []
    for parts in paths:
        end = len(parts) - skipped_parts
        if end < width:
            return None
        text = "/".join(parts[end - width : end])
        match = regex.fullmatch(SUFFIX.sub("", text)) or regex.fullmatch(text)
        if match is None:
            return None
        names.append(_named(match.groupdict()))
    return names


def _named(pieces: Mapping[str, str]) -> RunName:
    """Return the name of pieces called group0, group1, …; those of one key are joined."""
    by_key: dict[str, list[str]] = {}
    for key, text in pieces.items():
        by_key.setdefault(key.rstrip("0123456789"), []).append(text)
    return RunName(**{key: "/".join(texts) for key, texts in by_key.items()})


def _regex(pattern: str, seed: str) -> str:
    name = "[^/]+?" if "*" in pattern else "[^/]+"  # the shortest name, if any text may follow
    pieces = []
    end = 0
    for place, match in enumerate(_PIECE.finditer(pattern)):
        pieces.append(re.escape(pattern[end : match.start()]))
        end = match.end()
        if match[1] is None:
            pieces.append("[^/]*")
        else:
            text = seed if match[1] == "seed" else name
            pieces.append(f"(?P<{match[1]}{place}>{text})")
    return "".join((*pieces, re.escape(pattern[end:])))


def _parts(name: str) -> list[str]:
    return [part for part in name.split("/") if part]
