"""Orders drawn a step ahead are those drawn when they are asked for."""

from __future__ import annotations

import numpy as np
import pytest

from esper_ab.contracts.rng import RngPath
from workers.growth.orders import Orders

SAMPLES = 50


def paths(episode: int) -> dict[int, RngPath]:
    return {env: RngPath(3) / episode / "env" / env for env in range(5)}


def drawn(*, ahead: bool) -> list[np.ndarray]:
    """Two episodes; in both some environments end, and the first ends early."""
    orders, found = Orders(SAMPLES, ahead=ahead), []
    for episode, steps in ((0, 2), (1, 4)):
        orders.begin(paths(episode))
        for step in range(1, steps + 1):
            envs = np.array([0, 1, 2, 4] if step < 3 else [1, 4])
            found.append(orders.of(step, envs, last=step == 4))
    return found


def test_when_they_are_drawn_changes_nothing() -> None:
    ahead, at_once = drawn(ahead=True), drawn(ahead=False)
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(ahead, at_once, strict=True))
    assert len({order.tobytes() for order in at_once}) == len(at_once)
    assert all((np.sort(order, 1) == np.arange(SAMPLES)).all() for order in at_once)


@pytest.mark.parametrize("last", [True, False])
def test_the_next_step_is_drawn_ahead_and_nothing_after_the_last(last: bool) -> None:
    orders = Orders(SAMPLES, ahead=True)
    orders.begin(paths(0))
    orders.of(1, np.arange(5), last=last)
    orders._paths.clear()  # what is drawn from now on fails
    if last:
        with pytest.raises(KeyError):
            orders.of(2, np.array([3]), last=True)
    else:
        expected = Orders(SAMPLES, ahead=False)
        expected.begin(paths(0))
        assert np.array_equal(orders.of(2, np.array([3]), last=True), expected.of(2, np.array([3]), last=True))


def test_an_error_while_drawing_ahead_is_the_run_s() -> None:
    orders = Orders(SAMPLES, ahead=True)
    orders.begin({env: path for env, path in paths(0).items() if env})
    with pytest.raises(KeyError):
        orders.of(1, np.arange(5), last=False)
    found = orders.of(1, np.array([1]), last=False)
    assert found.shape == (1, SAMPLES)
