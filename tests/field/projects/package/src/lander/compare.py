"""Run by `python -m lander.compare`: a function that imports from its own package by relative imports."""

from .agent import improve


def train(seed, *, lr: float):
    from . import agent

    return improve(seed, lr) / agent.STEPS


if __name__ == "__main__":
    from esper_ab import compare_training

    print(compare_training(train, {"slow": {"lr": 0.1}, "fast": {"lr": 0.9}}, margin=0.5, devices=["cpu:0"]))
