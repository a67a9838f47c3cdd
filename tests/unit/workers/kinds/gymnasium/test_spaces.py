"""Action and observation spaces of Gymnasium as a policy uses them."""

from contextlib import nullcontext

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from workers.kinds.gymnasium.spaces import Codec

SEEN = spaces.Box(-1.0, 1.0, (2,), np.float32)
DTYPES = st.sampled_from(["f2", "f4", "f8", ">f4", "i1", "i8", "u8", "?"])


@pytest.mark.parametrize(
    ("space", "sizes"),
    [
        (spaces.Discrete(4), (4,)),
        (spaces.Discrete(3, start=-1), (3,)),
        (spaces.MultiDiscrete([2, 5]), (2, 5)),
        (spaces.MultiDiscrete([3, 3], start=[1, -2]), (3, 3)),
        (spaces.MultiDiscrete(np.array([[2, 3], [1, 4]]), start=np.array([[0, -1], [5, 2]])), (2, 3, 1, 4)),
        (spaces.MultiBinary(3), (2, 2, 2)),
        (spaces.MultiBinary((2, 2)), (2, 2, 2, 2)),
    ],
)
def test_every_action_of_a_space_corresponds_to_one_decision(space: gymnasium.Space, sizes: tuple) -> None:
    codec = Codec(SEEN, space)
    assert codec.spaces.head_sizes == sizes
    assert len(codec.spaces.head_names) == codec.width == len(sizes)
    decisions = np.array(list(np.ndindex(sizes)))
    actions = codec.actions(decisions)
    assert all(space.contains(action) for action in actions)
    assert len({tuple(np.ravel(action).tolist()) for action in actions}) == np.prod(sizes)
    assert codec.given(decisions).tolist() == [np.asarray(action).tolist() for action in actions]


def test_continuous_decisions_are_clipped_to_the_box() -> None:
    space = spaces.Box(np.array([[-1.0], [0.0]], dtype=np.float32), np.array([[1.0], [5.0]], dtype=np.float32))
    codec = Codec(SEEN, space)
    assert codec.spaces.head_sizes == ()
    assert codec.spaces.head_names == ("action_0", "action_1")
    assert codec.actions(np.array([[-3.0, 9.0]]))[0].tolist() == [[-1.0], [5.0]]
    assert space.contains(codec.actions(np.array([[0.5, 2.5]]))[0])
    assert codec.given(np.array([[0.5, -2.5]])).tolist() == [[[0.5], [0.0]]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, np.bool_, np.float32, np.float64])
def test_facts_contain_the_action_received_by_the_environment(dtype: type) -> None:
    space = spaces.Box(0, 1, (3,), dtype)
    codec = Codec(SEEN, space)
    decisions = np.array([[0.2, 0.9, 7.3], [-5.0, 0.6, 0.1]])
    given_actions = codec.given(decisions)
    actions = codec.actions(decisions)
    assert all(space.contains(action) for action in actions)
    assert given_actions.dtype == space.dtype
    assert given_actions.tolist() == [action.tolist() for action in actions]
    if not np.issubdtype(dtype, np.floating):
        assert given_actions.tolist() == [[0, 1, 1], [0, 1, 0]]


def test_decisions_for_integer_actions_are_rounded() -> None:
    codec = Codec(SEEN, spaces.Box(-4, 4, (1,), np.int16))
    decisions = np.array([[-9.0], [-3.9], [-0.7], [-0.2], [0.2], [3.4], [3.9], [9.0]])
    assert codec.given(decisions).ravel().tolist() == [-4, -4, -1, 0, 0, 3, 4, 4]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_decisions_are_clipped_to_the_largest_integer(dtype: type) -> None:
    limits = np.iinfo(dtype)
    space = spaces.Box(limits.min, limits.max, (1,), dtype)
    low, high = Codec(SEEN, space).actions(np.array([[-1e30], [1e30]]))
    assert space.contains(low)
    assert space.contains(high)
    assert int(low[0]) == limits.min
    assert int(high[0]) > limits.max - 4096  # the last number of float64 below it


def test_only_finite_bounds_of_a_box_are_action_bounds() -> None:
    low = np.array([-np.inf, -2.0, 0.0])
    high = np.array([1.0, np.inf, 200.0])
    assert Codec(SEEN, spaces.Box(low, high, dtype=np.float64)).bounds == (None, None, (0.0, 200.0))
    assert Codec(SEEN, spaces.Discrete(3)).bounds == ()


@pytest.mark.parametrize(
    "space", [spaces.Box(-9, 9, (2,), np.float64), spaces.MultiDiscrete([3, 3]), spaces.Box(-9, 9, ())]
)
def test_an_action_overwritten_by_its_environment_affects_no_other_action(space: gymnasium.Space) -> None:
    codec = Codec(SEEN, space)
    decisions = np.zeros((3, codec.width), dtype=np.float64 if codec.box else np.int64)
    first_action, *other_actions = codec.actions(decisions)
    assert (type(first_action), first_action.shape, first_action.dtype) == (np.ndarray, space.shape, space.dtype)
    first_action[...] = 7
    assert not np.any(other_actions)
    assert not decisions.any()


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@given(arrays(DTYPES, st.sampled_from([(6,), (2, 3), (6, 1), (5,), (7,), ()])), st.booleans())
def test_observations_are_converted_to_float32_exactly_or_refused(observation: np.ndarray, as_list: bool) -> None:
    codec = Codec(spaces.Box(-np.inf, np.inf, (6,)), spaces.Discrete(2))
    row = np.zeros(6, dtype=np.float32)
    largest_value = np.abs(observation[np.isfinite(observation)].astype(np.float64)).max(initial=0.0)
    complaint = "beyond float32" if np.float64(largest_value).astype(np.float32) == np.inf else None
    complaint = complaint or (
        None if observation.size == 6 else f"it shows {observation.size} numbers, and observation_space is"
    )
    with nullcontext() if complaint is None else pytest.raises(ValueError, match=complaint):
        row[:] = codec.flat(observation.tolist() if as_list else observation)
        assert row.tobytes() == observation.astype(np.float32).tobytes()


def test_nested_observations_are_flattened() -> None:
    space = spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(0.0, 1.0, (2, 2), np.float32)})
    codec = Codec(space, spaces.Discrete(2))
    flat_observation = codec.flat({"a": 1, "b": np.full((2, 2), 0.5, dtype=np.float32)})
    assert flat_observation.tolist() == [0.0, 1.0, 0.0, 0.5, 0.5, 0.5, 0.5]
    assert codec.spaces.observation_width == 7


@pytest.mark.parametrize(
    ("observation_space", "action_space", "complaint"),
    [
        (SEEN, spaces.Text(3), "Discrete, MultiDiscrete, MultiBinary and Box"),
        (SEEN, spaces.Dict({"a": spaces.Discrete(2)}), "Discrete, MultiDiscrete, MultiBinary and Box"),
        (spaces.Sequence(SEEN), spaces.Discrete(2), "no fixed number of entries"),
        (SEEN, spaces.Discrete(2**40), "1099511627776 entries or choices of a space are too many"),
    ],
)
def test_unsupported_spaces_are_refused(
    observation_space: gymnasium.Space, action_space: gymnasium.Space, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        Codec(observation_space, action_space)
