"""Answers and refusals of the child process of `esper-ab evaluate`."""

import os
from pathlib import Path

import msgspec
import pytest
import torch
from support.commands.evaluation_child import evaluated
from support.worlds.tensor_world import make_session

from esper_ab.contracts.settings import Arithmetic, RewardSettings
from workers.run import policy_file


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    session = make_session(controller="wait", steps=2)
    policy_file.save(tmp_path, session.spec, session.agent)
    return tmp_path / session.spec.policy_file


def rewrite(policy: Path, **changes: object) -> None:
    """Change what its file says of the run."""
    spec = msgspec.structs.replace(policy_file.load(policy).spec, **changes)
    policy_file.save(policy.parents[2], spec, None)


@pytest.mark.parametrize("device", ["cuda:7", "gpu"])
def test_evaluating_on_a_missing_device_is_refused(policy: Path, device: str) -> None:
    with pytest.raises(ValueError, match=f"no device '{device}' here; available: cpu"):
        evaluated(policy, device=device)


def test_a_policy_is_evaluated_with_the_arithmetic_of_its_run(policy: Path) -> None:
    """Which threads, kernels and precision: what workers pin for themselves, so that numbers can be the run's."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    for threads, deterministic in ((2, True), (1, False)):
        rewrite(policy, arithmetic=Arithmetic(threads=threads, deterministic=deterministic))
        os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)
        evaluated(policy)
        assert torch.get_num_threads() == threads
        assert torch.are_deterministic_algorithms_enabled() == deterministic
        assert ("CUBLAS_WORKSPACE_CONFIG" in os.environ) == deterministic
        assert not torch.backends.cudnn.allow_tf32
        assert not torch.backends.cuda.matmul.allow_tf32


def test_an_evaluation_uses_torch_if_the_kernel_is_missing(policy: Path) -> None:
    """A policy can be looked at on every machine; that the numbers are not the run's is said."""
    by_torch = evaluated(policy)
    rewrite(policy, arithmetic=Arithmetic(kernel="native-avx2", kernel_build="a compiler that nobody has"))
    by_kernel = evaluated(policy)
    assert (by_kernel.rows, by_kernel.lines, by_torch.warnings) == (by_torch.rows, by_torch.lines, ())
    (warning,) = by_kernel.warnings
    assert warning.startswith(f"{policy}: evaluated by torch instead of native-avx2")
    assert "\n" not in warning


@pytest.mark.parametrize(
    ("task", "complaint"),
    [
        ("elsewhere", "its task 'elsewhere' is not installed here; there are "),
        (
            "/a/folder/env.py:make",
            "its task '/a/folder/env.py:make' is code, which a policy file must not cause to run",
        ),
    ],
)
def test_a_policy_file_cannot_choose_a_task_that_is_not_installed(policy: Path, task: str, complaint: str) -> None:
    rewrite(policy, task=task)
    with pytest.raises(ValueError, match=f"^{policy}: {complaint}"):
        evaluated(policy)


def test_an_evaluation_does_not_run_the_custom_reward_of_a_policy_file(policy: Path) -> None:
    """A file from elsewhere must not cause code to run."""
    reward_file = policy.parent / "own.py"
    reward_file.write_text("raise RuntimeError('it was run')")
    settings = msgspec.structs.replace(
        policy_file.load(policy).spec.settings, reward=RewardSettings(mode=f"{reward_file}:f")
    )
    rewrite(policy, settings=settings, eval_reward_modes=("shaped", f"{reward_file}:f"))
    assert "held-out accuracy" in evaluated(policy).lines[0]


class _Trap:
    def __init__(self, sprung_traps: Path) -> None:
        self.sprung = sprung_traps

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.sprung,)


def test_a_policy_file_with_a_pickled_object_is_refused(tmp_path: Path) -> None:
    """What pickle would call while loading is never called."""
    torch.save({"format": policy_file.FORMAT, "spec": _Trap(tmp_path / "sprung"), "agent": None}, tmp_path / "0.pt")
    with pytest.raises(ValueError, match="is no policy file"):
        evaluated(tmp_path / "0.pt")
    assert not (tmp_path / "sprung").exists()
