"""The same as a Python trainer."""

import lander.train


def train(run):
    for _ in range(run.point, run.points):
        outcome = lander.train.train(run.seed("training"))
        yield run.Point({"outcome": outcome}, state={"outcome": outcome})


def evaluate(run, state):
    return {"outcome": state["outcome"]}
