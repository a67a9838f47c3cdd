"""A program that saves what it has done, is killed once in a while, and can be told where to continue."""

import argparse
import json
import os
import pathlib
import random
import signal

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--lr", type=float)
parser.add_argument("--run-name")
parser.add_argument("--device")
parser.add_argument("--result", type=pathlib.Path)
parser.add_argument("--resume", type=pathlib.Path)
arguments = parser.parse_args()

checkpoint = arguments.result.parent / f"{arguments.run_name}.json"
done = json.loads(arguments.resume.read_text()) if arguments.resume else []
random.seed(arguments.seed)
draws = [random.random() for _ in range(4)]
for step in range(len(done), 4):
    done.append(arguments.lr * (10 + draws[step]))
    checkpoint.write_text(json.dumps(done))
    if step == 1 and not arguments.resume and arguments.run_name.endswith("-3"):
        os.kill(os.getpid(), signal.SIGKILL)
arguments.result.write_text(json.dumps({"scores": done, "device": arguments.device}))
