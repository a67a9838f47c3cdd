"""The kernel's structs and functions that train networks, as declared in src/api.h, and its workspaces."""

from __future__ import annotations

import ctypes
import queue
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile

from workers.arrays import Floats, Ints

Pointer = ctypes.c_void_p
Int = ctypes.c_int32
Float = ctypes.c_float
Long = ctypes.c_int64

CONV, DEPTHWISE, NORM, RELU, TOWARDS, EXCITE = range(6)  # EsperLayerKind
ADD, MULTIPLY, GATE = range(3)  # EsperJoin
_NO_MEMORY = 1
_STATUS = {  # EsperStatus
    _NO_MEMORY: "no memory",
    2: "an error inside it",
    3: "a size is not positive, or a row, an image or its activations have more than 2^28 numbers",
    4: "a convolution's kernel is even, wider than 15, or wider than the border has room for",
    5: "the image is too small for the pools",
    6: "a row of parameters is not as long as its layers need",
    7: "a layer or a join of a kind that there is not, or groups that do not divide its channels",
    8: "a layer has other channels than what comes before it, or the last one than the slot",
    9: "a batch or a split without samples, or with too many",
    10: "images of another size than the host's",
    11: "the order names a sample that there is not",
    12: "a label names a class that there is not",
    13: "a configuration continues a row that there is not",
}


class HostStruct(ctypes.Structure):
    """The struct EsperHost."""

    _fields_ = [
        (name, Int) for name in ("in_channels", "height", "width", "base", "levels", "kernel", "pools", "classes")
    ]


class LayerStruct(ctypes.Structure):
    """The struct EsperLayer."""

    _fields_ = [("kind", Int), ("inputs", Int), ("outputs", Int), ("size", Int), ("at", Int * 3)]


class SeedStruct(ctypes.Structure):
    """The struct EsperSeed."""

    _fields_ = [
        ("values", Pointer),
        ("momentum", Pointer),
        ("layers", ctypes.POINTER(LayerStruct)),
        ("n_layers", Int),
        ("width", Int),
        ("gate", Int),
        ("gate_hidden", Int),
        ("join", Int),
        ("incubating", Int),
        ("fossil", Int),
        ("trained", Int),
        ("alpha", Float),
    ]


class SplitStruct(ctypes.Structure):
    """The struct EsperSplit."""

    _fields_ = [("images", Pointer), ("labels", Pointer), ("samples", Long), ("each", Long)]


class RuleStruct(ctypes.Structure):
    """The struct EsperRule."""

    _fields_ = [
        ("batch_size", Int),
        ("host_lr", Float),
        ("seed_lr", Float),
        ("momentum", Float),
        ("weight_decay", Float),
        ("max_grad_norm", Float),
    ]


class NetworkStruct(ctypes.Structure):
    """The struct EsperNetwork."""

    _fields_ = [
        ("values", Pointer),
        ("momentum", Pointer),
        ("mean", ctypes.POINTER(Pointer)),
        ("var", ctypes.POINTER(Pointer)),
        ("seeds", ctypes.POINTER(SeedStruct)),
        ("width", Int),
    ]


class TreeStruct(ctypes.Structure):
    """The struct EsperTree."""

    _fields_ = [
        ("rows", ctypes.POINTER(Int)),
        ("parents", ctypes.POINTER(Pointer)),
        ("on", ctypes.POINTER(Pointer)),
        ("real", Int),
    ]


class FieldStruct(ctypes.Structure):
    """The struct EsperField."""

    _fields_ = [("name", ctypes.c_char_p), ("at", Int)]


STRUCTS = (HostStruct, LayerStruct, SeedStruct, SplitStruct, RuleStruct, NetworkStruct, TreeStruct)


