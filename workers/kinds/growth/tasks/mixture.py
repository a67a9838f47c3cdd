"""A family of generated 12x12 images: the slot where a seed helps differs between hosts and shows in the accuracy.

All contexts have the same four labels, and at most one seed helps:

- `texture`: gratings of four orientations, fine and noisy. They survive the first max-pool but not the second.
- `relation`: a bright and a dark pixel, far apart in noise; the class is the direction from the bright to the dark one.
  A convolution sees both only where the map is small.
- `level`: one grey level with noise; the class is its band (of twelve) modulo four. A host gets so few of these images
  that a convolution in an early slot does harm.
"""

from __future__ import annotations

import numpy as np

from workers.arrays import Floats, Ints
from workers.kinds.growth.datasets.generated import SampleDraws, refuse_folder
from workers.kinds.growth.datasets.task import Context, HostSpec, Split, Splits, Task

_SIDE = 12
_CLASSES = 4
_SIZES = (512, 256, 256)  # of each context
_CYCLES = (2.5, 3.5)  # per image, of a grating
_GRATING_NOISE = 1.0  # standard deviations
_MARKS_NOISE = 0.5  # standard deviations
_LEVEL_NOISE = 0.1  # standard deviations
_MARK = 1.6  # amplitude of the bright and of the dark pixel
_DISTANCE = (7, 8)  # pixels between them in the direction of the class
_ASIDE = 2  # pixels between them in the other direction, at most
_BANDS = 12  # of grey levels
_LEVELS = 3.0  # from -3 to 3


class _Draws(SampleDraws):
    """Random numbers and noise for one context and split."""

    def whole(self, purpose: str, lowest: int, highest: Ints | int, n: int) -> Ints:
        """Return n integers from `lowest` to `highest`."""
        return np.asarray(lowest + np.floor(self.uniform(purpose, n) * (highest - lowest + 1)), np.int64)

    def noise(self, deviation: float, n: int) -> Floats:
        """Return images [n, side, side] of uniform noise with this standard deviation."""
        return float(deviation * np.sqrt(3.0)) * (2 * self.uniform("noise", n, _SIDE, _SIDE) - 1)


def _texture(labels: Ints, draws: _Draws) -> Floats:
    return draws.gratings(labels, _CLASSES, _CYCLES, _SIDE) + draws.noise(_GRATING_NOISE, len(labels))


def _relation(labels: Ints, draws: _Draws) -> Floats:
    n = len(labels)
    distance = draws.whole("distance", *_DISTANCE, n)
    near_place = draws.whole("near", 0, _SIDE - 1 - distance, n)  # along the direction of the class
    side_place = draws.whole("aside", _ASIDE, _SIDE - 1 - _ASIDE, n)
    other_side_place = side_place + draws.whole("offset", -_ASIDE, _ASIDE, n)
    images = draws.noise(_MARKS_NOISE, n)
    image_numbers = np.arange(n)
    upright = labels % 2 == 1
    for mark, place_along, place_across in (
        (_MARK, near_place, side_place),
        (-_MARK, near_place + distance, other_side_place),
    ):
        place_along = np.where(labels < 2, place_along, _SIDE - 1 - place_along)  # the opposite direction
        images[
            image_numbers, np.where(upright, place_along, place_across), np.where(upright, place_across, place_along)
        ] += mark
    return images


def _level(labels: Ints, draws: _Draws) -> Floats:
    n = len(labels)
    band = labels + _CLASSES * draws.whole("band", 0, _BANDS // _CLASSES - 1, n)
    level = _LEVELS * (2 * (band + draws.uniform("within", n)) / _BANDS - 1)
    return level[:, None, None] + draws.noise(_LEVEL_NOISE, n)


_MAKE = {"texture": _texture, "relation": _relation, "level": _level}


def load(data_dir: str = "") -> Splits:
    """Generate the images of all contexts, x [N, 1, 12, 12]; ValueError if a data_dir is given."""
    refuse_folder("mixture", data_dir)

    def split(name: str, size: int) -> Split:
        labels = np.arange(size) % _CLASSES
        images = [make(labels, _Draws("mixture", context, name)) for context, make in _MAKE.items()]
        return Split(x=np.concatenate(images).astype(np.float32)[:, None], y=np.tile(labels, len(_MAKE)))

    train, validation, test = map(split, ("train", "validation", "test"), _SIZES)
    return Splits(train=train, validation=validation, test=test)


TASK = Task(
    name="mixture",
    title="generated 12x12 images of three contexts, one for each host; host of 1x1 convolutions",
    host=HostSpec(in_channels=1, base=8, levels=3, kernel=1, pools=3, classes=_CLASSES),
    slots=("early", "mid", "late"),
    image=(1, _SIDE, _SIDE),
    sizes=_SIZES,
    load=load,
    contexts=(
        Context(name="texture", images=(256, 512)),
        Context(name="relation", images=(256, 512)),
        Context(name="level", images=(32, 64)),
    ),
)
