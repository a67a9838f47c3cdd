"""Refused resumes: a link in a place that will be written, and another arithmetic."""

import pytest
from support.journals.ready_journals import one_replicate, planted_effect, write
from support.journals.synthetic import started
from support.plans import fake_plans

from esper_ab.campaign import machines, resuming
from esper_ab.campaign.running import RunOptions
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import Arithmetic
from esper_ab.launchers.inline import InlineLauncher

LINKS = (
    "checkpoints",
    "checkpoints/shaped/0",
    "policies",
    "policies/shaped/0.pt",
    "logs",
    "logs/shaped-0.log",
    "runs",
    "tracking",
    "tracking/wandb.lock",
    "tensorboard",
    "tensorboard/shaped/0",
    "events.jsonl",
)


def resume(experiment_dir, **options):
    resuming.resume(experiment_dir, InlineLauncher(), RunOptions(watched=False), allow_changed_code=True, **options)


@pytest.mark.parametrize(("link", "options"), [*((link, {}) for link in LINKS), ("policies", {"replicates": 9})])
def test_a_resume_does_not_write_through_a_symbolic_link(tmp_path, link, options):
    experiment_dir = write(tmp_path / "run", one_replicate() if options else planted_effect()[:20])
    precious_folder = tmp_path / "precious"
    if link == "events.jsonl":
        (experiment_dir / link).rename(precious_folder)
    else:
        precious_folder.mkdir()
    (experiment_dir / link).parent.mkdir(parents=True, exist_ok=True)
    (experiment_dir / link).symlink_to(precious_folder)
    contents = precious_folder.read_bytes() if precious_folder.is_file() else b""
    with pytest.raises(UsageError, match=r"is a symbolic link.*nothing is written through links") as refusal:
        resume(experiment_dir, **options)
    assert str(experiment_dir / link) in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert (
        precious_folder.read_bytes() if precious_folder.is_file() else b"".join(map(bytes, precious_folder.iterdir()))
    ) == contents


def test_a_resume_with_another_kernel_is_refused(tmp_path, monkeypatch):
    """The records would mix two arithmetics, so nothing is written or started."""
    arithmetic = Arithmetic(kernel="native-generic", kernel_build="a compiler that nobody has")
    experiment_dir = write(tmp_path / "run", [started(fake_plans.plan(arithmetic=arithmetic))])
    contents = (experiment_dir / "events.jsonl").read_bytes()
    monkeypatch.setattr(machines, "examine_here", lambda *_: fake_plans.machine(2))
    with pytest.raises(UsageError, match="native-generic"):
        resume(experiment_dir)
    assert (experiment_dir / "events.jsonl").read_bytes() == contents
