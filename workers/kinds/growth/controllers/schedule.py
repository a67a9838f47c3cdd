"""Controller with a fixed schedule: the same operations in every environment, regardless of any measurement.

An entry is "step:op:slot[:head=value…]", for example "1:germinate:early:blueprint=conv_light:tempo=3". Each entry is
executed once per environment, at its step or as soon afterwards as its operation is valid. Only one operation runs per
step. If several entries are due, the first valid one runs, ordered by step and then by position in the list.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esper_ab.contracts.settings import ControllerSettings
from workers.arrays import Floats, Ints, all_true, int_zeros
from workers.environments import Controller
from workers.kinds.growth.rules.masks import DecisionView, follow
from workers.kinds.growth.vocabulary import ALPHA_TARGETS, CURVES, HEADS, OP, SLOT, SPEEDS, STYLES, TEMPOS, Op

_GERMINATE_DEFAULTS = {"blueprint": "conv_light", "style": "sigmoid_add", "tempo": "5", "alpha_target": "1.0"}
_HEADS_BY_FORM = {
    Op.GERMINATE: ("blueprint", "style", "tempo", "alpha_target"),
    Op.SET_ALPHA_TARGET: ("style", "alpha_target", "alpha_speed", "alpha_curve"),
    Op.PRUNE: ("alpha_speed", "alpha_curve"),
    Op.FOSSILIZE: (),
    Op.ADVANCE: (),
}
_STEP_DIGITS = 9  # longest step number accepted: an unbounded one would overflow int64


def _labels(blueprints: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the labels of each head's values, in order."""
    return {
        "blueprint": blueprints,
        "style": tuple(name for name, _, _ in STYLES),
        "tempo": tuple(str(epochs) for epochs in TEMPOS),
        "alpha_target": tuple(str(target) for target in ALPHA_TARGETS),
        "alpha_speed": tuple(str(epochs) for epochs in SPEEDS),
        "alpha_curve": tuple(curve.name.lower() for curve in CURVES),
    }


def _index(entry: str, kind_words: str, value: str, choices: tuple[str, ...]) -> int:
    if value not in choices:
        raise ValueError(f"schedule entry {entry!r}: no {kind_words} {value!r}; choose from {', '.join(choices)}")
    return choices.index(value)


def _is_step(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _STEP_DIGITS and int(text) >= 1


def _parse(entry: str, slots: tuple[str, ...], blueprints: tuple[str, ...]) -> tuple[int, list[int]]:
    """Return the step of one entry and its choice for every head."""
    parts = entry.split(":")
    if len(parts) < 3 or not _is_step(parts[0]):
        steps_words = f"with steps from 1 to {'9' * _STEP_DIGITS}"
        raise ValueError(f"schedule entry {entry!r} is not step:op:slot[:head=value…], {steps_words}")
    step, op, slot, *items = parts
    ops = tuple(op.name.lower() for op in _HEADS_BY_FORM)
    wish = [0] * len(HEADS)
    chosen_op = Op[ops[_index(entry, "op", op, ops)].upper()]
    wish[OP] = chosen_op
    wish[SLOT] = _index(entry, "slot", slot, slots)
    values: dict[str, str] = {}
    for item in items:
        head, equals_sign, value = item.partition("=")
        if not equals_sign or head not in _HEADS_BY_FORM[chosen_op]:
            allowed_heads = ", ".join(_HEADS_BY_FORM[chosen_op]) or "no further heads"
            raise ValueError(f"schedule entry {entry!r}: {item!r} is not head=value; {op} takes {allowed_heads}")
        if head in values:
            raise ValueError(f"schedule entry {entry!r}: {head} is given twice")
        values[head] = value
    if chosen_op == Op.GERMINATE:
        values = _GERMINATE_DEFAULTS | values
    missing_heads = [head for head in ("style", "alpha_target") if head not in values]
    if chosen_op == Op.SET_ALPHA_TARGET and missing_heads:  # a default would silently change the algorithm
        raise ValueError(f"schedule entry {entry!r}: {op} needs {', '.join(f'{head}=…' for head in missing_heads)}")
    labels = _labels(blueprints)
    for head, value in values.items():
        wish[HEADS.index(head)] = _index(entry, head, value, labels[head])
    return int(step), wish


def default_plan(slots: tuple[str, ...]) -> tuple[str, ...]:
    """Return the default schedule: germinate conv_light in every slot, one per step in network order; fossilise all."""
    germinations = [f"{step}:germinate:{slot}:tempo=3" for step, slot in enumerate(slots, start=1)]
    advances = list[str]()
    for slot in slots:
        advances += [f"{len(slots)}:advance:{slot}"] * 3
    fossilisations = [f"{len(slots)}:fossilize:{slot}" for slot in slots]
    return (*germinations, *advances, *fossilisations)


class Schedule(Controller[DecisionView]):
    """Scheduled controller; `steps` [1 or E, entry] and `wishes` [1 or E, entry, head] are in execution order."""

    def __init__(self, steps: Ints, wishes: Ints) -> None:
        self._steps = steps
        self._wishes = wishes
        self._pending = all_true(steps.shape)

    @classmethod
    def side_by_side(cls, schedules: Sequence[Schedule], hosts: int) -> Schedule:
        """Return one controller that follows the one-row schedule i in environments i·hosts … (i + 1)·hosts - 1."""
        longest_schedule = max(schedule._steps.shape[1] for schedule in schedules)
        steps = np.full((len(schedules), longest_schedule), np.iinfo(np.int64).max)  # never due
        wishes = int_zeros((len(schedules), longest_schedule, len(HEADS)))
        for row, schedule in enumerate(schedules):
            entries = schedule._steps.shape[1]
            steps[row, :entries] = schedule._steps[0]
            wishes[row, :entries] = schedule._wishes[0]
        return cls(np.repeat(steps, hosts, axis=0), np.repeat(wishes, hosts, axis=0))

    def begin_episode(self, n_envs: int) -> None:
        """Mark all entries as pending."""
        self._pending = all_true((n_envs, self._steps.shape[1]))

    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        """Return decisions [E, head]: the first due entry that is valid, or WAIT."""
        n_envs = len(self._pending)
        decisions = int_zeros((n_envs, len(HEADS)))
        undecided_mask = all_true(n_envs)
        due_mask = (self._steps <= view.step) & self._pending
        for entry in np.flatnonzero(due_mask.any(axis=0)):
            wishes = np.broadcast_to(self._wishes[:, entry], decisions.shape)
            wanted_decisions, permitted_mask = follow(view.masks, wishes)
            now_mask = undecided_mask & permitted_mask & due_mask[:, entry]
            decisions[now_mask] = wanted_decisions[now_mask]
            self._pending[now_mask, entry] = False
            undecided_mask &= ~now_mask
        return decisions


def make(settings: ControllerSettings, slots: tuple[str, ...], blueprints: tuple[str, ...]) -> Schedule:
    """Return the controller for `settings.schedule`, or for the default; ValueError if an entry cannot be parsed."""
    entries = [_parse(entry, slots, blueprints) for entry in settings.schedule or default_plan(slots)]
    entries.sort(key=lambda entry: entry[0])  # stable: the order of the list within a step
    steps = [step for step, _ in entries]
    wishes = [wish for _, wish in entries]
    return Schedule(np.array([steps]), np.array([wishes], dtype=np.int64))
