"""Find the pattern by which names of folders, files or columns tell the group and the seed of each run. Pure.

Names are compared field by field; "/" and "__" separate fields. The seed is the number after a word such as seed or
run, or the number at the end of a field. What varies besides is the group. Times of day are neither.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from esper_ab.contracts.errors import OpenQuestion, SettingName, Unanswered, UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted
from esper_ab.readers.run_names import SUFFIX, RunName, read_names

_TIME = re.compile(
    r"(?<!\d)(?:20\d\d[01]\d[0-3]\d|20\d\d-[01]\d-[0-3]\d)(?:[-_T ]\d\d[-_:.]?\d\d(?:[-_:.]?\d\d)?(?:[.,]\d+)?)?(?!\d)"
    r"|(?<!\d)1[4-9]\d{8}(?:\.\d+)?(?!\d)"  # seconds since 1970
)
_TIME_MARK = "\0"
_SEPARATORS = "-_=. "
# Where the seed is in a field, most telling first; `word`: the text before the number that belongs to it.
_SEED_RULES = (
    re.compile(r"(?P<word>(?<![A-Za-z])(?:rng[-_]?)?seeds?[-_=. ]?)(?P<seed>\d+)(?!\d)", re.IGNORECASE),
    re.compile(r"(?P<word>(?<![A-Za-z])(?:rs|s)[-_=]?)(?P<seed>\d+)(?![A-Za-z0-9])"),
    re.compile(
        r"(?P<word>(?<![A-Za-z])(?:run|rep|replicate|repeat|trial|try|version)[-_=. ]?)(?P<seed>\d+)(?![A-Za-z0-9])",
        re.IGNORECASE,
    ),
    re.compile(r"(?P<word>(?<=[-_ ])(?<!\de-)|^)(?P<seed>\d+)(?=[-_. \0]*$)"),
    re.compile(r"(?P<word>(?<=[A-Za-z]))(?P<seed>\d+)(?=[-_. \0]*$)"),
)
_LEAST_GROUPS = 2
_WITH_WORDS = 3  # rules of a word and a number
_LITERAL = re.compile(r"[{}*\0]+")  # what a pattern cannot have as text


@dataclass(frozen=True)
class _Split:
    """Names in fields; every name has the same number of fields and the same separators."""

    fields: list[list[str]]  # [fields][names], with times replaced by _TIME_MARK
    separators: list[str]  # after each field; "" after the last


@dataclass(frozen=True)
class _Part:
    """A piece of a pattern: text, or the texts of a piece that varies between names."""

    text: str = ""
    values: tuple[str, ...] = ()  # by name
    seed: bool = False


def infer_names(names: Sequence[str], source: str, *, seeds: bool, groups: bool) -> tuple[str, list[RunName]]:
    """Return the pattern of `names`, and what each of them says.

    `seeds`, `groups`: whether the names must tell these, because no column does. Raises Unanswered if the names fit
    several patterns or none.
    """
    for split in _splits(names):
        seed_rules = _SEED_RULES if seeds else ()
        for place, rule in enumerate(seed_rules):
            if place >= _WITH_WORDS and _some_have_words(split):
                break
            valid_readings = _valid(names, _patterns(split, rule, groups=groups), groups=groups)
            if valid_readings and (place < _WITH_WORDS or _several_seeds(valid_readings[0][1])):
                return _the_only(names, source, valid_readings)
        if not seeds and (valid_readings := _valid(names, _patterns(split, None, groups=groups), groups=groups)):
            return _the_only(names, source, valid_readings)
    if seeds and groups and len(names) == _LEAST_GROUPS:  # two runs are compared only if they are of two groups
        return infer_names(names, source, seeds=False, groups=True)
    example = "{group}-s{seed}" if groups else "*-s{seed}"
    examples = " and ".join(visible_line(name, 100) for name in (names[0], names[-1]))
    raise Unanswered(
        source,
        [
            OpenQuestion(
                f"the names of {counted(len(names), 'run')}, such as {examples}, do not tell by one pattern which "
                "group and seed each has; say it by a pattern of your own",
                (SettingName("runs", example),),
            )
        ],
    )


def names_of_paths(
    source: str, paths: Sequence[str], pattern: str, *, seeds: bool, groups: bool
) -> tuple[str, list[RunName]]:
    """Return the pattern of the paths, `pattern` if the user gave one, and what each path says."""
    if pattern:
        return pattern, read_names(paths, pattern)
    if len(paths) < 2:
        raise UsageError(
            f"{source} has one run, {paths[0]}; a comparison needs runs of two groups, each with a file or folder of "
            "its own"
        )
    return infer_names(paths, source, seeds=seeds, groups=groups)


def _some_have_words(split: _Split) -> bool:
    """True if a word and a number tell a seed in some names, though not in all of them, or in different ways."""
    for column in split.fields:
        for rule in _SEED_RULES[:_WITH_WORDS]:
            texts = {match[0] if (match := rule.search(text)) else "" for text in column}
            if len(texts) > 1:
                return True
    return False


def _several_seeds(names: Sequence[RunName]) -> bool:
    """True if every group has several seeds: a number in the name of a single run may mean anything."""
    counts = Counter((name.group, name.task) for name in names)
    return min(counts.values()) > 1


def _the_only(
    names: Sequence[str], source: str, valid_readings: Sequence[tuple[str, list[RunName]]]
) -> tuple[str, list[RunName]]:
    if len(valid_readings) == 1:
        return valid_readings[0]
    question = OpenQuestion(
        f"several parts of names such as {visible_line(names[0], 100)} vary, so it is unclear which is the group",
        tuple(SettingName("runs", pattern) for pattern, _ in valid_readings),
    )
    raise Unanswered(source, [question])


def _valid(names: Sequence[str], patterns: Sequence[str], *, groups: bool) -> list[tuple[str, list[RunName]]]:
    """Return the patterns by which every run is a different one, and which tell two groups if they must."""
    valid_readings = []
    for pattern in patterns:
        run_names = read_names(names, pattern)
        if len(set(run_names)) == len(names) and (not groups or len({name.group for name in run_names}) > 1):
            valid_readings.append((pattern, run_names))
    return valid_readings


def _splits(names: Sequence[str]) -> Iterator[_Split]:
    """Yield the names in fields, without the fields at both ends that are equal in all names."""
    plain_names = [SUFFIX.sub("", name) for name in names]
    marked_names = [_TIME.sub(_TIME_MARK, name) for name in plain_names]
    for separator in (rf"[-_ ]*{_TIME_MARK}[-_ ]*|/|__", "/"):
        texts = [re.split(separator, name) for name in marked_names]
        separator_sets = {tuple(re.findall(separator, name)) for name in marked_names}
        if len(separator_sets) == 1:
            fields = [list(column) for column in zip(*texts, strict=True)]
            separators = [*separator_sets.pop(), ""]
            varying_places = [place for place, column in enumerate(fields) if len(set(column)) > 1]
            if varying_places:
                first_place, last_place = _whole_parts(separators, varying_places[0], varying_places[-1])
                yield _Split(fields[first_place : last_place + 1], [*separators[first_place:last_place], ""])


def _whole_parts(separators: Sequence[str], first_place: int, last_place: int) -> tuple[int, int]:
    """Return the first and last field of the parts of the path that have the fields `first_place` to `last_place`."""
    while first_place and separators[first_place - 1] != "/":
        first_place -= 1
    while separators[last_place] not in ("", "/"):
        last_place += 1
    return first_place, last_place


def _patterns(split: _Split, rule: re.Pattern[str] | None, *, groups: bool) -> list[str]:
    """Return the patterns with the seed where `rule` finds it: one, unless several parts could be the group."""
    parts = _parts(split, rule)
    if parts is None:
        return []
    varying_places = [place for place, part in enumerate(parts) if part.values and not part.seed]
    leading_place = _leading(parts, varying_places)
    if not groups or not varying_places:
        return [_write(parts, {})]
    if leading_place is not None:
        return [_write(parts, {leading_place: "group"})]
    choices = [dict.fromkeys(varying_places, "task") | {group_place: "group"} for group_place in varying_places]
    if len(varying_places) > 2:
        choices = [{place: "group" for place in varying_places}]
        return [_write(parts, choices[0])]
    return [_write(parts, choice) for choice in (*choices, {place: "group" for place in varying_places})]


def _leading(parts: Sequence[_Part], varying_places: Sequence[int]) -> int | None:
    """Return the first varying part that determines all others; None if there is none."""
    for place in varying_places:
        values = parts[place].values
        if all(
            len(set(zip(values, parts[other_place].values, strict=True))) == len(set(values))
            for other_place in varying_places
        ):
            return place
    return None


def _parts(split: _Split, rule: re.Pattern[str] | None) -> list[_Part] | None:
    """Return the pieces of a pattern; None if `rule` finds no seed, or not in the same field of every name."""
    seed_field = None
    if rule is not None:
        candidates = [place for place, column in enumerate(split.fields) if all(rule.search(text) for text in column)]
        varying_places = [place for place in candidates if len(set(split.fields[place])) > 1]
        if not varying_places:
            return None
        seed_field = varying_places[-1]
    parts: list[_Part] = []
    for place, (column, separator) in enumerate(zip(split.fields, split.separators, strict=True)):
        if place == seed_field and rule is not None:
            seed_parts = _seed_parts(column, rule)
            if seed_parts is None:
                return None
            parts += seed_parts
        else:
            parts.append(_part(column))
        parts.append(_Part(text=separator))
    return parts


def _seed_parts(column: Sequence[str], rule: re.Pattern[str]) -> list[_Part] | None:
    """Return the pieces of the field with the seed; None if the text between group and seed differs between names."""
    matches = [rule.search(text) for text in column]
    texts_before = []
    joints = set()
    texts_after = []
    seeds = []
    for match in matches:
        if match is None:
            return None
        prefix = match.string[: match.start()]
        kept_prefix = prefix.rstrip(_SEPARATORS)
        joints.add(prefix[len(kept_prefix) :] + match["word"])
        texts_before.append(kept_prefix)
        seeds.append(match["seed"])
        texts_after.append(match.string[match.end() :])
    if len(joints) > 1:
        return None
    return [_part(texts_before), _Part(text=joints.pop()), _Part(values=tuple(seeds), seed=True), *_after(texts_after)]


def _after(column: Sequence[str]) -> list[_Part]:
    """Return the pieces after the seed: a separator that all have, and the rest."""
    first_chars = {text[:1] for text in column}
    if len(first_chars) == 1 and (separator := first_chars.pop()) in [*_SEPARATORS]:
        return [_Part(text=separator), _part([text[1:] for text in column])]
    return [_part(column)]


def _part(column: Sequence[str]) -> _Part:
    """Return text if it is equal in all names, except for times; else the values."""
    if len(set(column)) == 1:
        return _Part(text=column[0])
    return _Part(values=tuple(column))


def _write(parts: Sequence[_Part], keys: dict[int, str]) -> str:
    pieces = []
    for place, part in enumerate(parts):
        if part.seed:
            pieces.append("{seed}")
        elif part.values:
            if place in keys:
                pieces.append(f"{{{keys[place]}}}")
            else:
                pieces.append("*")
        else:
            pieces.append(_LITERAL.sub("*", part.text))
    return re.sub(r"\*{2,}", "*", "".join(pieces))
