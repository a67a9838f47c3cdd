"""`python -m workers.commands.evaluate POLICY…`: play fresh episodes with saved policies and print the results."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np
import torch

from esper_ab.contracts import catalog
from esper_ab.contracts.kinds import ENV_REWARD, GYM_PREFIX, GYMNASIUM, kind_of_task
from esper_ab.contracts.messages import RunSpec
from esper_ab.contracts.records import EnvEpisode, EvaluatedEpisode
from esper_ab.contracts.settings import Arithmetic, GroupSettings, RewardSettings
from esper_ab.contracts.visible import visible_line
from workers.datasets.task import Task
from workers.devices.by_torch import pin
from workers.environments import World
from workers.growth.samples import DeviceData
from workers.kinds.growth import GrowthWorld
from workers.native import library
from workers.native.build import Unusable
from workers.run import policy_file
from workers.run.session import Session, evaluate_policy


def evaluate_file(
    path: Path, eval_episodes: int | None, rng_seed: int | None, device: str, importable: Collection[str] = ()
) -> tuple[EvaluatedEpisode, ...]:
    """Evaluate one saved policy; ValueError or FileNotFoundError name the fault and the remedy.

    With the run's own number of episodes and rng seed this repeats the run's evaluation; to the bit where its
    arithmetic is pinned and the episodes are on the same kind of device, as many of them side by side. `importable`:
    modules that the policy's task may import.
    """
    policy = policy_file.load(path)
    spec = msgspec.structs.replace(
        policy.spec, eval_episodes=eval_episodes or policy.spec.eval_episodes,
        rng_seed=policy.spec.rng_seed if rng_seed is None else rng_seed, env_devices=(device,) * policy.spec.n_envs,
        eval_reward_modes=tuple(mode for mode in policy.spec.eval_reward_modes if not _is_code(mode)),
        settings=_without_code(policy.spec.settings, gymnasium=kind_of_task(policy.spec.task) == GYMNASIUM),
        arithmetic=_possible(policy.spec.arithmetic, path, device),
    )
    if spec.task.startswith(GYM_PREFIX):
        return evaluate_policy(Session(spec, _gym_world(path, spec, importable)), policy, lambda _step: None)
    tasks = catalog.names("workers.tasks")
    if kind_of_task(spec.task) == GYMNASIUM:
        raise ValueError(f"{path}: its task {spec.task!r} is code, which a policy file must not cause to run")
    if spec.task not in tasks:
        raise ValueError(f"{path}: its task {spec.task!r} is not installed here; there are {', '.join(tasks)}")
    task: Task = catalog.entry("workers.tasks", spec.task, "TASK")
    data = {device: DeviceData.of(task.load(spec.data_dir), torch_device(device))}
    return evaluate_policy(Session(spec, GrowthWorld(spec, task, data)), policy, lambda _step: None)


def _gym_world(path: Path, spec: RunSpec, importable: Collection[str]) -> World:
    """Return the world of a Gymnasium task; ValueError where that would run code that a policy file names."""
    if _is_code(spec.outcome.removeprefix("info:")):
        raise ValueError(f"{path}: its outcome {spec.outcome!r} is code, which a policy file must not cause to run")
    module = spec.task.removeprefix(GYM_PREFIX).rpartition(":")[0]
    if module and module not in importable:
        raise ValueError(
            f"{path}: its task {spec.task!r} imports {module!r}, which a policy file must not cause; if you trust the "
            f"installed module of that name, allow it: --import {module}"
        )
    world: World = catalog.entry("workers.gymnasium_task", "world", "GymWorld")(spec)
    return world


def _possible(planned: Arithmetic, path: Path, device: str) -> Arithmetic:
    """Return the arithmetic of a run as far as episodes can have it here; a line on stderr names a kernel that
    cannot.
    """
    problem = f"hosts are on {device}" if device != "cpu" and planned.kernel != "torch" else ""
    try:
        library.check(planned)
    except Unusable as error:
        problem = problem or str(error)
    if not problem:
        return planned
    told = f"torch trains the episodes in place of {planned.kernel}, so numbers differ from those of the run"
    click.echo(f"warning: {path}: {told}: {visible_line(problem)}", err=True)
    return msgspec.structs.replace(planned, kernel="torch", kernel_build="")


def _is_code(mode: str) -> bool:
    """Return whether a reward mode is a user's function, which a policy file from elsewhere must not cause to run."""
    return ":" in mode


