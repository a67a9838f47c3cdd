"""One message of every type. tests/golden/messages.json stores their bytes in the current protocol.

    PYTHONPATH=tests .venv/bin/python -m support.goldens.messages

stores the bytes again; run it after you have raised PROTOCOL.
"""

import json
from pathlib import Path

import msgspec

from esper_ab.contracts.codec import encode
from esper_ab.contracts.failure_cause import cause_of_text
from esper_ab.contracts.messages import (
    PROTOCOL,
    Assign,
    Cancel,
    Failed,
    Hello,
    Ping,
    Pong,
    Progress,
    Release,
    Stop,
)
from esper_ab.contracts.records import Checkpoint, HeadUse, PPOUpdate, SeedEvent
from support.plans import fake_plans
from support.workers.fake_worker import report_of

FILE = Path(__file__).parents[2] / "golden" / "messages.json"

SPEC = msgspec.structs.replace(fake_plans.plan().blocks[0].runs[0], experiment_digest="0" * 64)
PPO = PPOUpdate(
    policy_loss=-0.5,
    value_loss=0.25,
    entropy=2.5,
    op_entropy=1.5,
    approx_kl=0.0,
    clip_fraction=0.125,
    explained_variance=None,
    grad_norm=1.0,
    first_ratio_error=0.0,
    ratio_max=1.0,
    epochs_done=4,
    stopped_by_kl=False,
    advantage_std=1.0,
    return_mean=3.0,
    heads={"op": HeadUse(entropy=0.5, learnable=1.0), "slot": HeadUse(entropy=None, learnable=0.0)},
)
SEED_EVENT = SeedEvent(
    env=0,
    step=3,
    slot="early",
    event="fossilized",
    seed_id="0-early-1",
    blueprint="norm",
    stage="FOSSILIZED",
    alpha=1.0,
    contribution=2.5,
    params=16,
)
CHECKPOINT = Checkpoint(milestone=1, file="checkpoints/a/0/1.pt", sha256="0" * 64, size_bytes=4096)
EPISODE = msgspec.structs.replace(report_of(SPEC, 1), checkpoint=CHECKPOINT)
EXAMPLES = (
    Hello(
        worker="w00",
        incarnation=1,
        protocol=PROTOCOL,
        pid=42,
        uuids=("GPU-1", ""),
        torch_version="2.13.0",
        sources="5a5a",
        host="node7",
        titles=("NVIDIA H200", ""),
        driver="NVRM version: 1",
    ),
    report_of(SPEC, 0),
    Progress(run=SPEC.ref, milestone=1, step=7, phase="train"),
    msgspec.structs.replace(
        EPISODE, record=msgspec.structs.replace(EPISODE.record, ppo=PPO, seed_events=(SEED_EVENT,))
    ),
    report_of(SPEC, 3),
    Failed(summary="ValueError: no", traceback="Traceback …", cause=cause_of_text("ValueError: 3 features, not 7")),
    Assign(spec=SPEC, milestone=2, checkpoints=(CHECKPOINT,)),
    Release(run_name="a/0", milestone=1),
    Cancel(run_name="a/0", reason="its seed cannot be completed"),
    Ping(),
    Pong(),
    Stop(reason="the experiment is finished"),
)


def write() -> None:
    """Store the bytes of all examples."""
    by_name = {type(message).__name__: encode(message).hex() for message in EXAMPLES}
    FILE.write_text(json.dumps({"protocol": PROTOCOL, "messages": by_name}, indent=2) + "\n")


if __name__ == "__main__":
    write()
