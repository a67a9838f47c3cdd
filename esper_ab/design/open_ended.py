"""The seeds that an open-ended plan uses until it claims a true difference, simulated for normal outcomes. Pure."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from esper_ab.design.t_process import TProcess, draw, t_values
from esper_ab.stats.anytime_t import least_t
from esper_ab.stats.least_pairs import LEAST_PAIRS

SHARE = 0.8  # of experiments that need no more seeds than `most`, as a plan with a maximum has 80 % power
_PATHS = 2_000  # standard error of the mean: about 1 %
_EVERY_LOOK_UP_TO = 60  # pairs; further looks are simulated in steps of 2 %, which adds at most as much
_STEP = 1.02
_LIMIT = 8  # times the seeds of a plan with a maximum, at which a path ends


class OpenEndedSeeds(msgspec.Struct, frozen=True, kw_only=True):
    """How many seeds an open-ended plan uses before it claims a true difference."""

    mean: float
    most: int  # of SHARE of experiments


def open_ended_seeds(effect: float, evidence: float, columns: int, fewest: int) -> OpenEndedSeeds:
    """Simulate one comparison that claims at an e-value of `evidence`; the pairs differ by `effect` SDs.

    `columns`: of the design, the difference and the positions. `fewest`: the seeds of a plan with a maximum, which
    bounds how long a path is followed.
    """
    looks = _looks(max(LEAST_PAIRS, columns + 2), _LIMIT * fewest)
    df = tuple(look - columns for look in looks)
    process = TProcess(looks=looks, information=tuple(map(float, looks)), df=df)
    rng = np.random.default_rng([len(looks), fewest, columns])
    t = t_values(process, draw(process, _PATHS, rng), effect)
    bounds = np.array([least_t(look - columns, look, evidence) for look in looks])
    claims = t >= bounds[:, None]
    last_looks = np.where(claims.any(axis=0), np.argmax(claims, axis=0), len(looks) - 1)
    seeds = np.sort(np.asarray(looks)[last_looks])
    return OpenEndedSeeds(mean=float(seeds.mean()), most=int(seeds[math.ceil(SHARE * _PATHS) - 1]))


def _looks(first_look: int, largest: int) -> tuple[int, ...]:
    """Return the numbers of pairs at which paths are looked at."""
    looks = []
    look = first_look
    while look <= largest:
        looks.append(look)
        look = look + 1 if look < _EVERY_LOOK_UP_TO else math.ceil(_STEP * look)
    return tuple(looks)
