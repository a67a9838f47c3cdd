"""A comparison as a test, of a function of this file and of one that is inside the test."""

import random

from esper_ab import compare_training

SCALE = 10
GROUPS = {"slow": {"lr": 0.1}, "fast": {"lr": 0.9}}


def train(seed, lr):
    return SCALE * lr * (1 + random.Random(seed).random())


def test_a_higher_rate_is_better():
    answer = compare_training(train, GROUPS, margin=1, name="module", devices=["cpu:0"])
    assert answer.verdicts["fast", "slow"] == "BETTER"


def test_a_higher_rate_is_better_by_a_function_of_the_test():
    def train_here(seed, lr):
        return train(seed, lr)

    answer = compare_training(train_here, GROUPS, margin=1, name="test", devices=["cpu:0"])
    assert answer.verdicts["fast", "slow"] == "BETTER"
