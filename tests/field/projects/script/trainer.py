"""The same project as a Python trainer; one import waits until it is needed."""

import esper_ab


class Settings(esper_ab.TrainerSettings):
    lr: float = 0.1


def train(run):
    from learner import learn

    for point in range(run.point, run.points):
        yield run.Point({"score": learn(run.seed("steps", point), run.settings.lr)}, state={"lr": run.settings.lr})


def evaluate(run, state):
    from learner import learn

    return learn(run.seed("test"), state["lr"])
