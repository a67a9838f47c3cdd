"""A plan for runs done elsewhere: which groups and replicates are compared, in which units and at which looks."""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files import UNREADABLE, create_below, read_regular
from esper_ab.contracts.measures import (
    LABEL_CHARS,
    LARGEST_OUTCOME,
    PRINTABLE_WORDS,
    SMALLEST_MARGIN,
    UNIT_CHARS,
    Measure,
    countable,
)
from esper_ab.contracts.settings import Settings
from esper_ab.contracts.wording import did_you_mean, visible_line
from esper_ab.readers.external_table import LONGEST_NAME
from esper_ab.verdict.analysis_plan import AnalysisPlan, Rule, make_plan, sha256_of
from esper_ab.verdict.vocabulary import MEAN, Scale

# --- scales ----------------------------------------------------------------------------------------------------------
# The unit of the outcomes of a task, which direction is better, and how large a difference matters. Pure.


T = TypeVar("T")
msgspec.json.Decoder(Measure)  # built now, in one thread: tests/house/test_decoders.py
Told = str | float | Mapping[str, str | float]  # for all tasks, or by task


def scales_of(
    tasks: Sequence[str], margin: Told, *, better: Told = "higher", unit: Told = "", label: str = "outcome",
    worst: Told = "",
) -> tuple[Scale, ...]:  # fmt: skip
    """Return one scale per task. Raises UsageError if a task is missing, unknown or has an invalid value."""
    margins = _by_task("margin", tasks, margin, _size)
    directions = _by_task("better", tasks, better, _direction, otherwise="higher")
    units = _by_task("unit", tasks, unit, _unit, otherwise="")
    worsts = _by_task("worst", tasks, worst, _worst) if worst != "" else {}
    found = []
    for task in tasks:
        told = {"name": "outcome", "label": label, "unit": units[task], "better": directions[task]}
        if units[task] == "%":
            told["difference_unit"] = "points"
        try:
            outcome = msgspec.convert(told, Measure)
        except msgspec.ValidationError:
            shown = f"unit '{visible_line(units[task], LABEL_CHARS)}', label '{visible_line(label, LABEL_CHARS)}'"
            raise UsageError(
                f"{shown}: expected a unit of at most {UNIT_CHARS} characters and a label of 1 to {LABEL_CHARS}, both "
                f"{PRINTABLE_WORDS}"
            ) from None
        found.append(Scale(task=task, outcome=outcome, margin=margins[task], worst=worsts.get(task)))
    return tuple(found)


def told_by_task(text: str) -> Told:
    """Parse one value for all tasks, such as "2", or one value per task, such as "digits=2,CartPole-v1=25"."""
    if "=" not in text:
        return text
    found: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.rpartition("="))
        if not (name and value):
            raise UsageError(f"{text!r}: expected one value for all tasks, or TASK=VALUE,TASK=VALUE")
        if name in found:
            raise UsageError(f"{text!r}: {name} occurs twice")
        found[name] = value
    return found


def ranges_of(tasks: Sequence[str], told: Told) -> dict[str, tuple[float, float]]:
    """Return the worst and the target outcome of every task, from text such as "0..100"; {} if there is no text."""
    return _by_task("scores", tasks, told, _range) if told else {}


