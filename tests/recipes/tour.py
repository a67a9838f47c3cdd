import argparse

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--cooling", type=float)
arguments = parser.parse_args()

random = np.random.default_rng(arguments.seed)
towns, tour, heat = random.random((40, 2)), np.arange(40), 1.0


def length(tour):
    return np.linalg.norm(towns[tour] - towns[np.roll(tour, 1)], axis=1).sum()


for _ in range(10_000):
    first, last = sorted(random.integers(41, size=2))
    turned = np.concatenate([tour[:first], tour[first:last][::-1], tour[last:]])
    if random.random() < np.exp(min(0, length(tour) - length(turned)) / heat):
        tour = turned
    heat = max(heat * arguments.cooling, 1e-6)
print(f"length {length(tour):.3f}")
