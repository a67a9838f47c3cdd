"""Every host of a task family gets samples of one context, drawn at its rng path."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.rng import RngPath
from workers.environments import paths_below
from workers.kinds.growth.datasets.task import Context, Task
from workers.kinds.growth.samples import Orders, Shares
from workers.kinds.growth.tasks.synthetic import TASK

SAMPLES = 40


def family(*images: tuple[int, int]) -> Task:
    contexts = tuple(Context(name=f"context {number}", images=sizes) for number, sizes in enumerate(images))
    return replace(TASK, contexts=contexts, sizes=(SAMPLES, 10, 10))


def epochs(task: Task, rng_paths: list[RngPath]) -> tuple[np.ndarray, np.ndarray]:
    """Contexts, and the samples of an epoch in the order in which there are."""
    shares = Shares(task, rng_paths)
    envs = np.arange(len(rng_paths))
    return shares.context, shares.among(envs, np.tile(np.arange(SAMPLES), (len(envs), 1)))


@given(st.integers(0, 2**32), st.lists(st.integers(1, SAMPLES), min_size=2, max_size=2))
def test_an_epoch_has_the_allowed_number_of_distinct_samples(rng_seed: int, sizes: list[int]) -> None:
    least_size, largest_size = sorted(sizes)
    task = family((least_size, largest_size), (SAMPLES, SAMPLES))
    contexts, samples = epochs(task, paths_below(RngPath(rng_seed), 6))
    for context, sample_numbers in zip(contexts, samples, strict=True):
        low, high = task.contexts[context].images
        distinct_samples, times = np.unique(sample_numbers, return_counts=True)
        assert low <= len(distinct_samples) <= high
        assert set(distinct_samples) <= set(range(SAMPLES))
        assert times.max() - times.min() <= 1


def test_the_samples_of_a_host_depend_only_on_its_rng_path() -> None:
    task = family((5, 10), (20, 40))
    rng_paths = paths_below(RngPath(3), 8)
    (contexts, samples) = epochs(task, rng_paths)
    (reversed_contexts, turned_samples) = epochs(task, rng_paths[::-1])
    assert np.array_equal(contexts, reversed_contexts[::-1])
    assert np.array_equal(samples, turned_samples[::-1])
    assert len({host_samples.tobytes() for host_samples in samples}) == len(rng_paths)


def test_contexts_and_sample_counts_are_drawn_uniformly() -> None:
    contexts, samples = epochs(family((1, 3), (1, 3), (1, 3)), paths_below(RngPath(4), 900))
    numbers = [len(set(host_samples.tolist())) for host_samples in samples]
    for values in (contexts, numbers):
        counts = np.unique(values, return_counts=True)[1]
        assert len(counts) == 3
        assert counts.min() > 240  # four standard deviations below 300


def test_hosts_of_a_task_without_contexts_see_all_samples() -> None:
    shares = Shares(TASK, paths_below(RngPath(6), 2))
    order = np.array([[2, 0, 1], [0, 1, 2]])
    assert shares.context.tolist() == [0, 0]
    assert shares.among(np.arange(2), order) is order


ORDERED = 50


def order_paths(episode: int) -> dict[int, RngPath]:
    return dict(enumerate(paths_below(RngPath(3) / episode, 5)))


def test_drawing_sample_orders_ahead_changes_no_order() -> None:
    """Two episodes; in both some environments end, and the first ends early."""
    early_orders = Orders(ORDERED, ahead=True)
    prompt_orders = Orders(ORDERED, ahead=False)
    distinct_orders = set()
    for episode, steps in ((0, 2), (1, 4)):
        early_orders.begin(order_paths(episode))
        prompt_orders.begin(order_paths(episode))
        for step in range(1, steps + 1):
            envs = np.array([0, 1, 2, 4] if step < 3 else [1, 4])
            order = prompt_orders.of(step, envs, last=step == 4)
            assert np.array_equal(order, early_orders.of(step, envs, last=step == 4))
            assert (np.sort(order, 1) == np.arange(ORDERED)).all()
            distinct_orders.add(order.tobytes())
    assert len(distinct_orders) == 6


@pytest.mark.parametrize("is_last", [True, False])
def test_only_the_sample_order_of_the_next_step_is_drawn_ahead(is_last: bool) -> None:
    orders = Orders(ORDERED, ahead=True)
    orders.begin(order_paths(0))
    orders.of(1, np.arange(5), last=is_last)
    orders._paths.clear()  # what is drawn from now on fails
    with pytest.raises(KeyError) if is_last else nullcontext():
        assert orders.of(2, np.array([3]), last=True).shape == (1, ORDERED)


def test_an_error_while_drawing_orders_ahead_fails_the_run() -> None:
    orders = Orders(ORDERED, ahead=True)
    orders.begin({env: path for env, path in order_paths(0).items() if env})
    with pytest.raises(KeyError):
        orders.of(1, np.arange(5), last=False)
    first_order = orders.of(1, np.array([1]), last=False)
    assert first_order.shape == (1, ORDERED)
