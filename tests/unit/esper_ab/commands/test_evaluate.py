"""evaluate refuses a policy that differs from the one that its run recorded."""

import hashlib
import json

import msgspec
import pytest
from support.journals.audited_journals import evaluations
from support.journals.ready_journals import planted_effect, write

from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import group
from esper_ab.commands.evaluate import check_whole
from esper_ab.contracts.errors import UsageError
from esper_ab.control import child_answer

CONTENT = b"a policy"


@pytest.fixture
def policy(tmp_path):
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    events = evaluations(planted_effect(), lambda record: msgspec.structs.replace(record, policy_sha256=sha256))
    experiment_dir = write(tmp_path / "run", events)
    path = experiment_dir / "policies" / "shaped" / "0.pt"
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    return path


def test_a_policy_that_differs_from_its_record_is_refused(policy, tmp_path):
    """In which words: tests/golden/refusals."""
    (tmp_path / "elsewhere.pt").write_bytes(b"another")
    check_whole([str(policy), str(tmp_path / "elsewhere.pt"), str(policy.with_name("99.pt"))])
    policy.write_bytes(b"another")
    with pytest.raises(UsageError, match="is not the policy that run shaped/0 saved: its sha256 is "):
        check_whole([str(policy)])
    (policy.parents[2] / "events.jsonl").unlink()
    check_whole([str(policy)])


def test_a_killed_child_process_is_reported_in_one_line(policy, monkeypatch, capfd):
    """As by the kernel, where memory is lacking: nobody else says so."""
    monkeypatch.setattr(child_answer, "child_command", lambda *_: ["sh", "-c", "kill -KILL $$"])
    assert invoke(group, ["evaluate", str(policy), "--json"], "esper-ab") == 1
    captured_output = capfd.readouterr()
    assert captured_output.err.endswith("error: workers.commands.evaluate was killed by SIGKILL and printed nothing\n")
    assert json.loads(captured_output.out)["exit_status"] == 1
