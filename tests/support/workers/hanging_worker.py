"""A worker that writes its pid to RUN_DIR/pid at its entry point, and hangs."""

import os
import time
from pathlib import Path

from esper_ab.contracts.worker_order import WorkerOrder


def main(order: WorkerOrder) -> None:
    with (Path(order.experiment_dir) / "pid").open("w") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(1e6)
