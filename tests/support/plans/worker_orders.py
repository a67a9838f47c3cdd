"""Default orders for a worker and a run, with keyword changes."""

from typing import Any

import msgspec

from esper_ab.contracts.records import RunRef
from esper_ab.contracts.settings import Arithmetic, GroupSettings
from esper_ab.contracts.worker_order import Lane, RunSpec, WorkerOrder


def order(device: str = "cpu:0", uuid: str = "", **change: object) -> WorkerOrder:
    defaults = {"endpoint": "", "worker": "w00", "incarnation": 1, "experiment_dir": "", "log_file": ""}
    lane = {"lane": Lane(name=device, devices=(device,), uuids=(uuid,)), "arithmetic": Arithmetic()}
    return WorkerOrder(**(defaults | lane | change))


_TABLES = ("policy", "ppo", "growth", "reward", "gym")


def settings_from(changes: dict[str, Any], usual_tables: dict[str, dict[str, Any]]) -> GroupSettings:
    """Return the settings in `usual_tables`, updated by `changes`, from which the used keys are removed."""
    tables = {name: usual_tables.get(name, {}) | changes.pop(name, {}) for name in _TABLES}
    return msgspec.convert({"controller": {"name": changes.pop("controller", "ppo")}, **tables}, GroupSettings)


def run_order(
    settings: GroupSettings,
    /,
    *,
    group: str = "a",
    replicate: int = 0,
    device: str = "cpu:0",
    n_envs: int = 2,
    mode: str | None = None,
    controller: str | None = None,
    **changes: Any,
) -> RunSpec:
    """Return the RunSpec of two short episodes in `n_envs` environments; `changes`: other fields, such as the task."""
    ref = RunRef(
        name=f"{group}/{replicate}",
        group_id=group,
        replicate=replicate,
        device=device,
        reward_mode=settings.reward.mode if mode is None else mode,
        controller=settings.controller.name if controller is None else controller,
    )
    fields: dict[str, Any] = {
        "ref": ref,
        "experiment_digest": "",
        "rng_seed": 5,
        "rng_label": "",
        "data_dir": "",
        "slots": (),
        "n_envs": n_envs,
        "episodes": 2,
        "steps": 8,
        "eval_episodes": n_envs,
        "eval_reward_modes": (),
        "env_devices": (device,) * n_envs,
        "settings": settings,
        "arithmetic": Arithmetic(),
        "telemetry": True,
        "policy_file": f"policies/{ref.name}.pt",
        "log_file": f"logs/{group}-{replicate}.log",
    }
    return RunSpec(**fields | changes)
