"""Trains with child processes: a pool of workers, and a process that it forks and never waits for."""

import json
import multiprocessing
import os
import random
import sys
import time
from pathlib import Path


def episode(seed):
    return random.Random(seed).random()


def log_for_ever(folder):
    while True:
        (folder / "alive.txt").write_text(str(time.time()))
        time.sleep(0.2)


def train(seed, lr):
    with multiprocessing.Pool(2) as pool:
        returns = pool.map(episode, [seed + step for step in range(8)])
    return sum(lr * (1 + value) for value in returns)


if __name__ == "__main__":
    out = Path(sys.argv[3])
    if not os.fork():
        log_for_ever(out)
    (out / "result.json").write_text(json.dumps({"score": train(int(sys.argv[1]), float(sys.argv[2]))}))
