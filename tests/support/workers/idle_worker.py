"""A worker without torch that writes whose child it is to RUN_DIR/WORKER.json; "waits" runs until it is killed."""

import json
import os
import sys
import time
from pathlib import Path

from esper_ab.contracts.worker_order import WorkerOrder


def main(order: WorkerOrder) -> None:
    folder = Path(order.experiment_dir)
    facts = {"pid": os.getpid(), "start_process": os.getppid()}
    (folder / f"{order.worker}.json").write_text(json.dumps(facts))
    if order.worker == "waits":
        (folder / "begun").write_text("")
        time.sleep(1e6)
    sys.exit(3)
