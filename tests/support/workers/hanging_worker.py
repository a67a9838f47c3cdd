"""A worker that has come as far as its entry point and no further: it names itself in RUN_DIR/pid, and hangs."""

import os
import time
from pathlib import Path

from esper_ab.contracts.worker_order import WorkerOrder


def main(order: WorkerOrder) -> None:
    with (Path(order.experiment_dir) / "pid").open("w") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(1e6)
