"""A worker's entry module that initialises CUDA when it is imported, as packages in a user's Python may do.

The worker adds two numbers on its GPU, and writes the sum into RUN_DIR/WORKER.
"""

import os
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = "0"

import torch

from esper_ab.contracts.worker_order import WorkerOrder

BEFORE_FORK = ("torch.multiprocessing",)
torch.ones(1, device="cuda")


def main(order: WorkerOrder) -> None:
    total = torch.ones(1, device="cuda") + torch.ones(1, device="cuda")
    (Path(order.experiment_dir) / order.worker).write_text(str(total.item()))
