"""In which order environments see their training samples, drawn for the next step while a GPU trains this one."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from esper_ab.contracts.rng import RngPath
from workers.facts import Ints


class Orders:
    """Of the environments of one device. A draw has an address, so when it is made changes no number.

    `ahead`: in a thread, a step before it is asked for. To sort takes milliseconds per environment, during which a GPU
    would have nothing to do; a CPU that trains has no core to spare for it.
    """

    def __init__(self, samples: int, *, ahead: bool) -> None:
        self._samples = samples
        self._thread = ThreadPoolExecutor(1, "orders") if ahead else None
        self._next: tuple[int, Ints, Future[Ints]] | None = None

    def begin(self, paths: Mapping[int, RngPath]) -> None:
        """A new episode, with an address for every environment."""
        self._paths, self._next = dict(paths), None

    def of(self, step: int, envs: Ints, *, last: bool) -> Ints:
        """A permutation of the samples for each of `envs` [n, samples]; after the `last` step none will be asked for.

        From one step to the next environments only end.
        """
        if self._next is not None and self._next[0] == step:
            _, drawn, future = self._next
            found = future.result()[np.searchsorted(drawn, envs)]
        else:
            found = _drawn(self._samples, self._addresses(step, envs))
        self._next = None
        if self._thread is not None and not last:
            self._next = step + 1, envs, self._thread.submit(_drawn, self._samples, self._addresses(step + 1, envs))
        return found

    def _addresses(self, step: int, envs: Ints) -> list[RngPath]:
        return [self._paths[env] / "step" / step / "data-order" for env in envs]


def _drawn(samples: int, addresses: list[RngPath]) -> Ints:
    return np.argsort(np.stack([path.generator().random(samples) for path in addresses]), axis=1, kind="stable")
