"""Read lists of names and numbers in the flags of `design`. Imports no libraries."""

from __future__ import annotations

from esper_ab.commands._parameters import MOST_SEEDS
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.plain_values import whole_number


def names_in(text: str) -> tuple[str, ...]:
    """Split names at commas."""
    return tuple(name.strip() for name in text.split(","))


def seeds_in(text: str, choose: int, flag: str = "--seeds") -> tuple[str, ...]:
    """Parse "0..19", "3,5,8" or a number (to which `choose` is added) into seeds, in the order in which they run."""
    if text.isdecimal():
        number = whole_number(text)
        if number is None or not 1 <= number <= MOST_SEEDS:
            raise UsageError(f"{flag} {text}: must be from 1 to {MOST_SEEDS}")
        return tuple(map(str, range(choose + number)))
    if ".." not in text:
        return names_in(text)
    first_seed, last_seed = (whole_number(end) for end in text.split("..", 1))
    if first_seed is None or last_seed is None or first_seed > last_seed:
        raise UsageError(f"{flag} {text}: expected FIRST..LAST, as in 0..19, or a list, as in 3,5,8")
    if last_seed - first_seed >= MOST_SEEDS:
        raise UsageError(f"{flag} {text}: at most {MOST_SEEDS} {flag.removeprefix('--')} are possible")
    return tuple(map(str, range(first_seed, last_seed + 1)))


def looks_in(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    looks = []
    for part in names_in(text):
        look = whole_number(part)
        if look is None:
            raise UsageError(f"--looks {text}: expected numbers of seeds, as in 10,14,20")
        looks.append(look)
    return tuple(looks)
