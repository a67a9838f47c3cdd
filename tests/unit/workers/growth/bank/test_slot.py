"""A slot with any seeds over any rows: every row as if it were alone, by the formulas of blend.py."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tensor_world import env_path

from esper_ab.contracts import catalog
from workers.growth.bank.blend import Blend, gate_params, seed_delta, seed_input
from workers.growth.bank.rows import Places
from workers.growth.bank.slot import SeedGroup, SlotSeeds
from workers.growth.bank.stack import Stack, by_name
from workers.layers import device as _device
from workers.layers.blueprint import Blueprint, ParamSpec
from workers.vocabulary import Algorithm, Stage

STAGES = [Stage.TRAINING, Stage.BLENDING, Stage.HOLDING, Stage.FOSSILIZED]
SEEDS = st.tuples(st.sampled_from(STAGES), st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from(Algorithm))
BLUEPRINTS: dict[str, Blueprint] = {
    "scaled": Blueprint(  # torch code, no chain of layers
        "scaled", lambda c: (ParamSpec("weight", (c,), bound=0.4),), lambda x, p: x + torch.sin(x) * p["weight"]
    )
} | {name: catalog.entry("workers.blueprints", name, "BLUEPRINT") for name in catalog.names("workers.blueprints")}


def random(*shape: int, rng_seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(rng_seed), dtype=torch.float64)


def grown(name: str, count: int) -> SeedGroup:
    """So many seeds of a blueprint, no two with the same parameters."""
    blueprint = BLUEPRINTS[name]
    stack = Stack((*blueprint.params(8), *gate_params(8)), count, torch.device("cpu"), torch.float64)
    stack.birth(slice(None), (env_path(0) / name).generator().random((count, stack.width)))
    stack.values += 0.3
    return SeedGroup(blueprint, stack, torch.arange(count), None)


@settings(max_examples=60)
@given(
    held=st.dictionaries(st.sampled_from(sorted(BLUEPRINTS)), st.lists(SEEDS, min_size=1, max_size=3), min_size=1),
    side=st.sampled_from([1, 2, 4]),
    size=st.sampled_from([0.1, 1.0, 10.0]),
    all_rows=st.booleans(),
    on_cpu=st.booleans(),
)
def test_any_seeds_join_as_if_each_were_alone(
    held: dict[str, list[tuple[Stage, float, Algorithm]]], side: int, size: float, all_rows: bool, on_cpu: bool
) -> None:
    """Features, their gradient and those of all parameters; rows without a seed are what they were, to the bit."""
    seeds = [seed for own in held.values() for seed in own]
    n = len(seeds)
    rows = list(range(n)) if all_rows else torch.arange(n + 2).roll(3)[:n].tolist()
    h = (size * random(3, side, side, n if all_rows else n + 2, 8)).requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_device, "is_cpu", lambda _device: on_cpu)
        blend = Blend.of(*(np.array(values) for values in zip(*seeds, strict=True)), h)
        groups = tuple(grown(name, len(own)) for name, own in held.items())
        places = None if all_rows else Places.of(torch.tensor(rows), h.shape[3])
        flat = [group.stack.values.requires_grad_() for group in groups]
        params = [by_name(group.stack.specs, values) for group, values in zip(groups, flat, strict=True)]
        y = SlotSeeds(groups, places, blend).forward(h, params)
        alone = list(h.unbind(3))
        kinds = [(index, at) for index, group in enumerate(groups) for at in range(len(group.members))]
        for row, (index, at), seed in zip(rows, kinds, seeds, strict=True):
            mine, own = h[:, :, :, [row]], Blend.of(*(np.array([value]) for value in seed), h)
            x, p = seed_input(mine, own), {name: value[at : at + 1] for name, value in params[index].items()}
            d = groups[index].blueprint.forward(x, p) - x
            alone[row] = (mine + seed_delta(mine, x, d, p, own))[:, :, :, 0]
        g = random(*h.shape, rng_seed=5)
        found, expected = (torch.autograd.grad(out, [h, *flat], g) for out in (y, torch.stack(alone, 3)))
    torch.testing.assert_close(y, torch.stack(alone, 3), rtol=1e-9, atol=1e-9)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-8)
    others = [row for row in range(h.shape[3]) if row not in rows]
    assert torch.equal(y[:, :, :, others], h[:, :, :, others])
    assert torch.equal(found[0][:, :, :, others], g[:, :, :, others])


def test_positions_are_those_of_every_group() -> None:
    groups = grown("norm", 2), grown("conv_small", 1)
    blend = Blend.of(np.full(3, Stage.HOLDING), np.ones(3), np.zeros(3, dtype=np.int64), random(1))
    for places, expected in [(None, [[0, 1], [2]]), (Places.of(torch.tensor([4, 0, 2]), 5), [[4, 0], [2]])]:
        assert [at.tolist() for at in SlotSeeds(groups, places, blend).positions()] == expected