def _without_code(settings: GroupSettings, *, gymnasium: bool) -> GroupSettings:
    """Replace a user's reward by one that is none, since rewards do not affect a finished policy's decisions."""
    if not _is_code(settings.reward.mode):
        return settings
    plain = ENV_REWARD if gymnasium else RewardSettings().mode
    return msgspec.structs.replace(settings, reward=RewardSettings(mode=plain))


def torch_device(name: str) -> torch.device:
    """Return the device that plans call `name`; ValueError when it is not on this machine."""
    there = ("cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count() if torch.version.cuda else 0)))
    if name not in there:
        raise ValueError(f"no device {name!r} here; there is {', '.join(there)}")
    return torch.device(name)


def summary(path: Path, eval_episodes: tuple[EvaluatedEpisode, ...]) -> list[dict[str, object]]:
    """Return means over environments and episodes, one row per kind of action."""
    rows: list[dict[str, object]] = []
    for actions in dict.fromkeys(played.actions for played in eval_episodes):
        chosen = [played for played in eval_episodes if played.actions == actions]
        if "params_added" not in chosen[0].outcome.measures:
            rows.append(_of_episodes(path, actions, [played.outcome for played in chosen]))
            continue
        means = ("params_added", "fossilized", "pruned")
        rows.append({
            "policy": str(path), "actions": actions, "episodes": len(chosen),
            "held_out_accuracy": float(np.mean([played.outcome.outcome for played in chosen])),
            **{name: float(np.mean([played.outcome.measures[name] for played in chosen])) for name in means},
            "diverged": sum(played.outcome.failed for played in chosen),
        })
    return rows


def _of_episodes(path: Path, actions: str, episodes: Sequence[EnvEpisode]) -> dict[str, object]:
    """Return means of outcome and measures, by the names that the task declared."""
    known = {name: [one.measures[name] for one in episodes] for name in episodes[0].measures}
    means = {name: float(np.mean([v for v in values if v is not None] or [np.nan])) for name, values in known.items()}
    outcome = float(np.mean([one.outcome for one in episodes]))
    return {"policy": str(path), "actions": actions, "episodes": len(episodes), "outcome": outcome, "measures": means}


def _line(row: dict[str, Any]) -> str:
    if "measures" in row:
        means = ", ".join(f"{name} {mean:.2f}" for name, mean in row["measures"].items())
        return f"{row['policy']} ({row['actions']}, {row['episodes']} episodes): outcome {row['outcome']:.2f}, {means}"
    return (
        f"{row['policy']} ({row['actions']}, {row['episodes']} episodes): held-out accuracy "
        f"{row['held_out_accuracy']:.2f} %, {row['params_added']:.0f} parameters added, "
        f"{row['fossilized']:.1f} fossilised, {row['pruned']:.1f} pruned, {row['diverged']} diverged"
    )


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.argument("policies", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--episodes", "eval_episodes", type=click.IntRange(min=1), help="Episodes to play. [default: as in the "
                                                                              "run]")
@click.option("--rng-seed", type=click.IntRange(min=0), help="Other draws. [default: the run's own, "
              "which repeats its evaluation on the same kind of device]")
@click.option("--device", default="cpu", show_default=True,
    help="For the environments: cpu, or a GPU as plans name it.")
@click.option("--import", "importable", multiple=True, help="Module that a policy's task may import.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array instead of lines.")
def main(
    policies: tuple[Path, ...], eval_episodes: int | None, rng_seed: int | None, device: str, importable: tuple[str,
    ...], as_json: bool,
) -> None:  # fmt: skip
    """Evaluate saved POLICIES (policies/<group>/<replicate>.pt), frozen with their normalisers."""
    rows: list[dict[str, object]] = []
    for path in policies:
        pin(policy_file.load(path).spec.arithmetic)
        rows += summary(path, evaluate_file(path, eval_episodes, rng_seed, device, importable))
    if as_json:
        click.echo(msgspec.json.encode(rows).decode())
        return
    for row in rows:
        click.echo(_line(row))


def run(args: Sequence[str]) -> int:
    """Run the command; errors in one line, also as an object on stdout with --json. Return exit status 0 or 2."""
    try:
        main.main(list(args), prog_name="esper-ab evaluate", standalone_mode=False)
    except click.ClickException as error:
        message = f"{error.format_message()} (see `esper-ab evaluate --help`)"
    except (ValueError, OSError, RuntimeError, KeyError) as error:
        message = str(error.args[0] if isinstance(error, KeyError) else error)
    else:
        return 0
    message = visible_line(" ".join(message.split()))
    click.echo(f"error: {message}", err=True)
    if "--json" in args:
        click.echo(msgspec.json.encode({"error": message, "exit_status": 2}).decode())
    return 2


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
