"""Random numbers by address: the generator is Philox with the address's key."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.rng import RngPath, run_path

parts = st.lists(st.one_of(st.integers(), st.text(max_size=8)), max_size=6)


@given(st.integers(), parts)
def test_the_generator_of_an_rng_path_equals_philox_with_its_key(rng_seed: int, path: list[int | str]) -> None:
    address = RngPath(rng_seed, tuple(path))
    generator = address.generator()
    expected = np.random.Generator(np.random.Philox(key=address.key()))
    assert generator.random(5).tolist() == expected.random(5).tolist()
    assert generator.permutation(7).tolist() == expected.permutation(7).tolist()


def test_the_random_numbers_of_an_rng_path_never_change() -> None:
    """Otherwise records of old experiments could not be reproduced."""
    address = RngPath(0) / "replicate" / 0 / "train" / 3 / "env" / 2 / "step" / 7 / "action"
    assert address.generator().random(3).tolist() == [0.36074453798605133, 0.5116367864986392, 0.2497790796440289]


def test_seeds_and_unpaired_groups_have_different_random_numbers() -> None:
    roots = [run_path(seed, replicate, label) for seed in (0, 1) for replicate in (0, 1) for label in ("", "a", "b")]
    assert len({root.generator().random() for root in roots}) == len(roots)
