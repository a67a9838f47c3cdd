"""A worker that writes facts about its process to RUN_DIR/WORKER.json; "waits" runs until it is killed."""

import atexit
import ctypes
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path

from esper_ab.contracts.worker_order import WorkerOrder
from workers.devices import by_torch, pinned
from workers.process import setup

BEFORE_FORK = ("torch.multiprocessing",)


def main(order: WorkerOrder) -> None:
    import numpy as np
    import torch

    folder = Path(order.experiment_dir)
    os.environ.update(pinned.variables(order.lane.uuids, order.arithmetic))
    setup.set_threads_of_loaded_libraries(order.arithmetic.threads)
    by_torch.pin(order.arithmetic)
    facts = {
        "pid": os.getpid(),
        "start_process": os.getppid(),
        "parent": multiprocessing.parent_process().pid,
        "name": multiprocessing.current_process().name,
        "main": vars(sys.modules["__main__"]).get("__file__"),
        "descriptors": sorted(filter(None, map(leads_to, os.listdir("/proc/self/fd")))),  # noqa: PTH208
        "folder": str(Path.cwd()),
        "asked_for": os.environ.get("STARTED_FOR"),
        "random": np.random.random(),
        "threads": torch.get_num_threads(),
        "openblas": [
            getattr(ctypes.CDLL(path), name.replace("set", "get"))()
            for path in setup._loaded("openblas")
            for name in setup._SET_OPENBLAS_THREADS
            if hasattr(ctypes.CDLL(path), name)
        ],
        "cuda": torch.cuda.is_initialized(),
        "safe_path": os.environ.get("PYTHONSAFEPATH"),
    }
    (folder / f"{order.worker}.json").write_text(json.dumps(facts))
    if order.worker == "waits":
        (folder / "begun").write_text("")
        time.sleep(1e6)
    main.left_open = (folder / f"{order.worker}.txt").open("w")  # as users' code may leave a file
    main.left_open.write("flushed")
    atexit.register((folder / f"{order.worker}.exit").write_text, "called")
    sys.exit(3)


def leads_to(descriptor: str) -> str:
    """Return the target of a descriptor above the standard streams; "" if it is closed."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").partition(":")[0] if int(descriptor) > 2 else ""  # noqa: PTH115
    except OSError:
        return ""
