"""A Python trainer in such a folder."""

from maße import fläche

import esper_ab


class Settings(esper_ab.TrainerSettings):
    kante: float = 1.0


def train(run):
    for point in range(run.point, run.points):
        yield run.Point({"score": fläche(run.seed(point), run.settings.kante)}, state={"kante": run.settings.kante})


def evaluate(run, state):
    return fläche(run.seed("test"), state["kante"])
