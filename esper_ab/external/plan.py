"""A plan for runs that are made elsewhere: what is compared, over which replicates, at which looks and bounds.

It is written before the runs and vouches for itself by its sha256, which is worth publishing where it gets a date.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Sequence
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Literal

import msgspec

from esper_ab.contracts.below import create_below
from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.settings import Settings
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.contracts.visible import visible_line
from esper_ab.design.boundary_cache import find_bounds
from esper_ab.design.design import (
    LEAST_KEPT,
    SEVERAL_LOOKS_FROM,
    Contrast,
    Design,
    boundaries_of,
    check_looks,
    default_looks,
    futility_of,
)
from esper_ab.external.endpoints import LONGEST_NAME, MEAN
from esper_ab.external.scales import OF_MEAN, Scale
from esper_ab.stats.least_pairs import LEAST_PAIRS

_LARGEST_BYTES = 16 * 2**20


class Rule(Settings, frozen=True, kw_only=True):
    """The rule by which comparisons are decided; its fields are named as the settings of a launch."""

    control: str = ""  # the group that all others are compared with; "": all pairs
    alpha: float = 0.05
    looks: tuple[int, ...] = ()  # (): the default ones
    early_stop: bool = True
    futility: float = 0.0


class ExternalPlan(Settings, frozen=True, kw_only=True, dict=True):
    """All that is decided before the first run."""

    groups: tuple[str, ...]
    replicates: tuple[str, ...]  # seeds or pairs, in the order in which they are run and judged
    scales: tuple[Scale, ...]  # one per task
    design: Design  # of all tasks together
    cells: tuple[str, ...] = ()  # settings of which each group is given its own best; (): there are none to choose from
    choosing: tuple[str, ...] = ()  # seeds on which they are chosen; none of `replicates`

    @cached_property
    def digest(self) -> str:
        """sha256 of everything in it; of a plan that was read that of its file.

        A field that a later version adds has a default, and no digest of a plan that was written before changes.
        """
        return _sha256(msgspec.json.encode(self))

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks; ("",): there are none."""
        return tuple(scale.task for scale in self.scales)

    def design_of(self, contrast: Contrast) -> Design:
        """The design with margin and outcome of one comparison."""
        return own_design(self.design, self.scales, contrast)


class _PlanFile(Settings, frozen=True, kw_only=True):
    """A plan on disk."""

    esper_ab_plan: Literal[1] = 1
    plan: msgspec.Raw  # an ExternalPlan, of this version or of one with fewer fields
    sha256: str  # of `plan` as it stands there, without spaces


_decode_file, _decode_plan = msgspec.json.Decoder(_PlanFile).decode, msgspec.json.Decoder(ExternalPlan).decode


def make_external_plan(
    groups: Sequence[str], replicates: Sequence[str], scales: Sequence[Scale], rule: Rule, *, cells: Sequence[str] = (),
    choosing: int = 0,
) -> ExternalPlan:  # fmt: skip
    """Make a plan; UsageError for what cannot be planned, and for names that no table of endpoints can have.

    `choosing`: of `replicates`, the first ones choose cells.
    """
    _check_names("group", groups, least=2)
    _check_names("seed", replicates, least=1)
    tasks = [scale.task for scale in scales]
    if tasks != [""]:
        _check_names("task", tasks, least=1)
    if bool(cells) != bool(choosing):
        raise UsageError("cells are chosen on seeds of their own: --cells and --choose go together")
    if cells:
        _check_names("cell", cells, least=2)
        if len(scales) > 1:
            raise UsageError("cells are of one task: --cells and --tasks exclude each other")
        if not 1 <= choosing < len(replicates):
            raise UsageError(f"--choose {choosing}: from 1 to {len(replicates) - 1} of the {len(replicates)} seeds")
    return plan_of(groups, replicates[choosing:], scales, rule, cells=cells, choosing=replicates[:choosing])


def plan_of(
    groups: Sequence[str], replicates: Sequence[str], scales: Sequence[Scale], rule: Rule, *,
    cells: Sequence[str] = (), choosing: Sequence[str] = (),
) -> ExternalPlan:  # fmt: skip
    """Make a plan over names that are known to be good; UsageError for a rule that does not go with them."""
    design = make_external_design(groups, len(replicates), scales, rule)
    return ExternalPlan(
        groups=tuple(groups), replicates=tuple(replicates), scales=tuple(scales), design=design, cells=tuple(cells),
        choosing=tuple(choosing),
    )  # fmt: skip


