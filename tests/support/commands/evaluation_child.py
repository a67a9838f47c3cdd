"""Run the child of `esper-ab evaluate` in this process."""

from pathlib import Path

from esper_ab.contracts.policies import PoliciesAnswer, PoliciesQuestion
from workers.commands.evaluate import answer


def question(*policies: Path | str, device: str = "cpu", importable_folders: tuple[str, ...] = ()) -> PoliciesQuestion:
    return PoliciesQuestion(
        policies=tuple(map(str, policies)),
        eval_episodes=None,
        rng_seed=None,
        device=device,
        importable=importable_folders,
    )


def evaluated(policy: Path | str, *, device: str = "cpu", importable_folders: tuple[str, ...] = ()) -> PoliciesAnswer:
    return answer(question(policy, device=device, importable_folders=importable_folders))
