"""Resources that lanes request from Ray, and GPUs that Ray assigns; tests/cluster/test_ray.py uses a cluster."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.worker_order import Lane
from esper_ab.launchers._ray_shares import bundles, parts, uuids_of


def lane(*devices, place=None):
    name = "+".join(devices) + ("" if place is None else f"/{place}")
    return Lane(name=name, devices=devices, uuids=("",) * len(devices))


def test_a_gpu_lane_also_requests_a_core():
    two_lanes = [lane("cpu:0", "cpu:1"), lane("cuda:0", "cuda:3")]
    assert bundles(two_lanes) == [{"CPU": 2}, {"GPU": 2, "CPU": 1}]
    assert parts(two_lanes) == {"cpu:0+cpu:1": (0, {"CPU": 2}), "cuda:0+cuda:3": (1, {"GPU": 2, "CPU": 1})}


def test_lanes_on_the_same_devices_share_one_bundle():
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
def test_parts_of_a_bundle_are_valid_ray_amounts(count, devices, kind):
    """Ray counts in ten thousandths, and accepts only whole numbers above 1."""
    devices = devices if kind == "cpu" else 1
    lanes = [lane(*(f"{kind}:{number}" for number in range(devices)), place=place) for place in range(count)]
    (bundle,) = bundles(lanes)
    for resource, capacity in bundle.items():
        amounts = [part[resource] for _, part in parts(lanes).values()]
        assert sum(round(part * 10_000) for part in amounts) <= capacity * 10_000
        assert all(part == int(part) if part > 1 else part > 0 for part in amounts)


@pytest.mark.parametrize(
    ("assigned_gpus", "visible_variable", "uuids"),
    [
        (["1"], None, ["GPU-b"]),  # by their number among the node's
        (["2"], "2,3", ["GPU-a"]),  # by their number in what the node offers
        (["3", "2"], "2, 3", ["GPU-b", "GPU-a"]),
        (["GPU-b"], "GPU-a,GPU-b", ["GPU-b"]),
        (["GPU-b6"], "GPU-a5,GPU-b6", ["GPU-b"]),  # an abbreviation, or longer than what the preflight has
        (["GPU-b"], None, ["GPU-b"]),
    ],
)
def test_gpus_assigned_by_ray_are_matched_with_those_of_the_preflight(assigned_gpus, visible_variable, uuids):
    assert uuids_of(assigned_gpus, visible_variable, ["GPU-a", "GPU-b"]) == uuids


@pytest.mark.parametrize(
    ("assigned_gpus", "visible_variable"), [(["2"], None), (["4"], "2,3,4"), (["GPU-c"], None), (["0"], "2,3")]
)
def test_gpus_unknown_to_the_preflight_are_not_matched(assigned_gpus, visible_variable):
    assert uuids_of(assigned_gpus, visible_variable, ["GPU-a", "GPU-b"]) == []
