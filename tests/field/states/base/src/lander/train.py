"""The outcome is the gain of an imported module, the bonus of a file in the folder, and noise."""

import argparse
import json
import random
from pathlib import Path

from lander.physics import GAIN


def train(seed):
    from lander import physics

    assert physics.GAIN == GAIN
    bonus = json.loads(Path("config.json").read_text())["bonus"]
    return GAIN + bonus + 0.01 * random.Random(f"{seed} {GAIN}").random()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    (arguments.out / "result.json").write_text(json.dumps({"outcome": train(arguments.seed)}))
