"""Cache of stopping boundaries, because their simulation takes a second and the same plan is made repeatedly.

Results are the same with or without the cache, because the generator is seeded by the arguments. A missing, damaged or
unwritable cache file is no error; the boundaries are computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from esper_ab.contracts.files import UNREADABLE, read_regular, write_below
from esper_ab.design.counterbalance import Sides

_METHOD = 1  # part of the seed and of the file's name; increment when the computation changes


class _Arguments(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    method: int
    sides: tuple[tuple[int, int], ...]
    positions: int
    looks: tuple[int, ...]
    alphas: tuple[float, ...]
    beta: float = 0.0  # 0.0: bounds for `alphas`; else bounds of futility, with no alphas


class _File(msgspec.Struct, frozen=True, kw_only=True):
    arguments: _Arguments
    nominal_p: tuple[tuple[float, ...], ...]
    sha256: str  # of nominal_p as JSON


_decode = msgspec.json.Decoder(_File).decode


def find_bounds(
    sides: Sides, positions: int, looks: tuple[int, ...], alphas: tuple[float, ...], *,
    beta: float = 0.0,
) -> tuple[tuple[float, ...], ...]:  # fmt: skip
    """Return nominal p [alphas][looks] of `design/boundaries.py`, or of futility; implements `design.FindBounds`."""
    if len(looks) == 1 and not beta:
        return tuple((alpha,) for alpha in alphas)
    used = tuple((a, b) for a, b in sides[: looks[-1]])
    arguments = _Arguments(
        method=_METHOD, sides=used, positions=positions, looks=looks, alphas=alphas, beta=beta
    )
    digest = hashlib.sha256(msgspec.json.encode(arguments)).hexdigest()
    folder, name = _folder(), f"{digest}.json"
    found = _read(folder / name, arguments) if folder else None
    if found is None:
        found = _compute(arguments, int(digest, 16))
        file = _File(arguments=arguments, nominal_p=found, sha256=_checksum(found))
        with contextlib.suppress(OSError):
            if folder:
                folder.mkdir(parents=True, exist_ok=True)
                write_below(folder, name, msgspec.json.encode(file))
    return found


def _folder() -> Path | None:
    """Return the folder in the user's cache; None if the user has no home."""
    with contextlib.suppress(RuntimeError):
        return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "esper_ab" / "boundaries"
    return None


def _compute(arguments: _Arguments, rng_seed: int) -> tuple[tuple[float, ...], ...]:
    import numpy as np

    # Imported here, because with the cache a plan needs neither numpy nor scipy.
    from esper_ab.design.boundaries import beta_spent, futility_p, nominal_p

    rng = np.random.Generator(np.random.PCG64(rng_seed))
    if arguments.beta:
        spent = [beta_spent(arguments.beta, look / arguments.looks[-1]) for look in arguments.looks[:-1]]
        return (futility_p(arguments.sides, arguments.positions, arguments.looks, spent, rng),)
    return nominal_p(arguments.sides, arguments.positions, arguments.looks, arguments.alphas, rng)


def _checksum(nominal_p: tuple[tuple[float, ...], ...]) -> str:
    return hashlib.sha256(msgspec.json.encode(nominal_p)).hexdigest()


def _read(path: Path, arguments: _Arguments) -> tuple[tuple[float, ...], ...] | None:
    try:
        file = _decode(read_regular(path))
    except (OSError, *UNREADABLE):
        return None
    intact = file.arguments == arguments and file.sha256 == _checksum(file.nominal_p)
    return file.nominal_p if intact else None
