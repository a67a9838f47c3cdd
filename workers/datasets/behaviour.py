"""Fixed ways to grow a host, by which rewards are audited: those that a task names, and random schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np

from esper_ab.contracts.settings import DEFAULT_BLUEPRINTS, ControllerSettings
from workers.vocabulary import ALPHA_TARGETS, STYLES, TEMPOS

Choice = TypeVar("Choice")
End = Literal["hold", "fossilise", "prune"]
_ENDS: tuple[End, ...] = ("hold", "fossilise", "prune")
_LATEST_BIRTH, _LATEST_PRUNE = 10, 20  # steps
_STAGES = 3  # advances from germinated to holding
_LIVES_OF_PRUNED = (1, 9, 17)  # steps: a pruned slot is free again after 7
_GIVES_UP = 4  # steps after germination


@dataclass(frozen=True, kw_only=True)
class SeedLife:
    """What a schedule does with one seed: germinate it, advance it as far as it may, and end it."""

    slot: str
    step: int  # of germination, or the first possible one after it
    blueprint: str = "conv_light"
    style: str = "sigmoid_add"
    tempo: int = 3  # epochs
    alpha_target: float = 1.0  # below 1 the seed stays in BLENDING: it can neither hold nor become a fossil
    end: End = "fossilise"
    end_step: int = 0  # of a prune

    def entries(self) -> tuple[str, ...]:
        """Return its entries of a schedule."""
        how = f"blueprint={self.blueprint}:style={self.style}:tempo={self.tempo}:alpha_target={self.alpha_target}"
        born = (f"{self.step}:germinate:{self.slot}:{how}", *[f"{self.step}:advance:{self.slot}"] * _STAGES)
        if self.end == "hold":
            return born
        if self.end == "fossilise":
            return (*born, f"{self.step}:fossilize:{self.slot}")
        return (*born, f"{self.end_step}:prune:{self.slot}")

    @property
    def words(self) -> str:
        """What it does, for a table."""
        ends = {"hold": "kept", "fossilise": "fossilised", "prune": f"pruned at {self.end_step}"}
        what = ends[self.end] if self.alpha_target == 1.0 or self.end == "prune" else "blends for ever"
        target = "" if self.alpha_target == 1.0 else f" to alpha {self.alpha_target}"
        return f"{self.slot} {self.blueprint} at {self.step}{target}, {what}"


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """A way to grow: the lives that a schedule gives to seeds, or a controller without settings."""

    name: str
    lives: tuple[SeedLife, ...] = ()
    controller: str = "schedule"
    words: str = ""  # "": those of its lives

    @property
    def settings(self) -> ControllerSettings:
        """The controller that does it."""
        return ControllerSettings(
            name=self.controller, schedule=tuple(entry for life in self.lives for entry in life.entries())
        )

    @property
    def description(self) -> str:
        """What it does, for a table."""
        return self.words or "; ".join(life.words for life in self.lives)


@dataclass(frozen=True, kw_only=True)
class Behaviours:
    """What a task offers for a reward audit."""

    reference: tuple[Behaviour, ...]
    draw: Callable[[str, np.random.Generator], Behaviour]  # (name, generator) -> a random one
    vary: Callable[[str, Behaviour, np.random.Generator], Behaviour]  # (name, parent, generator) -> a neighbour


def growing(slots: tuple[str, ...]) -> Behaviours:
    """Return behaviours for a task of growth with these slots; they name blueprints of the default list."""
    return Behaviours(
        reference=_reference(slots),
        draw=lambda name, rng: Behaviour(name=name, lives=_drawn(slots, rng)),
        vary=lambda name, parent, rng: Behaviour(name=name, lives=_varied(slots, parent.lives, rng)),
    )


def _reference(slots: tuple[str, ...]) -> tuple[Behaviour, ...]:
    whole = tuple(SeedLife(slot=slot, step=step) for step, slot in enumerate(slots, start=1))
    first = SeedLife(slot=slots[0], step=1, blueprint="conv_heavy", end="hold")

    def each(**changes: object) -> tuple[SeedLife, ...]:
        return tuple(replace(life, **changes) for life in whole)  # type: ignore[arg-type]

    def every(what: str) -> str:
        return f"{what} in every slot"

    pruned = tuple(
        SeedLife(slot=slot, step=born + place, end="prune", end_step=born + place + _GIVES_UP)
        for born in _LIVES_OF_PRUNED for place, slot in enumerate(slots)
    )  # fmt: skip
    return (
        Behaviour(name="schedule", lives=whole, words=every("conv_light") + ", all fossilised"),
        Behaviour(name="never fossilised", lives=each(end="hold"), words=every("conv_light") + ", kept in HOLDING"),
        Behaviour(name="blending for ever", lives=each(alpha_target=0.7), words=every("conv_light") + " at alpha 0.7"),
        Behaviour(name="only norms", lives=each(blueprint="norm"), words=every("norm") + ", all fossilised"),
        Behaviour(name="one good seed", lives=(first,)),
        Behaviour(name="the same fossilised", lives=(replace(first, end="fossilise"),)),
        Behaviour(name="grow everything", lives=each(blueprint="conv_heavy"), words=every("conv_heavy, a fossil")),
        Behaviour(name="prune everything", lives=pruned, words="a conv_light in every slot, pruned and grown again"),
        Behaviour(name="wait", controller="wait", words="no seed at all"),
        Behaviour(name="heuristic", controller="heuristic", words="the rules of the heuristic controller"),
        Behaviour(name="random operations", controller="random", words="any valid operation at every step"),
    )


def _drawn(slots: tuple[str, ...], rng: np.random.Generator) -> tuple[SeedLife, ...]:
    """Draw a life for one slot, or for several."""
    chosen = rng.permutation(len(slots))[: rng.integers(1, len(slots) + 1)]
    return tuple(_random_life(slots[place], rng) for place in sorted(chosen.tolist()))


def _random_life(slot: str, rng: np.random.Generator) -> SeedLife:
    step = int(rng.integers(1, _LATEST_BIRTH + 1))
    return SeedLife(
        slot=slot, step=step, blueprint=_any(DEFAULT_BLUEPRINTS, rng), style=_any(STYLES, rng)[0],
        tempo=_any(TEMPOS, rng), alpha_target=_any(ALPHA_TARGETS, rng), end=_any(_ENDS, rng),
        end_step=int(rng.integers(step + 2, _LATEST_PRUNE + 1)),
    )  # fmt: skip


def _any(choices: tuple[Choice, ...], rng: np.random.Generator) -> Choice:
    return choices[int(rng.integers(len(choices)))]


def _varied(
    slots: tuple[str, ...], lives: tuple[SeedLife, ...], rng: np.random.Generator
) -> tuple[SeedLife, ...]:
    """Redraw one or all properties of one life, or add or remove a life."""
    free = [slot for slot in slots if slot not in {life.slot for life in lives}]
    what = int(rng.integers(4))
    if free and (what == 0 or not lives):
        added = _random_life(_any(tuple(free), rng), rng)
        return tuple(sorted((*lives, added), key=lambda life: slots.index(life.slot)))
    place = int(rng.integers(len(lives)))
    if what == 1 and len(lives) > 1:
        return lives[:place] + lives[place + 1 :]
    drawn = _random_life(lives[place].slot, rng)
    if what > 1:
        name = _any(("step", "blueprint", "style", "tempo", "alpha_target", "end"), rng)
        drawn = replace(lives[place], **{name: getattr(drawn, name)})
        drawn = replace(drawn, end_step=max(drawn.end_step, drawn.step + 2))
    return (*lives[:place], drawn, *lives[place + 1 :])
