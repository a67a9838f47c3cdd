"""going_on: an experiment directory in which a link stands where something will be written is not gone on with."""

from __future__ import annotations

import pytest
from support.journals import one_replicate, planted_effect, write

from esper_ab.contracts.errors import UsageError
from esper_ab.execution import going_on
from esper_ab.journal.events import RunEvaluated
from esper_ab.launchers.inline import InlineLauncher

LINKS = ("checkpoints", "checkpoints/shaped/0", "policies", "policies/shaped/0.pt", "logs", "logs/shaped-0.log", "runs",
         "tracking", "tracking/wandb.lock", "tensorboard", "tensorboard/shaped/0", "events.jsonl")  # fmt: skip


def stopped():
    events = planted_effect()
    return events[: next(i for i, event in enumerate(events) if isinstance(event, RunEvaluated))]


def resume(experiment_dir):
    going_on.resume(experiment_dir, InlineLauncher(), watched=False, allow_changed_code=True)


def extend(experiment_dir):
    going_on.resume(experiment_dir, InlineLauncher(), seeds=9, watched=False, allow_changed_code=True)


@pytest.mark.parametrize(("go_on", "events"), [(resume, stopped), (extend, one_replicate)], ids=["resume", "extend"])
@pytest.mark.parametrize("link", LINKS)
def test_nothing_is_written_behind_a_link(tmp_path, link, go_on, events):
    experiment_dir = write(tmp_path / "run", events())
    precious = tmp_path / "precious"
    if link == "events.jsonl":
        (experiment_dir / link).rename(precious)
    else:
        precious.mkdir()
    (experiment_dir / link).parent.mkdir(parents=True, exist_ok=True)
    (experiment_dir / link).symlink_to(precious)
    before = precious.read_bytes() if precious.is_file() else b""
    with pytest.raises(UsageError, match=r"is a symbolic link.*nothing is written behind") as raised:
        go_on(experiment_dir)
    assert str(experiment_dir / link) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert (precious.read_bytes() if precious.is_file() else b"".join(map(bytes, precious.iterdir()))) == before
