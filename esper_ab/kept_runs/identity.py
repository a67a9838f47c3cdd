"""What a run is, apart from names and places: everything that determines its numbers, as one hash. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from esper_ab.contracts.trainer import TrainerOrder
from esper_ab.contracts.worker_order import RunSpec

_NAMES_AND_PLACES = ("ref", "experiment_digest", "env_devices", "policy_file", "log_file", "reward_code", "trainer")


def identity_of(spec: RunSpec, measures: Sequence[str], code: str, folders: Sequence[str]) -> str:
    """Return the hash of what determines the numbers of a group's runs, except their seed.

    `code`: what identifies the user's trainer, "" if there is none. `folders`: in which it is; what it is called does
    not depend on where they are.
    """
    facts: dict[str, Any] = msgspec.to_builtins(spec)
    for name in _NAMES_AND_PLACES:
        del facts[name]
    facts["reward"] = [spec.ref.reward_mode.rpartition(":")[2], spec.ref.controller]
    facts["rewards"] = [[reward.reference.rpartition(":")[2], reward.sha256] for reward in spec.reward_code]
    facts["devices"] = _kinds(spec.env_devices)
    facts["measures"] = list(measures)
    if spec.trainer is not None:
        facts["trainer"] = _trainer_facts(spec.trainer, folders)
        facts["code"] = code
    return hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()


def key_of(identity: str, replicate: int) -> str:
    """Return the hash of a run: that of its group and the number of its seed."""
    return hashlib.sha256(f"{identity} {replicate}".encode()).hexdigest()


def _kinds(devices: Sequence[str]) -> list[str]:
    """Return devices without their numbers: cuda:3, cuda:5, cuda:3 are cuda 0, cuda 1, cuda 0."""
    numbers = {device: number for number, device in enumerate(dict.fromkeys(devices))}
    return [f"{device.partition(':')[0]} {numbers[device]}" for device in devices]


def _trainer_facts(order: TrainerOrder, folders: Sequence[str]) -> dict[str, Any]:
    reference = order.reference
    for folder in sorted(filter(None, folders), key=len, reverse=True):
        reference = reference.replace(f"{folder}/", "")
    return {
        "reference": reference,
        "inside": order.tree.inside if order.tree is not None else "",
        "outcome": order.outcome,
        "outcome_summary": order.outcome_summary,
        "worst": order.worst,
        "metrics": order.metrics,
        "ends_idle": order.ends_idle,
    }
