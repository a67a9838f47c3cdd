"""What lanes take of a cluster of Ray: a bundle for the lanes on the same devices, of which each has its part. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.messages import Lane

_PARTS = 10_000  # of a core or a GPU: what Ray counts in


def bundles(lanes: Sequence[Lane]) -> list[dict[str, float]]:
    """What is taken of a node, for each set of devices: its GPUs, and a core per lane; or its cores."""
    return [
        {"GPU": gpus, "CPU": count} if (gpus := _gpus(devices)) else {"CPU": len(devices)}
        for devices, count in _sharing(lanes).items()
    ]


def parts(lanes: Sequence[Lane]) -> dict[str, tuple[int, dict[str, float]]]:
    """The place of each lane's bundle, and what it takes of that, by the lane's name."""
    sharing = _sharing(lanes)
    whole = dict(zip(sharing, enumerate(bundles(lanes)), strict=True))
    found = {}
    for lane in lanes:
        place, bundle = whole[lane.devices]
        found[lane.name] = place, {kind: _part(count, sharing[lane.devices]) for kind, count in bundle.items()}
    return found


def check_shares(lanes: Sequence[Lane]) -> None:
    """UsageError for lanes that share several GPUs, of which Ray would deal out one to each."""
    sharing = _sharing(lanes)
    for lane in lanes:
        if _gpus(lane.devices) > 1 and sharing[lane.devices] > 1:
            raise UsageError(
                f"launcher ray on {lane.name}: Ray has a part of one GPU, not of several, for a worker; take "
                "--devices-per-run 1 or --placement spread"
            )


def uuids_of(dealt: Sequence[str], visible: str | None, there: Sequence[str]) -> list[str]:
    """UUIDs of the GPUs that Ray has dealt out, of which those that the preflight has not found are left out.

    Ray calls a GPU as the CUDA_VISIBLE_DEVICES of its node does (`visible`), or by its number where there is none.
    `there`: the UUIDs that the preflight, which sees the same, has found on the node, in order.
    """
    listed = [str(number) for number in range(len(there))] if visible is None else visible.replace(" ", "").split(",")
    by_call = dict(zip(listed, there, strict=False))  # a node may offer fewer than it sees
    return [by_call.get(one, one) for one in dealt if by_call.get(one, one) in there]


def _sharing(lanes: Sequence[Lane]) -> Counter[tuple[str, ...]]:
    """Count the lanes on the same devices, in the order of the plan."""
    return Counter(lane.devices for lane in lanes)


def _gpus(devices: Sequence[str]) -> int:
    return sum(device.startswith("cuda:") for device in devices)


def _part(whole: float, count: int) -> float:
    """One of `count` parts that are together no more than `whole`; a whole number where it is 1 or more."""
    return whole // count if whole >= count else whole * _PARTS // count / _PARTS
