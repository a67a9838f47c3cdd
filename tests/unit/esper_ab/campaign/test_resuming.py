"""What is not resumed: a directory with a link where something will be written, another arithmetic."""

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


def resume(experiment_dir, **how):
    resuming.resume(experiment_dir, InlineLauncher(), RunOptions(watched=False), allow_changed_code=True, **how)


@pytest.mark.parametrize(("link", "how"), [*((link, {}) for link in LINKS), ("policies", {"seeds": 9})])
def test_nothing_is_written_behind_a_link(tmp_path, link, how):
    experiment_dir = write(tmp_path / "run", one_replicate() if how else planted_effect()[:20])
    precious = tmp_path / "precious"
    if link == "events.jsonl":
        (experiment_dir / link).rename(precious)
    else:
        precious.mkdir()
    (experiment_dir / link).parent.mkdir(parents=True, exist_ok=True)
    (experiment_dir / link).symlink_to(precious)
    before = precious.read_bytes() if precious.is_file() else b""
    with pytest.raises(UsageError, match=r"is a symbolic link.*nothing is written through links") as raised:
        resume(experiment_dir, **how)
    assert str(experiment_dir / link) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert (precious.read_bytes() if precious.is_file() else b"".join(map(bytes, precious.iterdir()))) == before


def test_what_is_left_is_not_trained_by_another_kernel(tmp_path, monkeypatch):
    """Its records would be of two arithmetics; refused before anything is written or started."""
    arithmetic = Arithmetic(kernel="native-generic", kernel_build="a compiler that nobody has")
    experiment_dir = write(tmp_path / "run", [started(fake_plans.plan(arithmetic=arithmetic))])
    before = (experiment_dir / "events.jsonl").read_bytes()
    monkeypatch.setattr(machines, "examine_here", lambda *_: fake_plans.machine(2))
    with pytest.raises(UsageError, match="native-generic"):
        resume(experiment_dir)
    assert (experiment_dir / "events.jsonl").read_bytes() == before
