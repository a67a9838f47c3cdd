"""Gradient descent in a long valley, with noisy gradients."""

import random

MOMENTUM = 0.0


def train(seed, rate=0.01):
    draw = random.Random(seed)
    position = [draw.uniform(5.0, 10.0), draw.uniform(5.0, 10.0)]
    speed = [0.0, 0.0]
    for _ in range(100):
        for axis, slope in enumerate((1.0, 20.0)):
            gradient = slope * position[axis] + draw.gauss(0.0, 3.0)
            speed[axis] = MOMENTUM * speed[axis] - rate * gradient
            position[axis] += speed[axis]
    return {"distance": abs(position[0]) + abs(position[1])}
