"""The shares of a Ray cluster's cores and GPUs that lanes take, and the UUIDs of the GPUs that Ray has assigned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.worker_order import Lane

_PARTS = 10_000  # of a core or a GPU: the unit in which Ray counts


def bundles(lanes: Sequence[Lane]) -> list[dict[str, float]]:
    """Return the resources for each set of devices: either its GPUs and one core per lane, or its cores."""
    needed_resources: list[dict[str, float]] = []
    for devices, count in _sharing(lanes).items():
        gpus = _gpus(devices)
        if gpus:
            needed_resources.append({"GPU": gpus, "CPU": count})
        else:
            needed_resources.append({"CPU": len(devices)})
    return needed_resources


def parts(lanes: Sequence[Lane]) -> dict[str, tuple[int, dict[str, float]]]:
    """Return, by lane name, the index of the lane's bundle and the part of the bundle that the lane takes."""
    lanes_per_devices = _sharing(lanes)
    bundle_by_devices = dict(zip(lanes_per_devices, enumerate(bundles(lanes)), strict=True))
    by_lane: dict[str, tuple[int, dict[str, float]]] = {}
    for lane in lanes:
        place, bundle = bundle_by_devices[lane.devices]
        part = {kind: _part(amount, lanes_per_devices[lane.devices]) for kind, amount in bundle.items()}
        by_lane[lane.name] = (place, part)
    return by_lane


def check_shares(lanes: Sequence[Lane]) -> None:
    """Raise UsageError for lanes that share several GPUs, because Ray would give each lane only one GPU."""
    lanes_per_devices = _sharing(lanes)
    for lane in lanes:
        if _gpus(lane.devices) > 1 and lanes_per_devices[lane.devices] > 1:
            raise UsageError(
                f"launcher ray on {lane.name}: Ray can share one GPU among workers, but not several; use ",
                SettingName("devices_per_run", 1),
                " or ",
                SettingName("placement", "spread"),
            )


def uuids_of(assigned_gpus: Sequence[str], visible_variable: str | None, known_uuids: Sequence[str]) -> list[str]:
    """Return the UUIDs of the GPUs that Ray assigned; GPUs that the preflight did not find are left out.

    Ray names GPUs as they are named in CUDA_VISIBLE_DEVICES of their node (`visible_variable`) or, if this variable is
    not set, by number. `known_uuids`: the UUIDs that the preflight found on the node, in order.
    """
    if visible_variable is None:
        listed_names = [str(number) for number in range(len(known_uuids))]
    else:
        listed_names = visible_variable.replace(" ", "").split(",")
    uuids_by_name = dict(zip(listed_names, known_uuids, strict=False))  # a node may offer fewer than it sees
    uuids = [uuids_by_name.get(gpu, gpu) for gpu in assigned_gpus]
    return [uuid for uuid in uuids if uuid in known_uuids]


def _sharing(lanes: Sequence[Lane]) -> Counter[tuple[str, ...]]:
    """Count the lanes on the same devices, in the order of the plan."""
    return Counter(lane.devices for lane in lanes)


def _gpus(devices: Sequence[str]) -> int:
    return sum(device.startswith("cuda:") for device in devices)


def _part(amount: float, count: int) -> float:
    """Return one of `count` equal parts that together do not exceed `amount`; a part of 1 or more is an integer."""
    if amount >= count:
        return amount // count
    return amount * _PARTS // count / _PARTS
