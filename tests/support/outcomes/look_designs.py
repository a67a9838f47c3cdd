"""Designs with looks at 6, 10, 14, 20, pairs made from differences, and situations of every kind."""

import msgspec
import numpy as np
from hypothesis import strategies as st

from esper_ab.design.design import Boundary, Contrast, extended
from support.outcomes import compared_designs

AB = Contrast(a="a", b="b")
AC = Contrast(a="a", b="c")
BC = Contrast(a="b", b="c")
NOMINAL = {  # of looks 6, 10, 14, 20, by comparisons open; near the calibrated ones
    1: (8.5e-5, 0.0030, 0.0131, 0.0435),
    2: (7.6e-6, 0.00072, 0.0049, 0.0222),
    3: (1.7e-6, 0.0003, 0.003, 0.015),
}


def design(comparisons=(AB,), **changes):
    looks = changes.pop("looks", (6, 10, 14, 20))
    nominal = {n: NOMINAL[n][-len(looks) :] if len(looks) > 1 else (0.05 / n,) for n in NOMINAL}
    boundaries = tuple(Boundary(open=n, alpha=0.05 / n, nominal_p=nominal[n]) for n in range(len(comparisons), 0, -1))
    known = {"comparisons": tuple(comparisons), "adjusted": True, "looks": looks, "boundaries": boundaries}
    return msgspec.structs.replace(compared_designs.design(6), **known | changes)


def pairs_from(differences, b=50.0):
    """A pair per difference, sides alternating; None: lost."""
    kept = [r for r, d in enumerate(differences) if d is not None]
    return list(compared_designs.pairs_of([b + differences[r] for r in kept], [b] * len(kept), kept))


DULL = [6.0, -8.0, -6.0, 8.0] * 10  # neither different nor shown to be equal


def spread(n, mean, sd=1.0):
    """n differences of about this mean and SD; the same for every n, so that more is a continuation."""
    return (mean + sd * np.random.default_rng(4).standard_normal(40))[:n].tolist()


def anytime(**changes):
    return design(**{"looks": (), "boundaries": (), "anytime_after": 0, **changes})


@st.composite
def situations(draw):
    """A design and pairs, some lost, some groups far apart."""
    comparisons = draw(st.sampled_from([(AB,), (AB, AC), (AB, AC, BC)]))
    kind = draw(st.sampled_from(["looks", "open-ended", "extended"]))
    known = design(comparisons, early_stop=draw(st.booleans()), adjusted=draw(st.booleans()))
    if kind == "open-ended":
        known = msgspec.structs.replace(known, looks=(), boundaries=(), anytime_after=0)
    if kind == "extended":
        known = extended(known, 20)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    means = draw(st.lists(st.sampled_from([50.0, 50.5, 52.0, 58.0]), min_size=3, max_size=3))
    sd = draw(st.sampled_from([0.2, 1.0, 4.0]))
    ends = {name: mean + sd * rng.standard_normal(26) for name, mean in zip("abc", means, strict=True)}
    lost = draw(st.sets(st.integers(0, 25), max_size=6))
    kept = [r for r in range(26) if r not in lost]
    pairs = {of: list(compared_designs.pairs_of(ends[of.a][kept], ends[of.b][kept], kept)) for of in comparisons}
    return known, pairs, draw(st.integers(0, 26))
