"""What lanes take of a Ray cluster, and the GPUs that Ray deals out; with a cluster: tests/cluster/test_ray.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.worker_order import Lane
from esper_ab.launchers._ray_shares import bundles, parts, uuids_of


def lane(*devices, place=None):
    name = "+".join(devices) + ("" if place is None else f"/{place}")
    return Lane(name=name, devices=devices, uuids=("",) * len(devices))


def test_a_lane_takes_its_cores_or_its_gpus_and_a_core():
    two = [lane("cpu:0", "cpu:1"), lane("cuda:0", "cuda:3")]
    assert bundles(two) == [{"CPU": 2}, {"GPU": 2, "CPU": 1}]
    assert parts(two) == {"cpu:0+cpu:1": (0, {"CPU": 2}), "cuda:0+cuda:3": (1, {"GPU": 2, "CPU": 1})}


def test_lanes_on_the_same_devices_are_parts_of_one_bundle():
    lanes = [lane(device, place=place) for device in ("cuda:0", "cuda:1") for place in range(2)]
    assert bundles(lanes) == [{"GPU": 1, "CPU": 2}] * 2
    assert parts(lanes) == {
        "cuda:0/0": (0, {"GPU": 0.5, "CPU": 1}),
        "cuda:0/1": (0, {"GPU": 0.5, "CPU": 1}),
        "cuda:1/0": (1, {"GPU": 0.5, "CPU": 1}),
        "cuda:1/1": (1, {"GPU": 0.5, "CPU": 1}),
    }
    lanes = [lane("cpu:0", "cpu:1", place=place) for place in range(4)]
    assert bundles(lanes) == [{"CPU": 2}]
    assert parts(lanes)["cpu:0+cpu:1/3"] == (0, {"CPU": 0.5})


@given(st.integers(1, 64), st.integers(1, 8), st.sampled_from(("cuda", "cpu")))
def test_the_parts_of_a_bundle_are_what_ray_takes_and_no_more_than_the_bundle(count, devices, kind):
    """Ray counts in ten thousandths, and takes no other numbers than whole ones above 1."""
    devices = devices if kind == "cpu" else 1
    lanes = [lane(*(f"{kind}:{number}" for number in range(devices)), place=place) for place in range(count)]
    (bundle,) = bundles(lanes)
    for resource, there in bundle.items():
        taken = [part[resource] for _, part in parts(lanes).values()]
        assert sum(round(part * 10_000) for part in taken) <= there * 10_000
        assert all(part == int(part) if part > 1 else part > 0 for part in taken)


@pytest.mark.parametrize(
    ("dealt", "visible", "found"),
    [
        (["1"], None, ["GPU-b"]),  # by their number among the node's
        (["2"], "2,3", ["GPU-a"]),  # by their number in what the node offers
        (["3", "2"], "2, 3", ["GPU-b", "GPU-a"]),
        (["GPU-b"], "GPU-a,GPU-b", ["GPU-b"]),
        (["GPU-b6"], "GPU-a5,GPU-b6", ["GPU-b"]),  # an abbreviation, or longer than what the preflight has
        (["GPU-b"], None, ["GPU-b"]),
    ],
)
def test_gpus_that_ray_deals_out_are_found_among_those_of_the_preflight(dealt, visible, found):
    assert uuids_of(dealt, visible, ["GPU-a", "GPU-b"]) == found


@pytest.mark.parametrize(("dealt", "visible"), [(["2"], None), (["4"], "2,3,4"), (["GPU-c"], None), (["0"], "2,3")])
def test_gpus_that_the_preflight_has_not_found_are_none_of_them(dealt, visible):
    assert uuids_of(dealt, visible, ["GPU-a", "GPU-b"]) == []
