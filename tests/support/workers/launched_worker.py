"""Workers without torch, for tests of launchers: the name in a worker's order decides its behaviour.

"ends" writes its order to RUN_DIR/order.json; "fails" raises; "waits" reports through the FIFO RUN_DIR/begun and lives
until RUN_DIR/gate is opened for writing; "forks" leaves a child that waits like "waits", and ends with status 7.
"""

import os
from pathlib import Path

import msgspec

from esper_ab.contracts.worker_order import WorkerOrder
from workers.process import setup


def main(order: WorkerOrder) -> None:
    """Entry point of a worker process, set up like the real one."""
    setup.redirect_output(Path(order.experiment_dir), order.log_file)
    setup.ignore_signals()
    main_in_thread(order)


def main_in_thread(order: WorkerOrder) -> None:
    folder = Path(order.experiment_dir)
    if order.worker == "fails":
        raise RuntimeError("as it was told to")
    if order.worker == "ends":
        (folder / "order.json").write_bytes(msgspec.json.encode(order))
    elif order.worker == "forks":
        if os.fork():
            os._exit(7)
        (folder / "gate").open().close()
        os._exit(0)
    else:
        with (folder / "begun").open("w") as begun_file:
            begun_file.write("!")
        (folder / "gate").open().close()
