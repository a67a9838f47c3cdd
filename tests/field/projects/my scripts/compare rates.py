"""A script without a main block: its function, a module beside it, and the comparison at its end."""

from noise import draws

import esper_ab

print("comparing learning rates")


def train(seed, lr, steps=3):
    score = 0.0
    curve = []
    for draw in draws(seed, steps):
        score += lr * (1 + draw)
        curve.append({"score": score, "loss": -score})
    return curve


answer = esper_ab.compare_training(
    train, {"slow": {"lr": 0.1}, "fast": {"lr": 0.9}}, margin=0.5, higher="score", devices=["cpu:0"]
)
print(answer)
