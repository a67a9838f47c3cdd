"""The disk fills up under a real worker loop, then somebody makes room. Prints what was seen as one JSON object.

    unshare -Urm sh -c 'mount -t tmpfs -o size=8m tmpfs DIR && exec python -m support.full_disk DIR'
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from esper_ab.contracts.messages import Assign, EpisodeFinished, Evaluated, Progress, Ready, Release
from support.coordinator_stub import Conversation
from support.tensor_world import make_session
from workers.process import loop
from workers.storage import durable


def fill(ballast: Path) -> None:
    """Take every byte that is left."""
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue


def listing(experiment_dir: Path) -> list[str]:
    found = (path.relative_to(experiment_dir) for path in experiment_dir.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if path.name != "ballast")


def main(experiment_dir: Path) -> None:
    torch.set_num_threads(1)
    loop._ASK_FOR_ROOM_S = 0.1
    spec = make_session().spec
    seen: dict[str, object] = {}
    ballast = experiment_dir / "ballast"
    with Conversation(experiment_dir) as worker:
        worker.say(Assign(spec=spec))
        worker.hear(Ready)
        worker.say(Release(run_name="a/0", milestone=0))
        first = worker.hear(EpisodeFinished)
        fill(ballast)
        worker.say(Release(run_name="a/0", milestone=1))
        for _ in range(2):  # it says so, and says so again
            worker.hear(Progress, phase="disk full")
        seen["while full"] = listing(experiment_dir)
        kept = first.checkpoint
        seen["previous intact"] = bool(durable.read(experiment_dir / kept.file, kept.sha256, kept.size_bytes))
        ballast.unlink()
        second = worker.hear(EpisodeFinished)
        seen["digests"] = [first.record.digest, second.record.digest]
        fill(ballast)
        worker.say(Release(run_name="a/0", milestone=2))
        worker.hear(Progress, phase="disk full")
        ballast.unlink()
        seen["evaluation"] = worker.hear(Evaluated).record.digest
        worker.say(Release(run_name="a/0", milestone=3))
    seen["afterwards"] = listing(experiment_dir)
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
