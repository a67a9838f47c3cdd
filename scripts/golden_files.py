"""User files for the goldens: a trainer as a module and as a command, a reward, environments."""

TRAINER = '''
"""An outcome that is drawn: `shift` and `sd` are its own, and a share of its runs fails or comes to no number."""

import random

import esper_ab


class Settings(esper_ab.TrainerSettings):
    shift: float = 0.0
    sd: float = 1.0
    fails: float = 0.0
    breaks: float = 0.0


def train(run):
    for point in range(run.point, run.points):
        yield run.Point({"score": float(point)}, state={"point": point})


def evaluate(run, state):
    settings = run.settings
    shared, own = random.Random(run.seed("shared")), random.Random(f"{run.seed('own')} {settings.shift}")
    if own.random() < settings.fails:
        raise ValueError("this run fails")
    if own.random() < settings.breaks:
        return float("nan")
    return 50.0 + settings.shift + shared.gauss(0.0, 3.0) + own.gauss(0.0, settings.sd)
'''

SCRIPT = """
import json, random, sys

seed, shift, out = sys.argv[1:]
own = random.Random(f"{seed} {shift}")
value = 50.0 + float(shift) + random.Random(int(seed)).gauss(0.0, 3.0) + own.gauss(0.0, 1.0)
json.dump({"score": value}, open(out + "/result.json", "w"))
"""

REWARD = '''
"""Pays every gain in validation accuracy, and charges for each live module."""

import numpy as np


def reward(facts, settings):
    gain = np.nan_to_num(facts.acc_delta, nan=0.0)
    return gain - 0.05 * facts.seeds.present.sum(axis=1)
'''
FILES = {"mine.py": TRAINER, "train.py": SCRIPT, "gain.py": REWARD}
