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


def visible(options: dict) -> list[int]:
    """The GPUs that this process sees, in the order of CUDA_VISIBLE_DEVICES, up to the first that is not there."""
    present_gpus = [
        gpu for gpu in range(options["count"]) if options["comes_back"] or not (FOLDER / f"lost-{gpu}").exists()
    ]
    if "CUDA_VISIBLE_DEVICES" not in os.environ:
        return present_gpus
    gpus_by_name = {str(gpu): gpu for gpu in present_gpus} | {f"GPU-{uuid(gpu)}": gpu for gpu in present_gpus}
    visible_gpus: list[int] = []
    for name in os.environ["CUDA_VISIBLE_DEVICES"].split(","):
        if name not in gpus_by_name:
            break
        visible_gpus.append(gpus_by_name[name])
    return visible_gpus


def uuid(gpu: int) -> str:
    return f"{gpu:08x}-7e57-4000-8000-{gpu:012x}"


def note(name: str, gpus: list[int]) -> None:
    """Add a line about this process to a file."""
    command = [current_process().name, *sys.orig_argv]
    with (FOLDER / name).open("a") as file:
        file.write(json.dumps({"pid": os.getpid(), "command": command, "gpus": gpus}) + "\n")


class Gpus:
    """What `torch.cuda` says and does in this process; torch has it as `torch.test_gpus`."""

    def __init__(self, options: dict) -> None:
        self.options = options
        self.library = ctypes.CDLL(options["library"], mode=ctypes.RTLD_GLOBAL)
        self.library.gpu_count.restype = ctypes.c_int64
        self.begun = False

    @cached_property
    def visible_gpus(self) -> list[int]:
        """The GPUs that this process sees, from the first time that it asks on, as with CUDA."""
        options = self.options
        gpus = visible(self.options)
        note("asked", gpus)
        for gpu in gpus:
            loss_file = FOLDER / f"lost-{gpu}"
            calls = ctypes.c_int64(-1 if loss_file.exists() else options["lost_after"].get(str(gpu), -1))
            taken_bytes = options["taken_later"] if "CUDA_VISIBLE_DEVICES" in os.environ else options["taken"]
            free_bytes = ctypes.c_int64(options["memory"] - taken_bytes.get(str(gpu), 0))
            self.library.gpu_add(free_bytes, calls, str(loss_file).encode())
        return gpus

    def count(self, gpu: int, counter: str) -> int:
        return self.library.gpu_count(gpu, COUNTS.index(counter))

    def begin(self) -> None:
        """CUDA begins in this process, once."""
        gpus = self.visible_gpus
        if not self.library.gpu_begin():
            raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
        if self.begun:
            return
        self.begun = True
        note("used", gpus)
        for gpu in gpus if self.options["alone"] else ():
            try:  # never closed: held by this process to its end
                fcntl.flock(os.open(FOLDER / f"held-{gpu}", os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable") from None

    def properties(self, device: object = 0) -> SimpleNamespace:
        own_uuid = uuid(self.visible_gpus[self.index(device)])
        major, minor = self.options["capability"]
        return SimpleNamespace(
            uuid=own_uuid, name="Test GPU", total_memory=self.options["memory"], major=major, minor=minor
        )

    @staticmethod
    def index(device: object) -> int:
        return device if isinstance(device, int) else getattr(device, "index", None) or 0

    def lend(self, torch: object) -> None:
        """Take the place of what the CPU build has."""
        cuda = torch.cuda
        library = self.library
        torch.test_gpus = self
        torch.version.cuda = self.options["cuda"]
        torch.version.hip = self.options["hip"]
        cuda._lazy_init = self.begin
        cuda.is_initialized = lambda: self.begun
        cuda.device_count = lambda: len(self.visible_gpus)
        cuda.is_available = lambda: bool(self.visible_gpus)
        cuda.get_device_properties = self.properties
        cuda.get_device_name = lambda _device=0: "Test GPU"
        cuda.is_bf16_supported = lambda *_: self.options["capability"] >= [8, 0]
        cuda.empty_cache = lambda: None
        cuda.set_sync_debug_mode = lambda mode: library.gpu_waiting_is_an_error(mode == "error")
        cuda.synchronize = lambda device=0: library.gpu_synchronize(self.index(device))
        cuda.memory_allocated = lambda device=0: self.count(self.index(device), "bytes")
        cuda.reset_peak_memory_stats = lambda device=0: library.gpu_reset_peak(self.index(device))
        cuda.memory_reserved = cuda.memory_allocated
        cuda.mem_get_info = lambda device=0: (
            self.options["memory"] - cuda.memory_allocated(device),
            self.options["memory"],
        )
        cuda.max_memory_allocated = lambda device=0: self.count(self.index(device), "peak")


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the module `name` once, as it is; a subclass changes it before it is used."""

    name: str

    def find_spec(self, name: str, path: object, target: object = None) -> object:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        self.loader = spec.loader
        self.create_module = spec.loader.create_module
        spec.loader = self
        return spec

    def exec_module(self, module: object) -> None:
        self.loader.exec_module(module)


class Torch(Loader):
    """Loads torch with the GPUs that have to be there before it asks for them."""

    name = "torch"

    def exec_module(self, module: object) -> None:
        gpus = Gpus(json.loads((FOLDER / "gpus.json").read_text()))
        super().exec_module(module)
        gpus.lend(module)


class Signs(Loader):
    """Loads the module that looks for signs of a GPU, and has it find one."""

    name = "workers.devices.signs"

    def exec_module(self, module: object) -> None:
        super().exec_module(module)
        module.gpu_is_there = lambda: True


if "TEST_GPUS" in os.environ:
    sys.meta_path[:0] = [Torch(), Signs()]
