"""The binding of the kernel: equal struct layouts, and a message for each error status."""

import ctypes
import itertools
import re

import numpy as np
import pytest
from support.kernels.compiler import IN_CI

from workers.native import binding, build, known_answer, library

WIDTHS = [kernel.name for kernel in library.kernels() if not kernel.problem]
pytestmark = pytest.mark.skipif(not WIDTHS and not IN_CI, reason="the kernel was not built here")


def pairs() -> list[tuple[type[ctypes.Structure], int, int]]:
    """Any two fields of a struct that could be exchanged without another field moving."""
    sizes = {struct: [ctypes.sizeof(kind) for _, kind in struct._fields_] for struct in binding.STRUCTS}
    return [
        (struct, a, b)
        for struct, field_sizes in sizes.items()
        for a, b in itertools.combinations(range(len(field_sizes)), 2)
        if field_sizes[a] == field_sizes[b]
    ]


def loaded() -> tuple[ctypes.CDLL, int]:
    return library.load(WIDTHS[0]), build.WIDTHS[WIDTHS[0].removeprefix("native-")].lanes


@pytest.mark.parametrize(("struct", "a", "b"), pairs(), ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_struct_with_two_exchanged_fields_is_refused(struct: type[ctypes.Structure], a: int, b: int) -> None:
    """host_lr and seed_lr of one size among them: the struct has as many bytes as before."""
    fields = list(struct._fields_)
    fields[a], fields[b] = fields[b], fields[a]
    exchanged = type(struct.__name__, (ctypes.Structure,), {"_fields_": fields})
    assert ctypes.sizeof(exchanged) == ctypes.sizeof(struct)
    kernel, lanes = loaded()
    structs = [exchanged if struct_type is struct else struct_type for struct_type in binding.STRUCTS]
    with pytest.raises(ValueError, match=f"Esper{struct.__name__.removesuffix('Struct')}"):
        binding.declare(kernel, binding.layout(structs, lanes))


def test_a_library_with_another_number_of_lanes_is_refused() -> None:
    kernel, lanes = loaded()
    with pytest.raises(ValueError, match="LANES"):
        binding.declare(kernel, binding.layout(binding.STRUCTS, 2 * lanes))


def test_every_error_status_of_the_kernel_has_a_message() -> None:
    header = (build.HERE / "src" / "api.h").read_text(encoding="utf-8")
    names = re.search(r"enum EsperStatus : std::int32_t \{([^}]*)\}", header)
    assert names
    assert sorted(binding._STATUS) == list(range(1, len(names[1].split(","))))


def test_a_failed_allocation_raises_memory_error() -> None:
    binding.checked(0)
    with pytest.raises(MemoryError, match="no memory"):
        binding.checked(1)


class Call:
    """A host of 4x4 pixels and two levels with a gated seed in the first slot; every part may be changed."""

    def __init__(self) -> None:
        self.host = binding.HostStruct(in_channels=2, height=4, width=4, base=4, levels=2, kernel=3, pools=1, classes=3)
        self.border = 1
        self.layers = (binding.LayerStruct * 3)(
            binding.LayerStruct(binding.CONV, 4, 6, 3, (0,)),
            binding.LayerStruct(binding.NORM, 6, 6, 2, (216, 222)),
            binding.LayerStruct(binding.CONV, 6, 4, 1, (228,)),
        )
        self.arrays = [np.full(size, 0.1, np.float32) for size in (411, 411, 301, 301, 4, 4, 8, 8, 5 * 32)]
        addresses = [array.ctypes.data for array in self.arrays]
        self.seeds = (binding.SeedStruct * 2)(
            binding.SeedStruct(
                values=addresses[2],
                momentum=addresses[3],
                layers=self.layers,
                n_layers=3,
                width=301,
                gate=252,
                gate_hidden=8,
                join=2,
                trained=1,
                alpha=0.5,
            )
        )
        mean = binding.pointers((addresses[4], addresses[6]))
        var = binding.pointers((addresses[5], addresses[7]))
        self.network = binding.NetworkStruct(addresses[0], addresses[1], mean, var, self.seeds, 411)
        self.labels = np.array([0, 1, 2, 1, 0])
        self.order = np.arange(5)
        self.split = binding.SplitStruct(addresses[8], self.labels.ctypes.data, 5, 32)
        self.rule = binding.RuleStruct(2, 0.1, 0.1, 0.9, 0.0, 1.0)
        self.rows = (binding.Int * 2)(2, 2)
        self.parents = [np.array([0, 0]), np.array([0, 1])]
        enabled_masks = [np.array([0, 1], np.uint8), np.array([0, 0], np.uint8)]
        self.tree = binding.TreeStruct(
            self.rows,
            binding.pointers(a.ctypes.data for a in self.parents),
            binding.pointers(a.ctypes.data for a in enabled_masks),
            1,
        )
        self.kept = enabled_masks

    def train(self) -> None:
        workspaces = binding.Workspaces(loaded()[0], self.host, self.border)
        workspaces.train(self.rule, self.network, self.split, self.order, np.zeros(2))

    def measure(self) -> float:
        workspaces = binding.Workspaces(loaded()[0], self.host, self.border)
        loss = np.zeros(1)
        workspaces.measure(self.network, self.split, self.tree, np.zeros(2, np.int64), loss)
        return float(loss[0])


def test_a_valid_call_of_the_kernel_trains_and_measures() -> None:
    Call().train()
    assert 0.0 < Call().measure() < np.inf


HUGE = 2**31 - 1
FOR_BOTH_CALLS = {  # what it says, and what is wrong with a call
    "a size": [
        "host.classes = 0",
        "host.in_channels = -1",
        "host.levels = 0",
        "host.levels = HUGE",
        "host.base = 1 << 20",
        "host.height = HUGE",
        "host.pools = -1",
        "layers[0].outputs = 0",
    ],
    "kernel": [
        "host.kernel = 2",
        "host.kernel = 5",
        "border = HUGE",
        "border = -1",
        "layers[0].size = 5",
        "layers[2].size = 2",
    ],
    "pools": ["host.height = 1"],
    "row of parameters": [
        "network.width = 410",
        "seeds[0].width = 300",
        "seeds[0].gate = 253",
        "seeds[0].gate_hidden = HUGE",
        "layers[1].at[1] = 300",
        "layers[0].at[0] = -1",
    ],
    "kind": [
        "layers[1].kind = 6",
        "layers[1].size = 4",
        "layers[1].size = 0",
        "seeds[0].join = 3",
        "seeds[0].n_layers = 0",
    ],
    "channels": [
        "layers[0].inputs = 64",
        "layers[1].outputs = 4",
        "layers[1].kind = binding.TOWARDS",
        "seeds[0].n_layers = 2",
    ],
    "without samples": ["split.samples = 0"],
    "images": ["split.each = 31"],
    "label": ["labels[4] = 3", "labels[0] = 2**32"],
}
TRAINING = {"a batch": ["rule.batch_size = 0", "rule.batch_size = HUGE"], "order": ["order[4] = 5", "order[0] = -1"]}
MEASURING = {"configuration": ["parents[1][1] = 2", "rows[0] = 0", "tree.real = 2"]}


@pytest.mark.parametrize(
    ("call_kernel", "complaint", "statement"),
    [
        (call_kernel, complaint, statement)
        for call_kernel, additional in ((Call.train, TRAINING), (Call.measure, MEASURING))
        for complaint, changes in (FOR_BOTH_CALLS | additional).items()
        for statement in changes
    ],
)
def test_an_invalid_call_of_the_kernel_is_refused_before_any_computation(
    call_kernel, complaint: str, statement: str
) -> None:
    call = Call()
    exec(f"call.{statement}", {"call": call, "HUGE": HUGE, "binding": binding})
    arrays_before = [array.copy() for array in call.arrays]
    with pytest.raises(ValueError, match=f"the kernel refuses: .*{complaint}"):
        call_kernel(call)
    assert all(np.array_equal(a, b) for a, b in zip(arrays_before, call.arrays, strict=True))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_known_answer_depends_on_every_field_of_the_training_rule(
    width: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes through the structs, so that two that are exchanged on this side alone would show."""
    kernel = library.load(width)
    expected = library.KNOWN_ANSWER[width.removeprefix("native-")]
    assert known_answer.known_answer(kernel) == expected
    rule_struct = binding.RuleStruct
    for a, b in itertools.combinations([name for name, kind in rule_struct._fields_ if kind is binding.Float], 2):

        def exchanged(a: str = a, b: str = b, **numbers: float) -> ctypes.Structure:
            return rule_struct(**{**numbers, a: numbers[b], b: numbers[a]})

        monkeypatch.setattr(binding, "RuleStruct", exchanged)
        assert known_answer.known_answer(kernel) != expected
