"""A script as people have it: arguments, a module beside it, a result in a folder."""

import argparse
import json
import pathlib

from learner import learn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--out", required=True)
arguments = parser.parse_args()
score = learn(arguments.seed, arguments.lr)
(pathlib.Path(arguments.out) / "result.json").write_text(json.dumps({"score": score}))