def layout(structs: Iterable[type[ctypes.Structure]], lanes: int) -> dict[str, int]:
    """Return LANES, the size of each struct, and the offset of each field in bytes, by their names in src/api.h."""
    constants = {"LANES": lanes}
    for struct in structs:
        name = "Esper" + struct.__name__.removesuffix("Struct")
        constants[name] = ctypes.sizeof(struct)
        constants |= {f"{name}.{field}": getattr(struct, field).offset for field, *_ in struct._fields_}
    return constants


def declare(library: ctypes.CDLL, expected_layout: dict[str, int]) -> None:
    """Declare the types of the library's functions; ValueError if its layout differs from `expected_layout`."""
    library.esper_layout.restype = ctypes.POINTER(FieldStruct)
    fields = library.esper_layout()
    library_layout = {field.name.decode(): field.at for field in takewhile(lambda field: field.name, fields)}
    if differing_names := {name for name, _ in library_layout.items() ^ expected_layout.items()}:
        raise ValueError(
            f"these structs differ between the kernel and its caller: {', '.join(sorted(differing_names))}"
        )
    network, split, tree, rule = map(ctypes.POINTER, (NetworkStruct, SplitStruct, TreeStruct, RuleStruct))
    library.esper_open.argtypes = [ctypes.POINTER(HostStruct), Int, ctypes.POINTER(Pointer)]
    library.esper_close.restype = None
    library.esper_close.argtypes = [Pointer]
    library.esper_train.argtypes = [Pointer, rule, network, split, Pointer, Pointer]
    library.esper_measure.argtypes = [Pointer, network, split, tree, Pointer, Pointer]


def pointers(addresses: Iterable[int]) -> ctypes.Array[ctypes.c_void_p]:
    """Return an array of pointers for the kernel; the memory that they point to must outlive the kernel's call."""
    address_list = list(addresses)
    return (Pointer * len(address_list))(*address_list)


def checked(status: int) -> None:
    """Raise MemoryError or ValueError if a call of the kernel failed."""
    if status:
        message = f"the kernel refuses: {_STATUS[status]}"
        raise MemoryError(message) if status == _NO_MEMORY else ValueError(message)


class Workspaces:
    """Memory for networks of one shape, one workspace per computing thread.

    The memory holds no state between calls.
    """

    def __init__(self, library: ctypes.CDLL, host: HostStruct, border: int) -> None:
        self._library = library
        self._host = host
        self._border = border
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()

    def train(self, rule: RuleStruct, network: NetworkStruct, split: SplitStruct, order: Ints, results: Floats) -> None:
        """Train one epoch in `order` [samples]; write sum of losses and number of correct samples to `results` [2].

        Raises MemoryError or ValueError if the kernel reports an error.
        """
        with self._one() as workspace:
            refs = map(ctypes.byref, (rule, network, split))
            checked(self._library.esper_train(workspace, *refs, order.ctypes.data, results.ctypes.data))

    def measure(
        self, network: NetworkStruct, split: SplitStruct, tree: TreeStruct, correct_counts: Ints, loss: Floats
    ) -> None:
        """Evaluate: write each configuration's number of correct samples to `correct_counts` [rows].

        The sum of the real network's losses is written to `loss` [1]. Raises MemoryError or ValueError if the kernel
        reports an error.
        """
        with self._one() as workspace:
            refs = map(ctypes.byref, (network, split, tree))
            checked(self._library.esper_measure(workspace, *refs, correct_counts.ctypes.data, loss.ctypes.data))

    @contextmanager
    def _one(self) -> Iterator[int]:
        """Yield a workspace that no other thread uses; MemoryError or ValueError if a new one cannot be opened."""
        try:
            workspace = self._free.get_nowait()
        except queue.Empty:
            new_workspace = Pointer()
            checked(self._library.esper_open(ctypes.byref(self._host), self._border, ctypes.byref(new_workspace)))
            workspace = new_workspace.value or 0
        try:
            yield workspace
        finally:
            self._free.put(workspace)

    def __del__(self) -> None:
        while not self._free.empty():
            self._library.esper_close(self._free.get_nowait())
