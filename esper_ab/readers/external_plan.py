"""A plan for runs that are done elsewhere: what is compared, over which replicates, at which looks and bounds.

The plan is written before the runs. To prove that, publish its sha256 in a place that gives it a date.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.files_below import create_below
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.settings import Settings
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.contracts.visible import visible_line
from esper_ab.formats.cells import LONGEST_NAME
from esper_ab.verdict.analysis_plan import AnalysisPlan, Rule, make_plan, sha256_of
from esper_ab.verdict.scale import MEAN, Scale

_LARGEST_BYTES = 16 * 2**20


class _PlanFile(Settings, frozen=True, kw_only=True):
    """A plan on disk."""

    esper_ab_plan: Literal[1, 2] = 2
    plan: msgspec.Raw  # an AnalysisPlan, of this version or of one with fewer fields
    sha256: str  # of `plan` as written, without spaces


_decode_file = msgspec.json.Decoder(_PlanFile).decode
_decode_plan = msgspec.json.Decoder(AnalysisPlan).decode


def make_external_plan(
    groups: Sequence[str],
    replicates: Sequence[str],
    scales: Sequence[Scale],
    rule: Rule,
    *,
    cells: Sequence[str] = (),
    choosing: int = 0,
) -> AnalysisPlan:
    """Make a plan.

    `choosing`: how many of the `replicates`, from the first on, are used to choose cells. Raises UsageError if the plan
    is impossible, or if a table of outcomes could not contain the plan's names.
    """
    check_names("group", groups, least_count=2)
    check_names("seed", replicates, least_count=1)
    tasks = [scale.task for scale in scales]
    if tasks != [""]:
        check_names("task", tasks, least_count=1)
    if bool(cells) != bool(choosing):
        raise UsageError(
            SettingName("cells"),
            " and ",
            SettingName("choose"),
            " need each other, because cells are chosen on separate seeds",
        )
    if cells:
        check_names("cell", cells, least_count=2)
        if len(scales) > 1:
            raise UsageError(
                "cells belong to a single task: use either ", SettingName("cells"), " or ", SettingName("tasks")
            )
        if not 1 <= choosing < len(replicates):
            raise UsageError(
                SettingName("choose", choosing),
                f": expected 1 to {len(replicates) - 1} of the {len(replicates)} seeds",
            )
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
        written_plan = msgspec.json.format(bytes(file.plan), indent=-1)
        if file.esper_ab_plan == 1:
            plan = _decode_plan(_rename_endpoint(written_plan))
        else:
            plan = _decode_plan(written_plan)
    except UNREADABLE as error:
        if "'rank'" in str(error):
            raise UsageError(
                f"{path} uses a rank test, which is no longer supported, because it does not test means: write a new "
                "plan with `esper-ab design`"
            ) from None
        raise UsageError(f"{path} is not a plan of `esper-ab design`: {error}") from None
    if file.sha256 != sha256_of(written_plan):
        raise UsageError(f"{path} was changed after it was written: its sha256 does not match its content")
    plan.__dict__["digest"] = file.sha256  # in place of the cached property, which would hash the decoded plan
    return plan


def _rename_endpoint(written_plan: bytes) -> bytes:
    """Rename `endpoint` of a format 1 plan, which is now `outcome_over`; the sha256 remains that of the old text.

    No name of a group or task can be mistaken for the field, because quotation marks in names are escaped.
    """
    return written_plan.replace(b'"design":{"endpoint":', b'"design":{"outcome_over":', 1)


def check_names(kind_words: str, names: Sequence[str], *, least_count: int) -> None:
    """Raise UsageError for duplicate names, and for names that cannot occur in a table of outcomes."""
    if len(names) < least_count:
        raise UsageError(f"{kind_words}s: at least {least_count} needed")
    for place, name in enumerate(names):
        if len(name) > LONGEST_NAME:
            raise UsageError(
                f"{kind_words} {visible_line(name, LONGEST_NAME)!r}: a name has up to {LONGEST_NAME} characters"
            )
        if kind_words in ("task", "cell") and name == MEAN:
            raise UsageError(f"{kind_words} {name!r}: this name is reserved for the mean over all tasks")
        if not name or not name.isprintable() or name != name.strip():
            raise UsageError(f"{kind_words} {name!r}: the name must be printable, without spaces around it")
        if name in names[:place]:
            raise UsageError(f"{kind_words} {name!r} occurs twice")
