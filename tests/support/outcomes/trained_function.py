"""A function that trains, in a file that imports next to nothing: each of its processes imports the file anew."""

import random


def train(seed, lr, steps=3, fail_at=-1.0):
    if lr == fail_at:
        raise ValueError("a planted failure")
    draw = random.Random(seed)
    return [{"score": lr * (step + draw.random()), "step": step} for step in range(steps)]