def make_external_design(groups: Sequence[str], replicates: int, scales: Sequence[Scale], rule: Rule) -> Design:
    """Make the design of all comparisons in every task of `scales`, and, of several tasks, of their mean."""
    _check_rule(groups, replicates, rule)
    tasks = [scale.task for scale in scales]
    if len(tasks) > 1:
        tasks.append(MEAN)
    duels = [(name, rule.control) for name in groups if name != rule.control] if rule.control else [
        (a, b) for place, a in enumerate(groups) for b in groups[place + 1 :]
    ]  # fmt: skip
    contrasts = tuple(Contrast(a=a, b=b, task=task) for task in tasks for a, b in duels)
    looks, sides = rule.looks or default_looks(replicates), ((0, 1),) * replicates
    bounded, whole = replicates >= LEAST_PAIRS, scales[0] if len(scales) == 1 else OF_MEAN
    futility = futility_of(rule.futility, sides, 1, looks, find_bounds) if bounded and rule.futility else None
    return Design(
        endpoint="given", test="t", alpha=rule.alpha, margin=whole.margin, measures=whole.measures,
        comparisons=contrasts, positions=1, adjusted=False, early_stop=rule.early_stop, looks=looks,
        boundaries=boundaries_of(rule.alpha, len(contrasts), sides, 1, looks, find_bounds) if bounded else (),
        anytime_after=None, evidence=1.0 / rule.alpha, futility=futility, worst=whole.worst,
    )  # fmt: skip


def own_design(design: Design, scales: Sequence[Scale], contrast: Contrast) -> Design:
    """Return `design` with margin, outcome and worst outcome of the task of `contrast`."""
    scale = next((scale for scale in scales if scale.task == contrast.task), OF_MEAN)
    worst = _worst_mean(scales) if scale is OF_MEAN else scale.worst
    return msgspec.structs.replace(design, margin=scale.margin, measures=scale.measures, worst=worst)


def _worst_mean(scales: Sequence[Scale]) -> float | None:
    """Return the mean of all worst outcomes, each in margins of its task; None where one is not declared."""
    each = [scale.outcome.sign * scale.worst / scale.margin for scale in scales if scale.worst is not None]
    return fsum(each) / len(each) if len(each) == len(scales) else None


def write_plan(plan: ExternalPlan) -> bytes:
    """Return the content of a plan's file."""
    file = _PlanFile(plan=msgspec.Raw(msgspec.json.encode(plan)), sha256=plan.digest)
    return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"


def save_plan(plan: ExternalPlan, path: Path) -> None:
    """Write a plan; UsageError where a file is there, for a plan is never replaced."""
    try:
        create_below(path.parent, path.name, write_plan(plan))
    except FileExistsError:
        raise UsageError(f"{path} exists already, and a plan is never replaced; name another file") from None


def read_plan(path: Path) -> ExternalPlan:
    """Read a plan's file; UsageError for one that is damaged or was changed."""
    content = read_regular(path, _LARGEST_BYTES).removeprefix(codecs.BOM_UTF8)
    try:
        file = _decode_file(content)
        plan = _decode_plan(file.plan)
        written = msgspec.json.format(bytes(file.plan), indent=-1)
    except UNREADABLE as error:
        if "'rank'" in str(error):
            raise UsageError(
                f"{path} decides by ranks, which do not test a mean and decide nothing any more: write a new plan with "
                "`esper-ab design`"
            ) from None
        raise UsageError(f"{path} is no plan of `esper-ab design`: {error}") from None
    if file.sha256 != _sha256(written):
        raise UsageError(f"{path} was changed after it was written: its sha256 is not that of its content")
    plan.__dict__["digest"] = file.sha256  # what the cached property would compute, of what the file says
    return plan


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _check_names(what: str, names: Sequence[str], *, least: int) -> None:
    """UsageError for names that no table of endpoints can have, and for one that is there twice."""
    if len(names) < least:
        raise UsageError(f"{what}s: at least {least} are needed")
    for place, name in enumerate(names):
        if len(name) > LONGEST_NAME:
            raise UsageError(f"{what} {visible_line(name, LONGEST_NAME)!r}: a name has up to {LONGEST_NAME} characters")
        if what in ("task", "cell") and name == MEAN:
            raise UsageError(f"{what} {name!r}: that is what the mean over all tasks is called")
        if not name or not name.isprintable() or name != name.strip():
            raise UsageError(f"{what} {name!r}: it needs a name that can be printed")
        if name in names[:place]:
            raise UsageError(f"{what} {name!r} is named twice")


def _check_rule(groups: Sequence[str], replicates: int, rule: Rule) -> None:
    if rule.control and rule.control not in groups:
        raise UsageError(Setting("control", rule.control), f": no such group; the groups are {', '.join(groups)}")
    if not 0.0 < rule.alpha < 0.5:
        raise UsageError(Setting("alpha", rule.alpha), ": above 0 and below 0.5")
    check_looks(rule.looks, replicates)
    if not rule.futility:
        return
    if not LEAST_KEPT <= rule.futility < 1.0:
        raise UsageError(Setting("futility", rule.futility), f": from {LEAST_KEPT} to below 1; 0 for no such stop")
    if not rule.early_stop or len(rule.looks or default_looks(replicates)) == 1:
        raise UsageError(
            Setting("futility", rule.futility), f" needs interim looks that may stop; they come with "
            f"{SEVERAL_LOOKS_FROM} replicates, or with ", Setting("looks"),
        )  # fmt: skip
