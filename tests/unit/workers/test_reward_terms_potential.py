"""The potential telescopes over whole lives: seeds that appear, advance, stay, vanish, in several slots."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reward_facts import make_facts

from esper_ab.contracts.settings import RewardSettings
from workers.reward_terms import birth_bonus, potential
from workers.rewards import shaped, simplified
from workers.vocabulary import Op, Stage

NEXT = {
    Stage.GERMINATED: Stage.TRAINING,
    Stage.TRAINING: Stage.BLENDING,
    Stage.BLENDING: Stage.HOLDING,
    Stage.HOLDING: Stage.FOSSILIZED,
}
SETTINGS = RewardSettings(disable_terminal_reward=True)
N_SLOTS = 3
scripts = st.lists(st.tuples(st.integers(0, N_SLOTS - 1), st.booleans(), st.booleans()), min_size=1, max_size=30)


class Slot:
    """One slot's life: empty, or a stage with its epochs and the module's age."""

    def __init__(self):
        self.stage, self.epochs, self.age = None, 0, 0

    def measure(self):
        if self.stage is not None:
            self.epochs, self.age = self.epochs + 1, self.age + 1

    def choose(self, act, prune):
        if not act or self.stage == Stage.FOSSILIZED:
            return Op.WAIT
        if self.stage is None:
            return Op.GERMINATE
        return Op.PRUNE if prune else Op.FOSSILIZE if self.stage == Stage.HOLDING else Op.ADVANCE

    def execute(self, op):
        if op == Op.GERMINATE:
            self.stage, self.epochs, self.age = Stage.GERMINATED, 0, 0
        elif op == Op.PRUNE:
            self.stage = None
        elif op in (Op.ADVANCE, Op.FOSSILIZE):
            self.stage, self.epochs = NEXT[self.stage], 0


def lives(script):
    """Facts of every decision of one episode, as training builds them."""
    slots, before, history = [Slot() for _ in range(N_SLOTS)], np.zeros((1, N_SLOTS)), []
    for step, (chosen, act, prune) in enumerate(script, 1):
        for slot in slots:
            slot.measure()
        op = slots[chosen].choose(act, prune)
        facts = make_facts(
            (1, N_SLOTS),
            step,
            len(script),
            op=op,
            slot=-1 if op == Op.WAIT else chosen,
            present=[slot.stage is not None for slot in slots],
            stage=[slot.stage or 0 for slot in slots],
            epochs_in_stage=[slot.epochs for slot in slots],
            age=[slot.age for slot in slots],
            potential_before=before,
        )
        before = potential(facts.seeds, SETTINGS)
        history.append(facts)
        slots[chosen].execute(op)
    return history


def discounted(rewards):
    return sum(SETTINGS.gamma**t * reward for t, reward in enumerate(rewards))


def standing(history):
    """pbrs_weight * gamma^T * Phi of what stands at the last decision."""
    weight = SETTINGS.pbrs_weight * SETTINGS.gamma ** len(history)
    return weight * potential(history[-1].seeds, SETTINGS).sum()


@given(scripts)
def test_simplified_telescopes_and_shaped_does_with_its_birth_bonus(script):
    history = lives(script)
    shaping = [simplified.reward(facts, SETTINGS)[0] + 0.01 * (facts.op[0] != Op.WAIT) for facts in history]
    assert discounted(shaping) == pytest.approx(standing(history), abs=1e-9)
    births = [birth_bonus(SETTINGS) * (facts.op[0] == Op.GERMINATE) for facts in history]
    shaping = [shaped.terms(facts, SETTINGS)["pbrs"][0] + birth for facts, birth in zip(history, births, strict=True)]
    unborn = SETTINGS.gamma ** (len(history) - 1) * births[-1]  # germinated by the very last decision
    assert discounted(shaping) == pytest.approx(standing(history) + unborn, abs=1e-9)


def test_disabled_everywhere():
    off = RewardSettings(disable_pbrs=True)
    facts = make_facts(present=[[True]], stage=Stage.HOLDING, potential_before=9.0)
    assert shaped.terms(facts, off)["pbrs"][0] == 0.0
    assert simplified.reward(facts, off)[0] == 0.0
    assert shaped.terms(make_facts(op=Op.GERMINATE, slot=0), off)["action_shaping"][0] == pytest.approx(-0.02)
