"""The limits of msgpack follow from the message types."""

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta, inspect

from esper_ab.contracts.messages import CoordinatorMessage, WorkerMessage
from esper_ab.contracts.records import MOST_KEYS
from esper_ab.contracts.wire_limits import WireLimits, _inner, limits_of


class Point(msgspec.Struct, array_like=True):
    x: float
    y: float
    z: float


class Small(msgspec.Struct, tag="Small"):
    """A message with two fields and the tag."""

    word: Annotated[str, Meta(max_length=7)]
    kind: Literal["a", "absent"] | None = None


class Large(msgspec.Struct, tag="Large"):
    points: Annotated[tuple[Point, ...], Meta(max_length=2)]
    by_name: Annotated[dict[Annotated[str, Meta(max_length=5)], int | bool], Meta(max_length=9)]


def test_the_size_limit_of_a_union_type_is_that_of_its_largest_member():
    assert limits_of(Small) == WireLimits(entries=0, keys=3, text_bytes=4 * 7)
    assert limits_of(Small | Large) == WireLimits(entries=3, keys=9, text_bytes=4 * 7)


@pytest.mark.parametrize("kind", [bytes, object, set[int], msgspec.Raw])
def test_a_message_type_without_a_size_limit_is_refused(kind):
    with pytest.raises(TypeError, match="has no limit"):
        limits_of(msgspec.defstruct("Other", [("field", kind)]))


def test_all_messages_of_coordinator_and_workers_have_size_limits():
    assert limits_of(WorkerMessage).keys == MOST_KEYS
    for side in (WorkerMessage, CoordinatorMessage):
        limits = limits_of(side)
        assert min(limits.entries, limits.keys, limits.text_bytes) > 0


def numbers_in(kind):
    """Yield every number inside a type."""
    if isinstance(kind, inspect.FloatType):
        yield kind
    for inner_kind in _inner(kind):
        yield from numbers_in(inner_kind)


def test_every_number_in_a_worker_message_has_bounds():
    numbers = list(numbers_in(inspect.type_info(WorkerMessage)))
    assert len(numbers) > 20
    assert all(number.ge is not None and number.le is not None for number in numbers)
