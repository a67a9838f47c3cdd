"""`workers.evaluate` as a command: what cannot be done is one line, status 2, and an object with --json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.tensor_world import make_session

from workers import policy_file
from workers.evaluate import run


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    session = make_session(controller="wait", steps=2)
    policy_file.save(tmp_path / "0.pt", session.spec, session.agent)
    return tmp_path / "0.pt"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--device", "cuda:7"), "no device 'cuda:7' here; there is cpu"),
        (("--device", "gpu"), "no device 'gpu' here; there is cpu"),
        (("--episodes", "0"), "'--episodes'"),
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
    assert (row["actions"], row["hosts"], row["params_added"]) == ("sampled", 2, 0)
