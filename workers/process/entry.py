"""Entry point of a worker: pins devices and threads, imports torch, makes it deterministic, then runs the loop.

A worker that only guards a command imports torch only to check the GPUs of its lane.
"""

from __future__ import annotations

import os
import platform
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from esper_ab.contracts import link_keys, users_shell
from esper_ab.contracts.catalog import folders
from esper_ab.contracts.errors import USER_FAULTS, OutOfMemory, UserCodeFailed
from esper_ab.contracts.failure_cause import UNKNOWN, cause_of_exception
from esper_ab.contracts.installed_code import sources_imported
from esper_ab.contracts.kinds_of_task import TRAINER
from esper_ab.contracts.messages import PROTOCOL, Failed, Hello
from esper_ab.contracts.settings import Arithmetic
from esper_ab.contracts.worker_order import Lane, WorkerOrder
from workers.process import setup as process
from workers.process.link import Link

if TYPE_CHECKING:
    from collections.abc import Callable


# What the start process imports: for workers that only guard a command, and for all others and the preflight.
BEFORE_FORK_OF_GUARDS = ("workers.process.loop", f"workers.kinds.{TRAINER}.kind", "psutil")
BEFORE_FORK = (
    "torch.multiprocessing",
    "workers.process.loop",
    "workers.devices.by_torch",
    "workers.native.library",
    "psutil",
    *(f"workers.kinds.{kind}.kind" for kind in folders("workers.kinds")),
)
_DRIVER = Path("/proc/driver/nvidia/version")
_DRIVER_CHARS = 200
_SUMMARY_CHARS = 500
_TRACEBACK_CHARS = 20_000


class WrongDevice(RuntimeError):
    """The devices that torch sees are not those in the plan."""


def main(order: WorkerOrder) -> None:
    """Run a worker in its own process."""
    process.redirect_output(Path(order.experiment_dir), order.log_file)
    process.ignore_signals()
    users_shell.enter(order.shell)
    process.set_environment(order.lane, order.arithmetic)
    process.set_threads_of_loaded_libraries(order.arithmetic.threads)
    process.keep_freed_memory()
    process.forked_children_end_with_it()
    if _serve(order, _pin_torch, process.redirect_output):
        process.end()


def main_in_thread(order: WorkerOrder) -> None:
    """Run a worker in a thread, and change no setting of the process except the number of threads."""
    users_shell.remember(order.shell)
    _serve(order, _set_threads, lambda experiment_dir, log_file: None)


def _serve(
    order: WorkerOrder, prepare: Callable[[Lane, Arithmetic], tuple[str, ...]], log_to: Callable[[Path, str], None]
) -> bool:
    """Say Hello and serve runs until Stop; return True if only this package's code was executed.

    An error is reported to the coordinator, then raised so that the log shows the error.
    """
    link = Link(
        order.endpoint,
        order.identity,
        keys=link_keys.take(order.identity),
        lost_after_s=order.lost_after_s,
        beat_s=order.beat_s,
    )
    try:
        uses_torch = order.needs_torch or any(order.lane.uuids)  # torch checks the GPUs of a lane
        if uses_torch:
            titles = prepare(order.lane, order.arithmetic)
        else:
            titles = ("",) * len(order.lane.devices)
        from workers.process.loop import serve

        torch_version = _torch_version() if order.needs_torch else ""
        link.send(
            Hello(
                worker=order.worker,
                incarnation=order.incarnation,
                protocol=PROTOCOL,
                pid=os.getpid(),
                uuids=order.lane.uuids,
                torch_version=torch_version,
                sources=sources_imported(),
                host=platform.node(),
                titles=titles,
                driver=_driver() if any(titles) else "",
            )
        )
        return serve(link, order, log_to)
    except USER_FAULTS as error:
        link.send(failure(error))
        if isinstance(error, UserCodeFailed) and error.in_log:
            raise SystemExit(1) from None
        if isinstance(error, SystemExit):  # Python would exit without writing to the log
            raise RuntimeError("a user's code called sys.exit()") from error
        raise
    finally:
        link.close(is_finished=True)


def failure(error: BaseException) -> Failed:
    """Return the report of an error: one line and, unless only the user is at fault, the end of the traceback."""
    cause = cause_of_exception(error)
    if isinstance(error, UserCodeFailed):
        summary = str(error).splitlines()[0][:_SUMMARY_CHARS]
        if error.in_log:
            cause = error.cause or UNKNOWN
        return Failed(summary=summary, traceback="", again=error.again, stops=error.stops, cause=cause)
    summary = f"{type(error).__name__}: {error}".splitlines()[0][:_SUMMARY_CHARS]
    lines = "".join(traceback.format_exception(error))
    if isinstance(error, OutOfMemory):
        return Failed(summary=summary, traceback=lines[-_TRACEBACK_CHARS:], again=False)
    return Failed(summary=summary, traceback=lines[-_TRACEBACK_CHARS:], cause=cause)


def _set_threads(lane: Lane, arithmetic: Arithmetic) -> tuple[str, ...]:
    import torch

    if any(lane.uuids):  # only the environment of a new process can pin CUDA
        raise WrongDevice(f"lane {lane.name} has GPUs, and a thread has none of its own")
    torch.set_num_threads(arithmetic.threads)
    return ("",) * len(lane.devices)


def _pin_torch(lane: Lane, arithmetic: Arithmetic) -> tuple[str, ...]:
    """Pin torch's arithmetic and check the UUIDs of the lane's GPUs; return each device's title ("" for a core)."""
    from workers.devices.by_torch import pin, seen_gpus

    pin(arithmetic)
    if not any(lane.uuids):
        return ("",) * len(lane.uuids)
    seen_devices = seen_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))
    check_gpus(lane, [name for name, _ in seen_devices])
    titles = iter([str(device.name) for _, device in seen_devices])
    return tuple(next(titles) if uuid else "" for uuid in lane.uuids)


def _torch_version() -> str:
    import torch

    return str(torch.__version__)


def _driver() -> str:
    """Return the version that the GPU driver's kernel module reports; "" if there is no such module."""
    try:
        return _DRIVER.read_text(encoding="utf-8").splitlines()[0][:_DRIVER_CHARS]
    except (OSError, IndexError):
        return ""


def check_gpus(lane: Lane, seen_uuids: list[str]) -> None:
    """Raise WrongDevice unless torch sees exactly the lane's GPUs; the lane's CPU devices do not count."""
    planned_uuids = [uuid for uuid in lane.uuids if uuid]
    if seen_uuids != planned_uuids:
        raise WrongDevice(
            f"lane {lane.name} is {', '.join(planned_uuids)}, but torch sees {', '.join(seen_uuids) or 'no GPU'}"
        )
