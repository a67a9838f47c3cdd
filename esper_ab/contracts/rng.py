"""Random numbers by address: a path always gives the same numbers, no matter who draws them, when, or in which order.

Counter-based Philox4x64 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3") with a 128-bit key hashed
from the path. torch's CPU generator keeps only 32 bits of its seed, so no result depends on it.

A path names replicate, phase, episode, env, step, slot and purpose, but never a group or a device. So groups with the
same settings draw the same numbers, and the address of a draw does not depend on the number of earlier draws.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PathPart = str | int


class RngPath(msgspec.Struct, frozen=True):
    """The address of random numbers; `path / part` is an address one level deeper."""

    rng_seed: int
    parts: tuple[PathPart, ...] = ()

    def __truediv__(self, part: PathPart) -> RngPath:
        return RngPath(self.rng_seed, (*self.parts, part))

    def key(self) -> int:
        """Return the 128-bit key. "1" and 1 give different keys, and so do ("ab", "c") and ("a", "bc")."""
        return int.from_bytes(self._key_bytes(), "little")

    def generator(self) -> np.random.Generator:
        """Return a new numpy generator at this address."""
        import numpy as np

        return np.random.Generator(np.random.Philox(_key_source()(self._key_bytes())))

    def _key_bytes(self) -> bytes:
        text = "\x1f".join([f"{type(part).__name__}:{part!r}" for part in (self.rng_seed, *self.parts)])
        return hashlib.blake2b(text.encode(), digest_size=16).digest()


@functools.cache
def _key_source() -> Callable[[bytes], np.random.SeedSequence]:
    """Return a seed sequence class that passes its bytes to Philox as the key.

    Philox(key=…) would first read entropy from the system, only to overwrite it.
    """
    import numpy as np
    from numpy.random.bit_generator import ISeedSequence

    class Key(ISeedSequence):
        def __init__(self, key: bytes) -> None:
            self._key = key

        def generate_state(self, n_words: int, dtype: object = np.uint64) -> NDArray[np.uint32 | np.uint64]:
            return np.frombuffer(self._key, dtype="<u8", count=n_words)

    return cast("Callable[[bytes], np.random.SeedSequence]", Key)  # the type in numpy's stubs


def run_path(rng_seed: int, replicate: int, label: str = "") -> RngPath:
    """Return the root of all randomness of one replicate; `label` is non-empty only for unpaired calibration."""
    path = RngPath(rng_seed) / "replicate" / replicate
    return path / "unpaired" / label if label else path


def shuffled(n: int, path: RngPath) -> tuple[int, ...]:
    """Return 0 … n-1 in a random order for the address `path`: sorted by independent 128-bit hashes."""
    return tuple(sorted(range(n), key=lambda i: (path / i).key()))
