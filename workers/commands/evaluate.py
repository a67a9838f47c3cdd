"""`python -m workers.commands.evaluate`: play fresh episodes with saved policies.

The question (one JSON line on stdin) and the answer are structs of esper_ab.contracts.children. After an error, the
exit status is 2 and stderr has one line.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.contracts.kinds_of_task import ENV_REWARD
from esper_ab.contracts.policies import PoliciesAnswer, PoliciesQuestion
from esper_ab.contracts.records import EvaluatedEpisode
from esper_ab.contracts.settings import Arithmetic, RewardSettings
from esper_ab.contracts.worker_order import RunSpec
from workers.commands.answering import answer_stdin
from workers.devices.by_torch import pin
from workers.environments import kind_of
from workers.ppo.making import possible
from workers.run import policy_file
from workers.run.session import Session


def evaluate_file(path: Path, request: PoliciesQuestion) -> tuple[RunSpec, tuple[EvaluatedEpisode, ...], str]:
    """Return a saved policy's RunSpec, its evaluation, and a warning or "".

    Raises ValueError or OSError; the message names the remedy.

    With the run's own episode count and rng seed, this repeats the run's evaluation. The repetition is bit-identical if
    the run's arithmetic is pinned and the same number of episodes runs in parallel on the same kind of device.
    """
    policy = policy_file.load(path)
    settings = policy.spec.settings
    arithmetic, problem = _possible(policy.spec.arithmetic, request.device)
    # A mode with a colon is a user's function, and a policy file from elsewhere must not cause one to run. A different
    # reward takes its place, because rewards do not affect a finished policy's decisions.
    modes = tuple(mode for mode in policy.spec.eval_reward_modes if ":" not in mode)
    if ":" in settings.reward.mode:
        settings = msgspec.structs.replace(settings, reward=RewardSettings(mode=next(iter(modes), ENV_REWARD)))
    rng_seed = policy.spec.rng_seed if request.rng_seed is None else request.rng_seed
    spec = msgspec.structs.replace(
        policy.spec,
        eval_episodes=request.eval_episodes or policy.spec.eval_episodes,
        rng_seed=rng_seed,
        env_devices=(request.device,) * policy.spec.n_envs,
        eval_reward_modes=modes,
        settings=settings,
        arithmetic=arithmetic,
    )
    world = kind_of(spec.task).world(path, spec, request.importable, request.device)
    episodes = Session(spec, world).evaluate_policy(policy, lambda _step: None)
    return spec, episodes, problem and f"{path}: {problem}"


def _possible(planned_arithmetic: Arithmetic, device: str) -> tuple[Arithmetic, str]:
    """Return the run's arithmetic as far as this machine supports it, and why the run's kernel is unusable, or ""."""
    arithmetic, problem = possible(planned_arithmetic)
    if device != "cpu" and arithmetic.host_kernel != "torch":
        arithmetic = msgspec.structs.replace(arithmetic, hosts="torch")
        problem = f"hosts are on {device}"
    remark = f"evaluated by torch instead of {planned_arithmetic.kernel}, so numbers differ from the run's"
    return arithmetic, problem and f"{remark}: {problem}"


def answer(request: PoliciesQuestion) -> PoliciesAnswer:
    """Evaluate saved policies with frozen normalisers; return means over environments and episodes."""
    rows = list[dict[str, Any]]()
    lines = list[str]()
    warnings = list[str]()
    for path in map(Path, request.policies):
        pin(policy_file.load(path).spec.arithmetic)
        spec, eval_episodes, warning = evaluate_file(path, request)
        if warning:
            warnings.append(warning)
        for actions in dict.fromkeys(episode.actions for episode in eval_episodes):
            episodes = [episode.result for episode in eval_episodes if episode.actions == actions]
            means, words = kind_of(spec.task).summary(episodes)
            rows.append({"policy": str(path), "actions": actions, "episodes": len(episodes), **means})
            lines.append(f"{path} ({actions}, {len(episodes)} episodes): {words}")
    return PoliciesAnswer(rows=tuple(rows), lines=tuple(lines), warnings=tuple(warnings))


if __name__ == "__main__":
    sys.exit(answer_stdin(answer, msgspec.json.Decoder(PoliciesQuestion)))
