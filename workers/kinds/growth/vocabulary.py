"""Integers shared by rewards, growth, controllers and policies: stages, ops, and the choices of each action head.

Pure; no torch. The order of these tuples is part of the format of saved policies: it defines the head sizes and the
action indices.
"""

from __future__ import annotations

from enum import IntEnum


class Stage(IntEnum):
    """Stage of a seed's life. 5 is reserved and never used. An empty slot is DORMANT."""

    UNKNOWN = 0
    DORMANT = 1
    GERMINATED = 2
    TRAINING = 3
    BLENDING = 4
    HOLDING = 6
    FOSSILIZED = 7
    PRUNED = 8
    EMBARGOED = 9
    RESETTING = 10


class Op(IntEnum):
    """Operation of a decision: the values of the op head."""

    WAIT = 0
    GERMINATE = 1
    SET_ALPHA_TARGET = 2
    PRUNE = 3
    FOSSILIZE = 4
    ADVANCE = 5


# Plain integers for arrays: numpy is several times slower when it compares with an enum member.
UNKNOWN, DORMANT, GERMINATED, TRAINING, BLENDING, HOLDING, FOSSILIZED, PRUNED, EMBARGOED, RESETTING = map(int, Stage)
WAIT, GERMINATE, SET_ALPHA_TARGET, PRUNE, FOSSILIZE, ADVANCE = map(int, Op)


class Curve(IntEnum):
    """Shape of an alpha ramp: the values of the alpha_curve head."""

    LINEAR = 0
    COSINE = 1
    SIGMOID = 2


class Algorithm(IntEnum):
    """How a seed's output is combined with the host's features. The identity path keeps its gradient."""

    ADD = 0
    MULTIPLY = 1
    GATE = 2


# The style head chooses the ramp of the first blend and the algorithm together.
STYLES: tuple[tuple[str, Curve, Algorithm], ...] = (
    ("sigmoid_add", Curve.SIGMOID, Algorithm.ADD),
    ("linear_add", Curve.LINEAR, Algorithm.ADD),
    ("cosine_add", Curve.COSINE, Algorithm.ADD),
    ("linear_multiply", Curve.LINEAR, Algorithm.MULTIPLY),
    ("linear_gate", Curve.LINEAR, Algorithm.GATE),
)
TEMPOS = (3, 5, 8)  # epochs of the first ramp
ALPHA_TARGETS = (0.5, 0.7, 1.0)
SPEEDS = (0, 3, 5, 8)  # epochs of a retarget or a scheduled prune; 0 is instant
CURVES = tuple(Curve)

# Heads are sampled in this order; each may depend on all earlier ones.
HEADS = ("op", "slot", "blueprint", "style", "tempo", "alpha_target", "alpha_speed", "alpha_curve")
OP, SLOT, BLUEPRINT, STYLE, TEMPO, ALPHA_TARGET, ALPHA_SPEED, ALPHA_CURVE = range(len(HEADS))


def blend(style: str, tempo: int, alpha_target: float) -> dict[int, int]:
    """Return the choices, by head, for a GERMINATE whose seed will blend with this style, tempo and alpha target."""
    styles = [name for name, _, _ in STYLES]
    return {STYLE: styles.index(style), TEMPO: TEMPOS.index(tempo), ALPHA_TARGET: ALPHA_TARGETS.index(alpha_target)}


def head_sizes(n_slots: int, n_blueprints: int) -> tuple[int, ...]:
    """Return the number of choices of each head, in the order of HEADS."""
    return (len(Op), n_slots, n_blueprints, len(STYLES), len(TEMPOS), len(ALPHA_TARGETS), len(SPEEDS), len(CURVES))
