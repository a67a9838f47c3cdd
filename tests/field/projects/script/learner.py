"""The model of a small project, in a module beside its script."""

import random


def learn(seed, lr, steps=20):
    """Return the score of a noisy hill climb."""
    draw = random.Random(seed)
    return sum(lr * (1 + draw.random()) for _ in range(steps))
