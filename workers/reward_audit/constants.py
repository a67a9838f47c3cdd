"""The constants of a reward, one at a time halved, doubled or switched: on which do its returns depend?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from esper_ab.contracts.reward_audit import Varied
from esper_ab.contracts.settings import RewardSettings
from workers.facts import Floats

_NOT_VARIED = {"mode", "params", "family", "gamma"}  # what the reward is; and gamma, which has to be the learner's


def alternatives(settings: RewardSettings) -> Iterator[tuple[str, object, RewardSettings]]:
    """Yield (constant, its value now, the settings with another one) for every switch and number but 0."""
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        if name in _NOT_VARIED:
            continue
        if isinstance(value, bool):
            yield name, not value, msgspec.structs.replace(settings, **{name: not value})
        elif isinstance(value, int):
            for other in sorted({value // 2, value * 2} - {value}):
                yield name, other, msgspec.structs.replace(settings, **{name: other})
        elif value:
            for number in (value / 2, value * 2):
                yield name, number, msgspec.structs.replace(settings, **{name: number})


def varied(settings: RewardSettings, returns_of: Callable[[RewardSettings], Floats]) -> tuple[Varied, ...]:
    """Return the constants on which `returns_of` depends, or that it refuses with a ValueError."""
    now = returns_of(settings)
    found = []
    for name, other, changed in alternatives(settings):
        was = _shown(getattr(settings, name))
        try:
            returns = returns_of(changed)
        except ValueError:
            found.append(Varied(constant=name, was=was, now=_shown(other), returns=()))
            continue
        if (returns != now).any():
            found.append(Varied(constant=name, was=was, now=_shown(other), returns=tuple(returns.tolist())))
    return tuple(found)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
