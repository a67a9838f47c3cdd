"""The flags of `launch` as one typed struct. Other commands that train take a subset of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec


class LaunchFlags(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """WHAT and the flags of `launch`, named as on the command line; a default means that the flag is not given.

    The texts of lists, such as "a,b", and of settings are parsed in `settings/request`.
    """

    what: str | None = None  # an experiment file, a trainer or a command

    # What most experiments need
    vary: str | None = None
    higher: str | None = None
    lower: str | None = None
    groups: str | None = None
    group: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    task: str | None = None
    episodes: int | None = None
    n_envs: int | None = None
    seeds: str | None = None  # a number or "auto"
    margin: float | str | None = None  # text for several tasks
    devices: str | None = None
    dry_run: bool = False

    # What is trained
    data_dir: str | None = None
    slots: str | None = None
    steps: int | None = None
    total_timesteps: int | None = None
    rng_seed: int | None = None
    no_telemetry: bool = False

    # Your own environment or trainer
    outcome_unit: str | None = None
    outcome_range: str | None = None
    outcome_summary: str | None = None
    end_idle: bool = False
    rehearsal: str | None = None
    code: tuple[str, ...] = ()

    # What is compared, and by which rule
    max: int | None = None
    looks: str | None = None
    no_early_stop: bool = False
    futility: float | None = None
    claim: str | None = None
    guardrail: tuple[str, ...] = ()
    variances: str | None = None
    shape: str | None = None
    control: str | None = None
    untested: str | None = None
    outcome_over: str | None = None
    alpha: float | None = None
    grid: tuple[str, ...] = ()
    scores: str | None = None
    eval_episodes: str | None = None
    unpaired: bool = False
    calibration: Path | None = None
    reward_audit: Path | None = None
    references: Path | None = None
    references_limit: str | None = None
    fail_unless: tuple[str, ...] = ()

    # Where it runs
    devices_per_run: int | None = None
    max_parallel: int | None = None
    parallel: bool = True
    no_retry: bool = False
    placement: str | None = None
    order: str | None = None
    sync: str | None = None
    threads: int | None = None
    amp: str | None = None
    kernel: str | None = None
    deterministic: bool | None = None
    launcher: str | None = None
    transport: str | None = None
    ray_address: str | None = None
    ray_label: tuple[str, ...] = ()
    ray_wait: float | None = None

    # What comes out
    output_dir: Path = Path("experiments")
    name: str | None = None
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    yes: bool = False
    track: str | None = None
    wandb_mode: str | None = None
    wandb_entity: str | None = None
    wandb_project: str | None = None

    @property
    def by_name(self) -> dict[str, Any]:
        """All flags by name, as `settings/request` and `execution/launching` read them."""
        return msgspec.structs.asdict(self)


msgspec.json.Decoder(LaunchFlags)  # built now, in one thread: tests/house/test_decoders.py


def typed_flags(parsed_options: Mapping[str, Any]) -> LaunchFlags:
    """Return the flags that click has parsed, by name."""
    return msgspec.convert(parsed_options, LaunchFlags)
