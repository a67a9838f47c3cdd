"""Writes TensorBoard event files into a folder of its own naming, without a flag for it."""

import random
import sys
import time

from torch.utils.tensorboard import SummaryWriter

seed, lr = int(sys.argv[1]), float(sys.argv[2])
draws = random.Random(seed)
with SummaryWriter(f"runs/walker__{seed}__{time.time():.0f}") as writer:
    for step in range(5):
        writer.add_scalar("charts/score", 100 * lr + draws.gauss(0, 1 + lr), step)
