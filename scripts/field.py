"""PPO of ours beside PPO and RecurrentPPO of others: returns after 100,000 steps, and steps per second of CPU time.

    scripts/field --speed                          measure speeds, of all learners in turn, on this machine
    scripts/field                                  do what is missing of all, then write the table and its data
    scripts/field --tasks Acrobot-v1 --learners ours SB3 --settings matched --runs 3     a part of it
    scripts/field --table                          write them from what there is

Tasks, margins and matched settings were written down before the first run of record (scripts/peers/tasks.py and
learner.py); rng seeds of record are used for nothing else. Each piece is one run and one line of --out, so a stop loses
one run at most. It needs stable-baselines3, sb3-contrib and box2d, which nothing else here does.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from peers import speed
from peers.field_table import DATA, SPEEDS, recorded, write
from peers.learner import RNG_SEEDS
from peers.pieces import ALL, LEARNERS, SETTINGS, TASK_NAMES, append, missing, perform, pieces, read

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Parse the command line and go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "experiments" / "field.jsonl")
    parser.add_argument("--tasks", nargs="+", choices=TASK_NAMES, default=TASK_NAMES)
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=tuple(LEARNERS))
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=SETTINGS)
    parser.add_argument("--runs", type=int, choices=range(1, RNG_SEEDS + 1), default=RNG_SEEDS, metavar="N")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--speed", action="store_true", help="measure speeds instead of returns, of all learners")
    instead.add_argument("--table", action="store_true", help="only write the table")
    arguments = parser.parse_args()
    if not arguments.table:
        if absent := missing():
            print(f"scripts/field needs more: pip install -c constraints.txt {' '.join(absent)}", file=sys.stderr)
            return 2
        import torch

        torch.set_num_threads(1)
    if arguments.speed:
        speed.write(SPEEDS, speed.measure(TASK_NAMES, lambda line: print(line, flush=True)))
    elif not arguments.table:
        for piece in pieces(arguments.tasks, arguments.learners, arguments.settings, arguments.runs):
            if piece not in recorded(DATA) and piece not in read(arguments.out):
                run = perform(piece)
                append(arguments.out, run)
                told = f"sampled {run['sampled']:.1f}, greedy {run['greedy']:.1f}, {run['cpu_s']} s"
                print(f"{piece}: {told}", flush=True)
    found = {**recorded(DATA), **read(arguments.out)}
    print(write({piece: run for piece, run in found.items() if piece in ALL}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
