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
    nominal_p = {n: NOMINAL[n][-len(looks) :] if len(looks) > 1 else (0.05 / n,) for n in NOMINAL}
    boundaries = tuple(Boundary(open=n, alpha=0.05 / n, nominal_p=nominal_p[n]) for n in range(len(comparisons), 0, -1))
    defaults = {"comparisons": tuple(comparisons), "adjusted": True, "looks": looks, "boundaries": boundaries}
    return msgspec.structs.replace(compared_designs.design(6), **defaults | changes)


def pairs_from(differences, b=50.0):
    """Return a pair per difference, with alternating positions; None is a lost pair."""
    replicates = [r for r, d in enumerate(differences) if d is not None]
    return compared_designs.pairs_of([b + differences[r] for r in replicates], [b] * len(replicates), replicates)


DULL = [6.0, -8.0, -6.0, 8.0] * 10  # neither different nor shown to be equal


def spread(n, mean, sd=1.0):
    """Return the first n of a fixed series of differences with about this mean and SD."""
    return (mean + sd * np.random.default_rng(4).standard_normal(40))[:n].tolist()


def anytime(**changes):
    return design(**{"looks": (), "boundaries": (), "anytime_after": 0, **changes})


@st.composite
def situations(draw):
    """Draw a design, pairs for its comparisons, and a number of replicates.

    Some replicates are lost, and some groups are far apart.
    """
    comparisons = draw(st.sampled_from([(AB,), (AB, AC), (AB, AC, BC)]))
    kind = draw(st.sampled_from(["looks", "open-ended", "extended"]))
    drawn_design = design(comparisons, early_stop=draw(st.booleans()), adjusted=draw(st.booleans()))
    if kind == "open-ended":
        drawn_design = msgspec.structs.replace(drawn_design, looks=(), boundaries=(), anytime_after=0)
    if kind == "extended":
        drawn_design = extended(drawn_design, 20)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    means = draw(st.lists(st.sampled_from([50.0, 50.5, 52.0, 58.0]), min_size=3, max_size=3))
    sd = draw(st.sampled_from([0.2, 1.0, 4.0]))
    outcomes = {name: mean + sd * rng.standard_normal(26) for name, mean in zip("abc", means, strict=True)}
    lost_replicates = draw(st.sets(st.integers(0, 25), max_size=6))
    replicates = [r for r in range(26) if r not in lost_replicates]
    pairs = {
        contrast: compared_designs.pairs_of(
            outcomes[contrast.a][replicates], outcomes[contrast.b][replicates], replicates
        )
        for contrast in comparisons
    }
    return drawn_design, pairs, draw(st.integers(0, 26))
