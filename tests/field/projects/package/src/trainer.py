"""A Python trainer beside the package, which it imports."""

from lander.agent import improve

import esper_ab


class Settings(esper_ab.TrainerSettings):
    lr: float = 0.1


def train(run):
    for point in range(run.point, run.points):
        yield run.Point({"score": improve(run.seed(point), run.settings.lr)}, state={"lr": run.settings.lr})


def evaluate(run, state):
    return improve(run.seed("test"), state["lr"])
