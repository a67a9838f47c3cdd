"""Writes TensorBoard event files into a folder of its own naming, without a flag for it."""

import random
import sys
import time

from tensorboard.summary import Writer  # not torch's, which would import torch for each of the runs

seed, lr = int(sys.argv[1]), float(sys.argv[2])
draws = random.Random(seed)
writer = Writer(f"runs/walker__{seed}__{time.time():.0f}")
for step in range(5):
    writer.add_scalar("charts/score", 100 * lr + draws.gauss(0, 1 + lr), step)
writer.close()
