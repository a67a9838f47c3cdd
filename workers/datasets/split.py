"""Fixed, stratified splits from labels and a name."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np

from esper_ab.contracts.rng import RngPath
from workers.arrays import Floats32, Ints
from workers.datasets.task import Split, Splits


def stratified(labels: Ints, sizes: tuple[int, ...], name: str) -> tuple[Ints, ...]:
    """Return disjoint index arrays of the given sizes; in each, every class has its share to within one sample per cut.

    Samples are shuffled within their class and ordered by their quantile there, so any stretch of that order holds the
    classes in proportion. The shuffle sorts raw Philox words at an address made of `name` alone: raw words, unlike the
    methods of a numpy generator, are the same in every numpy version. The experiment's rng seed has no part in it: the
    splits belong to the task.
    """
    if sum(sizes) > len(labels):
        raise ValueError(f"{name}: splits of {sum(sizes)} samples from {len(labels)}")
    words = (RngPath(0) / "task" / name / "split").generator().bit_generator.random_raw(len(labels))
    quantile = np.empty(len(labels))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        shuffled = members[np.argsort(words[members], kind="stable")]
        quantile[shuffled] = (np.arange(len(members)) + 0.5) / len(members)
    order = np.lexsort((words, quantile))
    return tuple(order[begin:end] for begin, end in pairwise(accumulate(sizes, initial=0)))


def splits_of(x: Floats32, labels: Ints, sizes: tuple[int, int, int], name: str) -> Splits:
    """Return samples x and their labels in `stratified` splits."""
    train, validation, test = (Split(x=x[rows], y=labels[rows]) for rows in stratified(labels, sizes, name))
    return Splits(train=train, validation=validation, test=test)
