"""Run by `python -m lander.train`: imports from its own package, and a last row of a CSV file as its result."""

import csv
import sys
from pathlib import Path

from lander import agent
from lander.agent import improve

if __name__ == "__main__":
    _, seed, lr, out = sys.argv
    with (Path(out) / "progress.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["step", "score"])
        rows.writerow([agent.STEPS, improve(int(seed), float(lr))])
