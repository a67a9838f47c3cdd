"""Noise, in a module beside the script."""

import random


def draws(seed, number):
    draw = random.Random(seed)
    return [draw.random() for _ in range(number)]