def _number(value: str | float) -> float:
    """Return the number; NaN if it is not one."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _range(value: str | float) -> tuple[float, float]:
    worst, dots, target = str(value).partition("..")
    found = _number(worst), _number(target)
    if not dots or not all(map(countable, found)) or abs(found[1] - found[0]) < SMALLEST_MARGIN:
        raise UsageError(f"scores {value!r}: expected WORST..TARGET, two different finite numbers, as in 0..100")
    return found


def _by_task(
    key: str, tasks: Sequence[str], told: Told, parse: Callable[[str | float], T], otherwise: T | None = None
) -> dict[str, T]:
    if not isinstance(told, Mapping):
        return dict.fromkeys(tasks, parse(told))
    for task in told:
        if task not in tasks:
            raise UsageError(f"{key}: no task {task!r}; {did_you_mean(task, filter(None, tasks))}")
    found = {task: parse(told[task]) if task in told else otherwise for task in tasks}
    lacking = [task for task, value in found.items() if value is None]
    if lacking:
        raise UsageError(f"{key}: no value for task {lacking[0]!r}")
    return {task: value for task, value in found.items() if value is not None}


def _size(value: str | float) -> float:
    found = _number(value)
    if not SMALLEST_MARGIN <= found <= LARGEST_OUTCOME:
        raise UsageError(f"margin {value}: expected a positive number, the smallest difference worth acting on")
    return found


def _worst(value: str | float) -> float:
    found = _number(value)
    if not countable(found):
        raise UsageError(f"worst {value}: expected a number, the outcome that stands for a lost run")
    return found


def _unit(value: str | float) -> str:
    if not isinstance(value, str):
        raise UsageError(f"unit {value!r}: expected a text, as in %")
    return value


def _direction(value: str | float) -> str:
    if value not in ("higher", "lower"):
        raise UsageError(f"better {value!r}: expected 'higher' or 'lower', to say which outcomes are better")
    return str(value)


# --- plan ------------------------------------------------------------------------------------------------------------
# A plan for runs that are done elsewhere: what is compared, over which replicates, at which looks and bounds.
#
# The plan is written before the runs. To prove that, publish its sha256 in a place that gives it a date.


_LARGEST_BYTES = 16 * 2**20


class _PlanFile(Settings, frozen=True, kw_only=True):
    """A plan on disk."""

    esper_ab_plan: Literal[1, 2] = 2
    plan: msgspec.Raw  # an AnalysisPlan, of this version or of one with fewer fields
    sha256: str  # of `plan` as written, without spaces


_decode_file, _decode_plan = msgspec.json.Decoder(_PlanFile).decode, msgspec.json.Decoder(AnalysisPlan).decode


def make_external_plan(
    groups: Sequence[str], replicates: Sequence[str], scales: Sequence[Scale], rule: Rule, *, cells: Sequence[str] = (),
    choosing: int = 0,
) -> AnalysisPlan:  # fmt: skip
    """Make a plan.

    Raises UsageError if the plan is impossible, or if a table of outcomes could not contain the plan's names.

    `choosing`: how many of the `replicates`, from the first on, are used to choose cells.
    """
    _check_names("group", groups, least=2)
    _check_names("seed", replicates, least=1)
    tasks = [scale.task for scale in scales]
    if tasks != [""]:
        _check_names("task", tasks, least=1)
    if bool(cells) != bool(choosing):
        raise UsageError("--cells and --choose need each other, because cells are chosen on separate seeds")
    if cells:
        _check_names("cell", cells, least=2)
        if len(scales) > 1:
            raise UsageError("cells belong to a single task: use either --cells or --tasks")
        if not 1 <= choosing < len(replicates):
            raise UsageError(f"--choose {choosing}: expected 1 to {len(replicates) - 1} of the {len(replicates)} seeds")
    return make_plan(groups, replicates[choosing:], scales, rule, cells=cells, choosing=replicates[:choosing])


def write_plan(plan: AnalysisPlan) -> bytes:
    """Return the content of a plan's file."""
    file = _PlanFile(plan=msgspec.Raw(msgspec.json.encode(plan)), sha256=plan.digest)
    return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"


def save_plan(plan: AnalysisPlan, path: Path) -> None:
    """Write a plan. Raises UsageError if the file exists, because a plan is never replaced."""
    try:
        create_below(path.parent, path.name, write_plan(plan))
    except FileExistsError:
        raise UsageError(f"{path} exists already, and a plan is never replaced; choose another file") from None


def read_plan(path: Path) -> AnalysisPlan:
    """Read a plan's file. Raises UsageError if the file is damaged or was changed."""
    content = read_regular(path, _LARGEST_BYTES).removeprefix(codecs.BOM_UTF8)
    try:
        file = _decode_file(content)
        written = msgspec.json.format(bytes(file.plan), indent=-1)
        plan = _decode_plan(_in_words_of_today(written) if file.esper_ab_plan == 1 else written)
    except UNREADABLE as error:
        if "'rank'" in str(error):
            raise UsageError(
                f"{path} uses a rank test, which is no longer supported, because it does not test means: write a new "
                "plan with `esper-ab design`"
            ) from None
        raise UsageError(f"{path} is not a plan of `esper-ab design`: {error}") from None
    if file.sha256 != sha256_of(written):
        raise UsageError(f"{path} was changed after it was written: its sha256 does not match its content")
    plan.__dict__["digest"] = file.sha256  # in place of the cached property, which would hash the decoded plan
    return plan


def _in_words_of_today(written: bytes) -> bytes:
    """Rename the field of a format 1 plan that now has a new name; the plan's sha256 remains that of the old text.

    No name of a group or task can be mistaken for the field, because quotation marks in names are escaped.
    """
    return written.replace(b'"design":{"endpoint":', b'"design":{"outcome_over":', 1)


def _check_names(what: str, names: Sequence[str], *, least: int) -> None:
    """Raise UsageError for duplicate names, and for names that cannot occur in a table of outcomes."""
    if len(names) < least:
        raise UsageError(f"{what}s: at least {least} needed")
    for place, name in enumerate(names):
        if len(name) > LONGEST_NAME:
            raise UsageError(f"{what} {visible_line(name, LONGEST_NAME)!r}: a name has up to {LONGEST_NAME} characters")
        if what in ("task", "cell") and name == MEAN:
            raise UsageError(f"{what} {name!r}: this name is reserved for the mean over all tasks")
        if not name or not name.isprintable() or name != name.strip():
            raise UsageError(f"{what} {name!r}: the name must be printable, without spaces around it")
        if name in names[:place]:
            raise UsageError(f"{what} {name!r} occurs twice")
