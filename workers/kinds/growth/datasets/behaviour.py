"""Fixed ways to grow a host, used to audit rewards: reference behaviours and random schedules."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np

from esper_ab.contracts.settings import DEFAULT_BLUEPRINTS, ControllerSettings
from workers.kinds.growth.vocabulary import ALPHA_TARGETS, STYLES, TEMPOS

Choice = TypeVar("Choice")
End = Literal["hold", "fossilise", "prune"]
_ENDS: tuple[End, ...] = ("hold", "fossilise", "prune")
_LATEST_BIRTH = 10  # steps
_LATEST_PRUNE = 20  # steps
_STAGES = 3  # advances from germinated to holding
_LIVES_OF_PRUNED = (1, 9, 17)  # steps: a pruned slot is free again after 7
_GIVES_UP = 4  # steps after germination


@dataclass(frozen=True, kw_only=True)
class SeedLife:
    """One seed of a schedule: when it germinates, how far it advances, and how it ends."""

    slot: str
    step: int  # germination step, or the first possible one after it
    blueprint: str = "conv_light"
    style: str = "sigmoid_add"
    tempo: int = 3  # epochs
    alpha_target: float = 1.0  # below 1 the seed stays in BLENDING and can neither hold nor fossilise
    end: End = "fossilise"
    end_step: int = 0  # of a prune

    def entries(self) -> tuple[str, ...]:
        """Return the schedule entries for this seed."""
        head_words = (
            f"blueprint={self.blueprint}:style={self.style}:tempo={self.tempo}:alpha_target={self.alpha_target}"
        )
        germination = (
            f"{self.step}:germinate:{self.slot}:{head_words}",
            *[f"{self.step}:advance:{self.slot}"] * _STAGES,
        )
        if self.end == "hold":
            return germination
        if self.end == "fossilise":
            return (*germination, f"{self.step}:fossilize:{self.slot}")
        return (*germination, f"{self.end_step}:prune:{self.slot}")

    @property
    def words(self) -> str:
        """Return a short description for a table."""
        ends = {"hold": "kept", "fossilise": "fossilised", "prune": f"pruned at {self.end_step}"}
        if self.alpha_target == 1.0 or self.end == "prune":
            end_words = ends[self.end]
        else:
            end_words = "blends for ever"
        target = "" if self.alpha_target == 1.0 else f" to alpha {self.alpha_target}"
        return f"{self.slot} {self.blueprint} at {self.step}{target}, {end_words}"


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """A way to grow a host: a schedule of seed lives, or a controller without settings."""

    name: str
    lives: tuple[SeedLife, ...] = ()
    controller: str = "schedule"
    words: str = ""  # "": `description` lists its lives

    @property
    def settings(self) -> ControllerSettings:
        """Return the settings of the controller that produces this behaviour."""
        schedule = itertools.chain(*(life.entries() for life in self.lives))
        return ControllerSettings(name=self.controller, schedule=tuple(schedule))

    @property
    def description(self) -> str:
        """Return a short description for a table."""
        return self.words or "; ".join(life.words for life in self.lives)


@dataclass(frozen=True)
class Behaviours:
    """The behaviours available to a reward audit for these slots; they use blueprints of the default list."""

    slots: tuple[str, ...]

    @property
    def reference(self) -> tuple[Behaviour, ...]:
        """Return the reference behaviours, which show what a reward pays for."""
        full_lives = tuple(SeedLife(slot=slot, step=step) for step, slot in enumerate(self.slots, start=1))
        first_life = SeedLife(slot=self.slots[0], step=1, blueprint="conv_heavy", end="hold")

        def lives_in_all_slots(**changes: object) -> tuple[SeedLife, ...]:
            return tuple(replace(life, **changes) for life in full_lives)  # type: ignore[arg-type]

        pruned_lives = []
        for generation in _LIVES_OF_PRUNED:
            for birth_step, slot in enumerate(self.slots, start=generation):
                pruned_lives.append(SeedLife(slot=slot, step=birth_step, end="prune", end_step=birth_step + _GIVES_UP))
        return (
            Behaviour(name="schedule", lives=full_lives, words="conv_light in every slot, all fossilised"),
            Behaviour(
                name="never fossilised",
                lives=lives_in_all_slots(end="hold"),
                words="conv_light in every slot, kept in HOLDING",
            ),
            Behaviour(
                name="blending for ever",
                lives=lives_in_all_slots(alpha_target=0.7),
                words="conv_light in every slot at alpha 0.7",
            ),
            Behaviour(
                name="only norms",
                lives=lives_in_all_slots(blueprint="norm"),
                words="norm in every slot, all fossilised",
            ),
            Behaviour(name="one good seed", lives=(first_life,)),
            Behaviour(name="the same fossilised", lives=(replace(first_life, end="fossilise"),)),
            Behaviour(
                name="grow everything",
                lives=lives_in_all_slots(blueprint="conv_heavy"),
                words="conv_heavy, a fossil in every slot",
            ),
            Behaviour(
                name="prune everything",
                lives=tuple(pruned_lives),
                words="a conv_light in every slot, pruned and grown again",
            ),
            Behaviour(name="wait", controller="wait", words="no seed at all"),
            Behaviour(name="heuristic", controller="heuristic", words="the rules of the heuristic controller"),
            Behaviour(name="random operations", controller="random", words="any valid operation at every step"),
        )

    def draw(self, name: str, rng: np.random.Generator) -> Behaviour:
        """Draw a behaviour with a random life in one slot or several."""
        chosen_slots = rng.permutation(len(self.slots))[: rng.integers(1, len(self.slots) + 1)]
        lives = tuple(_random_life(self.slots[place], rng) for place in sorted(chosen_slots.tolist()))
        return Behaviour(name=name, lives=lives)

    def vary(self, name: str, parent: Behaviour, rng: np.random.Generator) -> Behaviour:
        """Return a variation of `parent`: a life is added or removed, or properties of a life are redrawn."""
        return Behaviour(name=name, lives=self._varied(parent.lives, rng))

    def _varied(self, lives: tuple[SeedLife, ...], rng: np.random.Generator) -> tuple[SeedLife, ...]:
        free_slots = [slot for slot in self.slots if slot not in {life.slot for life in lives}]
        change_kind = int(rng.integers(4))
        if free_slots and (change_kind == 0 or not lives):
            added_life = _random_life(_any(tuple(free_slots), rng), rng)
            return tuple(sorted((*lives, added_life), key=lambda life: self.slots.index(life.slot)))
        place = int(rng.integers(len(lives)))
        if change_kind == 1 and len(lives) > 1:
            return lives[:place] + lives[place + 1 :]
        drawn_life = _random_life(lives[place].slot, rng)
        if change_kind > 1:
            name = _any(("step", "blueprint", "style", "tempo", "alpha_target", "end"), rng)
            drawn_life = replace(lives[place], **{name: getattr(drawn_life, name)})
            drawn_life = replace(drawn_life, end_step=max(drawn_life.end_step, drawn_life.step + 2))
        return (*lives[:place], drawn_life, *lives[place + 1 :])


def _random_life(slot: str, rng: np.random.Generator) -> SeedLife:
    step = int(rng.integers(1, _LATEST_BIRTH + 1))
    return SeedLife(
        slot=slot,
        step=step,
        blueprint=_any(DEFAULT_BLUEPRINTS, rng),
        style=_any(STYLES, rng)[0],
        tempo=_any(TEMPOS, rng),
        alpha_target=_any(ALPHA_TARGETS, rng),
        end=_any(_ENDS, rng),
        end_step=int(rng.integers(step + 2, _LATEST_PRUNE + 1)),
    )


def _any(choices: tuple[Choice, ...], rng: np.random.Generator) -> Choice:
    return choices[int(rng.integers(len(choices)))]
