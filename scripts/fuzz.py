"""Fuzz the protocol: a million hostile frames through the decoder, ten thousand into running coordinators.

    scripts/fuzz [--frames 1000000] [--on-the-wire 10000] [--rng-seed 0]

Exit status 1 if a frame raised anything but ProtocolError, or if an attacked experiment's records differ from an
undisturbed one's.
"""

import argparse
import random
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from support.plans import fake_plans
from support.workers import hostile_peers

from esper_ab.analysis.result_hash import result_hash
from esper_ab.contracts.codec import ProtocolError, decode_from_worker
from esper_ab.contracts.worker_order import WorkerOrder
from esper_ab.control import experiment_run
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.launchers.inline import InlineLauncher

_BATCH = 1000  # frames made before they are timed
_WARM = 0.1  # share of the frames after which memory is looked at for the first time


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=1_000_000, metavar="N", help="frames for the decoder")
    parser.add_argument("--on-the-wire", type=int, default=10_000, metavar="N", help="frames per running coordinator")
    parser.add_argument("--rng-seed", type=int, default=0, metavar="N")
    options = parser.parse_args()
    decode_many(random.Random(options.rng_seed), options.frames)
    return 0 if attack_many(random.Random(options.rng_seed + 1), options.on_the_wire) else 1


def decode_many(rng: random.Random, count: int) -> None:
    """Decode `count` frames as the coordinator would; any result except a message or ProtocolError ends the script."""
    outcomes: Counter[str] = Counter()
    seconds = 0.0
    longest_s = 0.0
    decoded_count = 0
    peak_before = 0
    while decoded_count < count:
        frames = list(hostile_peers.frames(rng, min(_BATCH, count - decoded_count)))
        for frame in frames:
            begin_s = time.perf_counter()
            outcomes[outcome(frame)] += 1
            duration_s = time.perf_counter() - begin_s
            seconds = seconds + duration_s
            longest_s = max(longest_s, duration_s)
        decoded_count += len(frames)
        if not peak_before and decoded_count >= _WARM * count:
            peak_before = peak_bytes()
    growth_mb = (peak_bytes() - peak_before) / 1e6
    print(
        f"{decoded_count:,} frames decoded, {decoded_count / seconds:,.0f} a second, the longest took "
        f"{1000 * longest_s:.0f} ms"
    )
    print(
        f"  refused {outcomes['refused']:,}, accepted {outcomes['accepted']:,}; peak memory grew by {growth_mb:.1f} MB"
    )


def outcome(frame: bytes) -> str:
    """Return what the hub does with a frame from an admitted worker."""
    try:
        decode_from_worker(frame)
    except ProtocolError:
        return "refused"
    return "accepted"


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def attack_many(rng: random.Random, count: int) -> bool:
    """Attack experiments from a worker and from outside, over ipc and TCP; return whether all results agree."""
    frames = [frame for frame in hostile_peers.frames(rng, count) if outcome(frame) == "refused"]
    calm = carry_out(InlineLauncher("support.workers.fake_worker:main_in_thread"))
    attacks = {
        "a worker over ipc": hostile_peers.rubbish_first(frames, "ipc"),
        "a worker over TCP": hostile_peers.rubbish_first(frames, "tcp"),
        "a stranger over ipc": hostile_peers.HostileFirst(in_background(frames)),
    }
    all_equal = True
    for name, launcher in attacks.items():
        begin_s = time.perf_counter()
        history = carry_out(launcher)
        duration_s = time.perf_counter() - begin_s
        equal = result_hash(history) == result_hash(calm)
        all_equal = all_equal and equal
        entries = [entry for entry in history.incidents if entry.category == "bad_message"]
        print(
            f"{len(frames):,} frames from {name}: {duration_s:.1f} s, records {'the same' if equal else 'OTHERS'}, "
            f"{len(entries)} incidents, the last: {entries[-1].detail}"
        )
    return all_equal


def in_background(frames: list[bytes]) -> Callable[[WorkerOrder], None]:
    """Send frames while the experiment runs."""

    def attack(order: WorkerOrder) -> None:
        threading.Thread(target=hostile_peers.send_all, args=(order.endpoint, b"nobody", frames), daemon=True).start()

    return attack


def carry_out(launcher: InlineLauncher) -> History:
    """Run a small experiment with fake workers."""
    with tempfile.TemporaryDirectory() as folder:
        experiment_run.run(fake_plans.plan(episodes=40), Path(folder), launcher, ())
        return load(Path(folder)).history


if __name__ == "__main__":
    sys.exit(main())
