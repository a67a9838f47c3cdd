"""In a process with TEST_GPUS=FOLDER torch's CPU build has the GPUs that FOLDER/gpus.json says (build.py).

Python imports this at its start, so every child has them, too. FOLDER then holds `used`, a line for each process that
began with CUDA; `asked`, one for each that looked for GPUs; `lost-N` after GPU N has failed; `held-N`, locked by a
process that has it alone.
"""

import ctypes
import fcntl
import importlib.abc
import importlib.util
import json
import os
import sys
from functools import cached_property
from multiprocessing import current_process
from pathlib import Path
from types import SimpleNamespace

FOLDER = Path(os.environ.get("TEST_GPUS", ""))
COUNTS = ("calls", "uploads", "downloads", "waits", "bytes", "peak")  # as in device.cpp


def visible(made: dict) -> list[int]:
    """The GPUs that this process sees, in the order of CUDA_VISIBLE_DEVICES, up to the first that is not there."""
    there = [gpu for gpu in range(made["count"]) if made["comes_back"] or not (FOLDER / f"lost-{gpu}").exists()]
    if "CUDA_VISIBLE_DEVICES" not in os.environ:
        return there
    named = {str(gpu): gpu for gpu in there} | {f"GPU-{uuid(gpu)}": gpu for gpu in there}
    found: list[int] = []
    for name in os.environ["CUDA_VISIBLE_DEVICES"].split(","):
        if name not in named:
            break
        found.append(named[name])
    return found


def uuid(gpu: int) -> str:
    return f"{gpu:08x}-7e57-4000-8000-{gpu:012x}"


def note(name: str, seen: list[int]) -> None:
    """Add a line about this process to a file."""
    command = [current_process().name, *sys.orig_argv]
    with (FOLDER / name).open("a") as file:
        file.write(json.dumps({"pid": os.getpid(), "command": command, "gpus": seen}) + "\n")


class Gpus:
    """What `torch.cuda` says and does in this process; torch has it as `torch.test_gpus`."""

    def __init__(self, made: dict) -> None:
        self.made = made
        self.library = ctypes.CDLL(made["library"], mode=ctypes.RTLD_GLOBAL)
        self.library.gpu_count.restype = ctypes.c_int64
        self.begun = False

    @cached_property
    def seen(self) -> list[int]:
        """The GPUs that this process sees, from the first time that it asks on, as with CUDA."""
        made = self.made
        seen = visible(self.made)
        note("asked", seen)
        for gpu in seen:
            lost = FOLDER / f"lost-{gpu}"
            calls = ctypes.c_int64(-1 if lost.exists() else made["lost_after"].get(str(gpu), -1))
            taken = made["taken_later"] if "CUDA_VISIBLE_DEVICES" in os.environ else made["taken"]
            free = ctypes.c_int64(made["memory"] - taken.get(str(gpu), 0))
            self.library.gpu_add(free, calls, str(lost).encode())
        return seen

    def count(self, gpu: int, what: str) -> int:
        return self.library.gpu_count(gpu, COUNTS.index(what))

    def begin(self) -> None:
        """CUDA begins in this process, once."""
        seen = self.seen
        if not self.library.gpu_begin():
            raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
        if self.begun:
            return
        self.begun = True
        note("used", seen)
        for gpu in seen if self.made["alone"] else ():
            try:  # never closed: held by this process to its end
                fcntl.flock(os.open(FOLDER / f"held-{gpu}", os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable") from None

    def properties(self, device: object = 0) -> SimpleNamespace:
        own = uuid(self.seen[self.index(device)])
        major, minor = self.made["capability"]
        return SimpleNamespace(uuid=own, name="Test GPU", total_memory=self.made["memory"], major=major, minor=minor)

    @staticmethod
    def index(device: object) -> int:
        return device if isinstance(device, int) else getattr(device, "index", None) or 0

    def lend(self, torch: object) -> None:
        """Take the place of what the CPU build has."""
        cuda = torch.cuda
        library = self.library
        torch.test_gpus = self
        torch.version.cuda = self.made["cuda"]
        torch.version.hip = self.made["hip"]
        cuda._lazy_init = self.begin
        cuda.is_initialized = lambda: self.begun
        cuda.device_count = lambda: len(self.seen)
        cuda.is_available = lambda: bool(self.seen)
        cuda.get_device_properties = self.properties
        cuda.get_device_name = lambda _device=0: "Test GPU"
        cuda.is_bf16_supported = lambda *_: self.made["capability"] >= [8, 0]
        cuda.empty_cache = lambda: None
        cuda.set_sync_debug_mode = lambda mode: library.gpu_waiting_is_an_error(mode == "error")
        cuda.synchronize = lambda device=0: library.gpu_synchronize(self.index(device))
        cuda.memory_allocated = lambda device=0: self.count(self.index(device), "bytes")
        cuda.reset_peak_memory_stats = lambda device=0: library.gpu_reset_peak(self.index(device))
        cuda.memory_reserved = cuda.memory_allocated
        cuda.mem_get_info = lambda device=0: (self.made["memory"] - cuda.memory_allocated(device), self.made["memory"])
        cuda.max_memory_allocated = lambda device=0: self.count(self.index(device), "peak")


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads torch once, with the GPUs that have to be there before it asks for them."""

    def find_spec(self, name: str, path: object, target: object = None) -> object:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        self.loader = spec.loader
        self.create_module = spec.loader.create_module
        spec.loader = self
        return spec

    def exec_module(self, module: object) -> None:
        gpus = Gpus(json.loads((FOLDER / "gpus.json").read_text()))
        self.loader.exec_module(module)
        gpus.lend(module)


if "TEST_GPUS" in os.environ:
    sys.meta_path.insert(0, Loader())
