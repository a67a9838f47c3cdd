"""Splits of labelled samples that have every class in proportion."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np

from esper_ab.contracts.rng import RngPath
from workers.arrays import Floats32, Ints
from workers.kinds.growth.datasets.task import Split, Splits


def stratified(labels: Ints, sizes: tuple[int, ...], name: str) -> tuple[Ints, ...]:
    """Return disjoint index arrays of the given sizes, each with every class in proportion.

    Samples are shuffled within each class, then sorted by their relative rank within their class. Any contiguous slice
    of that order therefore contains the classes in proportion, to within one sample per cut. The shuffle sorts raw
    Philox words drawn at an address that depends only on `name`. Unlike numpy's generator methods, raw words are the
    same in every numpy version. The experiment's rng seed has no effect, because splits belong to the task. Raises
    ValueError if there are too few samples.
    """
    if sum(sizes) > len(labels):
        raise ValueError(f"{name}: the splits need {sum(sizes)} samples but there are only {len(labels)}")
    words = (RngPath(0) / "task" / name / "split").generator().bit_generator.random_raw(len(labels))
    quantile = np.empty(len(labels))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        shuffled_members = members[np.argsort(words[members], kind="stable")]
        quantile[shuffled_members] = (np.arange(len(members)) + 0.5) / len(members)
    order = np.lexsort((words, quantile))
    return tuple(order[begin:end] for begin, end in pairwise(accumulate(sizes, initial=0)))


def splits_of(x: Floats32, labels: Ints, sizes: tuple[int, int, int], name: str) -> Splits:
    """Return samples x and their labels, divided into `stratified` splits."""
    train, validation, test = (Split(x=x[rows], y=labels[rows]) for rows in stratified(labels, sizes, name))
    return Splits(train=train, validation=validation, test=test)
