"""Fails for one seed in ten, always for the same ones, as does a simulator that leaves its range."""

import json
import random
import sys
from pathlib import Path


def train(seed, lr):
    if seed % 10 == 8:
        raise FloatingPointError(f"the state of the simulator is not finite (seed {seed})")
    draws = random.Random(seed)
    return sum(lr * (1 + draws.random()) for _ in range(20))


if __name__ == "__main__":
    _, seed, lr, out = sys.argv
    (Path(out) / "result.json").write_text(json.dumps({"score": train(int(seed), float(lr))}))
