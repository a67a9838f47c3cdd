"""`python -m workers.commands.evaluate POLICY…`: play fresh episodes with saved policies and print the results."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import click
import msgspec

from esper_ab.contracts.kinds import ENV_REWARD
from esper_ab.contracts.records import EvaluatedEpisode
from esper_ab.contracts.settings import Arithmetic, GroupSettings, RewardSettings
from esper_ab.contracts.visible import visible_line
from workers.devices.by_torch import pin
from workers.environments import kind_of
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
    modes = tuple(mode for mode in policy.spec.eval_reward_modes if not _is_code(mode))
    spec = msgspec.structs.replace(
        policy.spec, eval_episodes=eval_episodes or policy.spec.eval_episodes,
        rng_seed=policy.spec.rng_seed if rng_seed is None else rng_seed, env_devices=(device,) * policy.spec.n_envs,
        eval_reward_modes=modes, settings=_without_code(policy.spec.settings, modes),
        arithmetic=_possible(policy.spec.arithmetic, path, device),
    )
    world = kind_of(spec.task).world(path, spec, importable, device)
    return evaluate_policy(Session(spec, world), policy, lambda _step: None)


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


def _without_code(settings: GroupSettings, modes: tuple[str, ...]) -> GroupSettings:
    """Replace a user's reward by one that is none, since rewards do not affect a finished policy's decisions."""
    if not _is_code(settings.reward.mode):
        return settings
    return msgspec.structs.replace(settings, reward=RewardSettings(mode=next(iter(modes), ENV_REWARD)))


def summary(path: Path, task: str, played: tuple[EvaluatedEpisode, ...]) -> Iterator[tuple[dict[str, object], str]]:
    """Yield means over environments and episodes, by name and in words, for each kind of action."""
    for actions in dict.fromkeys(one.actions for one in played):
        episodes = [one.outcome for one in played if one.actions == actions]
        means, words = kind_of(task).summary(episodes)
        row = {"policy": str(path), "actions": actions, "episodes": len(episodes), **means}
        yield row, f"{path} ({actions}, {len(episodes)} episodes): {words}"


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
    rows: list[tuple[dict[str, object], str]] = []
    for path in policies:
        spec = policy_file.load(path).spec
        pin(spec.arithmetic)
        rows += summary(path, spec.task, evaluate_file(path, eval_episodes, rng_seed, device, importable))
    if as_json:
        click.echo(msgspec.json.encode([row for row, _ in rows]).decode())
        return
    for _, line in rows:
        click.echo(line)


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
