"""Takes its seed and its learning rate from the environment, as scripts of shell users do."""

import json
import os
import pathlib
import random

seed = int(os.environ.get("SEED", "0"))
lr = float(os.environ.get("LR", "0.1"))
draws = random.Random(seed)
score = sum(lr * (1 + draws.random()) for _ in range(20))
with pathlib.Path("result.json").open("w") as file:
    json.dump({"score": score}, file)
