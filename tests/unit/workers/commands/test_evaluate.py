"""`workers.commands.evaluate` as a command: what cannot be done is one line, status 2, and an object with --json."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
import torch
from support.tensor_world import make_session

from esper_ab.commands.evaluate import command
from esper_ab.contracts.settings import Arithmetic, RewardSettings
from workers.commands.evaluate import main, run
from workers.run import policy_file


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    session = make_session(controller="wait", steps=2)
    policy_file.save(tmp_path, session.spec, session.agent)
    return tmp_path / session.spec.policy_file


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--device", "cuda:7"), "no device 'cuda:7' here; there is cpu"),
        (("--device", "gpu"), "no device 'gpu' here; there is cpu"),
        (("--hosts", "0"), "'--hosts'"),
        (("nowhere.pt",), "no policy file 'nowhere.pt'"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    policy: Path, capsys: pytest.CaptureFixture[str], args: tuple[str, ...], words: str
) -> None:
    assert run([str(policy), *args, "--json"]) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert json.loads(out)["exit_status"] == 2


def test_a_policy_is_evaluated(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([str(policy), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["actions"], row["episodes"], row["params_added"]) == ("sampled", 2, 0)


def test_a_policy_is_evaluated_in_the_arithmetic_of_its_run(policy: Path) -> None:
    """Which threads, kernels and precision: what workers pin for themselves, so that numbers can be the run's."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    spec = policy_file.load(policy).spec
    for threads, deterministic in ((2, True), (1, False)):
        arithmetic = Arithmetic(threads=threads, deterministic=deterministic)
        policy_file.save(policy.parents[2], msgspec.structs.replace(spec, arithmetic=arithmetic), None)
        os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)
        assert run([str(policy)]) == 0
        assert torch.get_num_threads() == threads
        assert torch.are_deterministic_algorithms_enabled() == deterministic
        assert ("CUBLAS_WORKSPACE_CONFIG" in os.environ) == deterministic
        assert not torch.backends.cudnn.allow_tf32
        assert not torch.backends.cuda.matmul.allow_tf32


def test_a_kernel_that_is_not_here_is_replaced_by_torch_with_a_warning(
    policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A policy can be looked at on every machine; that the numbers are not the run's is said."""
    assert run([str(policy), "--json"]) == 0
    by_torch = json.loads(capsys.readouterr().out)
    spec = policy_file.load(policy).spec
    elsewhere = Arithmetic(kernel="native-avx2", kernel_build="a compiler that nobody has")
    policy_file.save(policy.parents[2], msgspec.structs.replace(spec, arithmetic=elsewhere), None)
    assert run([str(policy), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == by_torch
    assert err.startswith(f"warning: {policy}: torch trains the episodes in place of native-avx2")
    assert err.count("\n") == 1


def test_a_policy_of_a_task_that_is_not_installed_is_one_line(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = msgspec.structs.replace(policy_file.load(policy).spec, task="elsewhere")
    policy_file.save(policy.parents[2], spec, None)
    assert run([str(policy)]) == 2
    assert f"{policy}: its task 'elsewhere' is not installed here; there are " in capsys.readouterr().err


def test_a_policy_file_chooses_no_environment_of_its_own(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = msgspec.structs.replace(policy_file.load(policy).spec, task="/a/folder/env.py:make")
    policy_file.save(policy.parents[2], spec, None)
    assert run([str(policy)]) == 2
    assert "task '/a/folder/env.py:make' is code, which a policy file must not cause to run" in capsys.readouterr().err


def test_a_policy_file_chooses_no_code(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One from elsewhere may name a reward function of its maker's; evaluating it must not run that."""
    trap = policy.parent / "trap.py"
    trap.write_text("from pathlib import Path\nPath(__file__).with_suffix('.sprung').touch()\ndef reward(*_): ...\n")
    spec = policy_file.load(policy).spec
    settings = msgspec.structs.replace(spec.settings, reward=RewardSettings(mode=f"{trap}:reward"))
    spec = msgspec.structs.replace(spec, settings=settings, eval_reward_modes=("shaped", f"{trap}:reward"))
    policy_file.save(policy.parents[2], spec, None)
    assert run([str(policy)]) == 0
    assert "held-out accuracy" in capsys.readouterr().out
    assert not trap.with_suffix(".sprung").exists()


class _Trap:
    def __init__(self, sprung: Path) -> None:
        self.sprung = sprung

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.sprung,)


def test_a_policy_file_with_an_object_in_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What pickle would call while loading is never called."""
    torch.save({"format": policy_file.FORMAT, "spec": _Trap(tmp_path / "sprung"), "agent": None}, tmp_path / "0.pt")
    assert run([str(tmp_path / "0.pt")]) == 2
    assert "is no policy file" in capsys.readouterr().err
    assert not (tmp_path / "sprung").exists()


def test_the_command_has_the_same_options_as_the_child_that_it_starts() -> None:
    """`esper-ab evaluate --help` must not import torch, so they are declared twice."""
    told = [{(option, str(one.type)) for one in side.params for option in one.opts} for side in (command, main)]
    flags = [{pair for pair in side if pair[0].startswith("--")} for side in told]
    assert flags[0] == flags[1]
    assert "--rng-seed" in dict(flags[0])
