"""Every host of a family is given samples of one context, drawn at its own address."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.rng import RngPath
from workers.datasets.task import Context, Task
from workers.growth.shares import Shares
from workers.tasks.synthetic import TASK

SAMPLES = 40


def family(*images: tuple[int, int]) -> Task:
    contexts = tuple(Context(name=f"context {number}", images=one) for number, one in enumerate(images))
    return replace(TASK, contexts=contexts, sizes=(SAMPLES, 10, 10))


def paths(rng_seed: int, n: int) -> list[RngPath]:
    return [RngPath(rng_seed) / "env" / env for env in range(n)]


def epochs(task: Task, where: list[RngPath]) -> tuple[np.ndarray, np.ndarray]:
    """Contexts, and the samples of an epoch in the order in which there are."""
    shares = Shares(task, where)
    envs = np.arange(len(where))
    return shares.context, shares.among(envs, np.tile(np.arange(SAMPLES), (len(envs), 1)))


@given(st.integers(0, 2**32), st.lists(st.integers(1, SAMPLES), min_size=2, max_size=2))
def test_an_epoch_holds_as_many_different_samples_as_the_context_allows(rng_seed: int, sizes: list[int]) -> None:
    least, most = sorted(sizes)
    task = family((least, most), (SAMPLES, SAMPLES))
    contexts, samples = epochs(task, paths(rng_seed, 6))
    for context, own in zip(contexts, samples, strict=True):
        low, high = task.contexts[context].images
        seen, times = np.unique(own, return_counts=True)
        assert low <= len(seen) <= high
        assert set(seen) <= set(range(SAMPLES))
        assert times.max() - times.min() <= 1


def test_a_host_s_share_depends_on_its_own_address_alone() -> None:
    task, where = family((5, 10), (20, 40)), paths(3, 8)
    (contexts, samples), (turned, turned_samples) = epochs(task, where), epochs(task, where[::-1])
    assert np.array_equal(contexts, turned[::-1])
    assert np.array_equal(samples, turned_samples[::-1])
    assert len({own.tobytes() for own in samples}) == len(where)


def test_contexts_and_numbers_of_samples_are_all_drawn_about_equally_often() -> None:
    contexts, samples = epochs(family((1, 3), (1, 3), (1, 3)), paths(4, 900))
    numbers = [len(set(own.tolist())) for own in samples]
    for values in (contexts, numbers):
        counts = np.unique(values, return_counts=True)[1]
        assert len(counts) == 3
        assert counts.min() > 240  # four standard deviations below 300


@pytest.mark.parametrize("envs", [[0, 2], [1]])
def test_an_order_goes_through_the_samples_of_its_host(envs: list[int]) -> None:
    shares = Shares(family((SAMPLES, SAMPLES)), paths(5, 3))
    order = np.tile(np.arange(SAMPLES)[::-1], (len(envs), 1))
    forward = shares.among(np.array(envs), order[:, ::-1])
    assert np.array_equal(shares.among(np.array(envs), order), forward[:, ::-1])


def test_hosts_of_other_tasks_are_given_everything_as_it_is() -> None:
    shares, order = Shares(TASK, paths(6, 2)), np.array([[2, 0, 1], [0, 1, 2]])
    assert shares.context.tolist() == [0, 0]
    assert shares.among(np.arange(2), order) is order
