"""The sign-off of a GPU: every check can fail, results survive an abort, and a rehearsal writes no page."""

import copy
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
import sign_off
import torch
from signoff import tests as gpu_tests
from signoff import trace
from signoff.parts import MOST_S, NAMES, part
from signoff.results import Results

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, str(ROOT / "scripts" / "sign_off.py"))
CELL = {"task": "digits", "n_envs": 16, "batches": 4}
MS = {"median": 2.0, "low": 1.0, "high": 3.0}
# Findings of each part that pass.
GOOD = {
    "header": {
        "gpus": [{"name": "GPU", "memory_gib": 8.0, "capability": "9.0"}],
        "driver": "570",
        "torch": "2",
        "cuda": "13",
        "processor": "CPU",
        "cores": 2,
        "python": "3.11",
        "sources": "s",
        "of_this_checkout": True,
        "doctor": {"exit_status": 0, "said": []},
    },
    "ordered": {
        "command": "c",
        "seconds": 1.0,
        "result": "r",
        "runs": [{"run": "a/0", "device": "cuda:0/0", "envs_on": ["cuda:0"], "episode_s": [1.0], "evaluated": True}],
    },
    "tests": {"exit_status": 0, "last_line": "12 of 14 GPU tests on 1 x GPU", "failed": [], "output": ""},
    "resumed": {
        "worker_killed": True,
        "coordinator_killed": True,
        "incidents": ["worker_death", "restart"],
        "results": {"whole": "r", "killed": "r"},
        "digests": {"whole a/0": ["1", "2"], "killed a/0": ["1", "2"]},
    },
    "precision": {
        "bf16": True,
        "outcomes": {"off": 50.0, "fp16": 52.0},
        "cells": [{"case": CELL, "ms": {"off": MS, "fp16": MS}, "difference": {"off": 0.0, "fp16": 0.001}}],
    },
    "speed": {
        "gpu": "GPU",
        "kernel": "native-avx2",
        "cells": [{"case": CELL, "ms": {"native": MS, "gpu": MS}, "core_over_gpu": MS, "difference": 1e-6}],
    },
    "busy": {
        "real": True,
        "cells": [
            {
                "case": CELL,
                "counted_per_minibatch": 100,
                "launches": 500,
                "waits": 1,
                "busy_share": 0.2,
                "epoch_ms": 9.0,
                "wall_ms": 10.0,
                "longest": [["sgemm", 1.0]],
            }
        ],
    },
    "memory": {
        "total_mib": 8192.0,
        "cells": [
            {
                "case": CELL,
                "peak_mib": 100.0,
                "reserved_mib": 200.0,
                "beside_mib": 500.0,
                "formula_mib": 2560.0,
                "fixed_mib": 2048.0,
            }
        ],
    },
    "too_large": {
        "exit_status": 4,
        "said": ["error"],
        "remedy": True,
        "restarts": 0,
        "neighbour_unharmed": True,
        "afterwards": 0,
    },
    "shared": {
        "cells": [
            {
                "workers": n,
                "devices": [f"cuda:0/{i}" for i in range(n)],
                "digests": ["1"],
                "seconds": 1.0,
                "episode_s": 1.0,
                "steps_per_s": 9.0,
            }
            for n in (2, 8)
        ]
    },
}
NAN = float("nan")
# Findings that must fail: the part, the path of the changed value, and the value.
BAD = [
    ("header", ("gpus",), []),
    ("header", ("of_this_checkout",), False),
    ("header", ("doctor", "exit_status"), 2),
    ("ordered", ("runs", 0, "envs_on"), ["cpu:0", "cuda:0"]),
    ("ordered", ("runs", 0, "envs_on"), []),
    ("ordered", ("runs", 0, "evaluated"), False),
    ("ordered", ("runs",), []),
    ("tests", ("exit_status",), 1),
    ("tests", ("failed",), ["FAILED a"]),
    ("resumed", ("worker_killed",), False),
    ("resumed", ("coordinator_killed",), False),
    ("resumed", ("incidents",), []),
    ("resumed", ("digests", "killed a/0"), ["1", "3"]),
    ("resumed", ("results", "killed"), "other"),
    ("precision", ("cells", 0, "difference", "fp16"), 0.1),
    ("precision", ("cells", 0, "difference", "fp16"), NAN),
    ("precision", ("cells",), []),
    ("busy", ("cells",), []),
    ("memory", ("cells",), []),
    ("precision", ("outcomes", "fp16"), 10.0),
    ("precision", ("outcomes", "off"), NAN),
    ("speed", ("cells", 0, "difference"), 0.1),
    ("speed", ("cells", 0, "difference"), NAN),
    ("speed", ("cells",), []),
    ("speed", ("cells", 0, "ms", "gpu"), {"median": NAN}),
    ("busy", ("cells", 0, "launches"), 0),
    ("busy", ("cells", 0, "launches"), 9000),
    ("busy", ("cells", 0, "waits"), 2),
    ("busy", ("cells", 0, "busy_share"), 0.0),
    ("memory", ("cells", 0, "peak_mib"), 9000.0),
    ("memory", ("cells", 0, "peak_mib"), 0.0),
    ("memory", ("cells", 0, "beside_mib"), 2400.0),
    ("too_large", ("exit_status",), 0),
    ("too_large", ("remedy",), False),
    ("too_large", ("restarts",), 1),
    ("too_large", ("neighbour_unharmed",), False),
    ("too_large", ("afterwards",), 1),
    ("shared", ("cells", 1, "digests"), ["1", "2"]),
    ("shared", ("cells", 0, "devices"), ["cuda:0", "cpu:0"]),
    ("shared", ("cells",), []),
]


def changed(name: str, keys: tuple, value: object) -> dict:
    findings = copy.deepcopy(GOOD[name])
    parent = findings
    for key in keys[:-1]:
        parent = parent[key]
    parent[keys[-1]] = value
    return findings


@pytest.mark.parametrize(("name", "keys", "value"), BAD, ids=lambda value: str(value)[:40])
def test_a_part_of_the_sign_off_reports_a_problem_for_bad_numbers(name, keys, value):
    assert part(name).problems(changed(name, keys, value))


def test_no_part_of_the_sign_off_reports_a_problem_for_good_numbers():
    assert [name for name in NAMES if part(name).problems(GOOD[name])] == []
    assert {name for name, _, _ in BAD} == set(NAMES)


def test_a_sign_off_rehearsal_selects_existing_gpu_tests():
    sources = "".join(path.read_text() for path in (ROOT / "tests" / "gpu").glob("test_*.py"))
    _, expression = gpu_tests._REHEARSED_TESTS
    for name in expression.split(" or "):
        assert re.search(rf"def test_\w*{name}", sources), name


def test_the_budgets_of_all_parts_add_up_to_at_most_twelve_minutes():
    assert sum(part(name).BUDGET_S for name in NAMES) <= MOST_S


def results(folder: Path, *, real: bool = True) -> Results:
    return Results(json_file=folder / "gpu.json", page_file=folder / "gpu.md", real=real)


def filled(folder: Path, names: tuple[str, ...] = NAMES, **problems: list[str]) -> Results:
    """Return results with these parts; `other` gives the problems of a part."""
    filled_results = results(folder)
    for name in names:
        section = part(name).render(GOOD[name])
        filled_results.parts[name] = {
            "seconds": 1.0,
            "found": GOOD[name],
            "problems": problems.get(name, []),
            "section": section,
        }
    filled_results.write()
    return filled_results


def test_the_sign_off_passes_if_all_parts_ran_without_a_problem(tmp_path):
    assert filled(tmp_path).passed
    page = (tmp_path / "gpu.md").read_text()
    assert page.startswith("# The sign-off on 1 x GPU\n\n<!-- sign-off -->\nWritten by `scripts/sign_off`. PASSED.\n")
    assert all(f"## {number}. {part(name).TITLE}\n" in page for number, name in enumerate(NAMES, 1))
    assert json.loads((tmp_path / "gpu.json").read_text())["passed"]


def test_the_sign_off_fails_with_a_problem_or_a_missing_part(tmp_path):
    assert not filled(tmp_path, speed=["too slow"]).passed
    assert "FAILED; with problems: Speed." in (tmp_path / "gpu.md").read_text()
    assert not filled(tmp_path, NAMES[:-1]).passed
    assert "FAILED; not run: shared." in (tmp_path / "gpu.md").read_text()


def test_restoring_an_aborted_sign_off_keeps_the_finished_parts(tmp_path):
    filled(tmp_path, NAMES[:6])
    restored_results = results(tmp_path)
    restored_results.parts["header"] = {"found": GOOD["header"], "problems": [], "seconds": 1.0, "section": []}
    assert restored_results.restore(6) == ""
    assert list(restored_results.parts) == list(NAMES[:5])


@pytest.mark.parametrize("key", ["gpus", "torch", "driver", "sources"])
def test_restoring_results_of_another_machine_or_version_is_refused(tmp_path, key):
    filled(tmp_path)
    restored_results = results(tmp_path)
    restored_results.parts["header"] = {"found": changed("header", (key,), "other")}
    assert f"has other {key}" in restored_results.restore(6)
    assert list(restored_results.parts) == ["header"]


def test_restoring_without_results_is_refused(tmp_path):
    assert "start without --part" in results(tmp_path).restore(2)


def stand_in_part(monkeypatch, budget_s: int) -> None:
    part = types.SimpleNamespace(TITLE="x", BUDGET_S=budget_s)
    monkeypatch.setattr(sign_off, "part", lambda _name: part)


def test_a_part_of_the_sign_off_is_stopped_if_it_exceeds_its_budget(tmp_path, monkeypatch):
    stand_in_part(monkeypatch, 0)
    result = sign_off.run_part("header", dict(os.environ), True, tmp_path / "part")
    assert result["problems"] == ["it took longer than its 0 s"]


def test_a_part_of_the_sign_off_that_crashes_reports_its_error(tmp_path, monkeypatch):
    stand_in_part(monkeypatch, 600)
    env = {**os.environ, "PYTHONPATH": ""}  # so the module is not found
    result = sign_off.run_part("header", env, True, tmp_path / "part")
    assert "No module named" in result["problems"][0]


def test_a_sign_off_rehearsal_cannot_write_the_evidence_page():
    process = subprocess.run(
        [*COMMAND, "--test-device", "--out", ROOT / "docs" / "evidence"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1
    assert "a rehearsal is no evidence" in process.stderr


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "scripts", ROOT / "tests", ROOT)))}


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="torch can use a GPU here")
def test_without_a_gpu_the_sign_off_exits_with_one_line(tmp_path):
    process = subprocess.run(
        [*COMMAND, "--out", tmp_path], env=environment(), capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stdout) == (1, "")
    assert process.stderr == f"error: torch {torch.__version__} can use no GPU here\n"
    assert list(tmp_path.iterdir()) == []


# --- the trace of torch's profiler


def event(name: str, cat: str, ts: float, dur: float) -> dict:
    return {"ph": "X", "name": name, "cat": cat, "ts": ts, "dur": dur}


def test_a_trace_summary_counts_only_events_within_its_range():
    events = [
        event("epoch", "user_annotation", 100, 1000),
        event("cudaLaunchKernel", "cuda_runtime", 50, 5),  # before
        event("cudaLaunchKernel", "cuda_runtime", 110, 5),
        event("cuLaunchKernelEx", "cuda_driver", 120, 5),
        event("cudaMemcpyAsync", "cuda_runtime", 130, 5),
        event("cudaStreamSynchronize", "cuda_runtime", 140, 400),
        event("cudaDeviceSynchronize", "cuda_runtime", 1200, 5),  # the profiler's own, afterwards
        event("sgemm", "kernel", 200, 100),
        event("norm", "kernel", 250, 100),
        event("Memcpy", "gpu_memcpy", 500, 50),
        {"ph": "M", "name": "process_name"},
    ]
    summary = trace.summary(events, "epoch")
    assert (summary["launches"], summary["waits"], summary["busy_share"], summary["wall_ms"]) == (2, 1, 0.2, 1.0)
    assert summary["longest"][0] == ["sgemm", 0.1]


def test_a_trace_without_the_named_range_is_refused():
    with pytest.raises(ValueError, match="0 ranges called epoch"):
        trace.summary([], "epoch")


@pytest.mark.slow  # minutes; CI's job `sign-off` runs it on every push
@pytest.mark.skipif(not torch.__version__.endswith("+cpu"), reason="the test device is for torch's CPU build")
def test_every_part_of_the_sign_off_passes_on_the_test_device(tmp_path):
    process = subprocess.run(
        [*COMMAND, "--test-device", "--out", tmp_path], env=environment(), capture_output=True, text=True, check=False
    )
    assert process.stdout.endswith("PASSED\n"), process.stdout + process.stderr
    assert "Nothing on this page was measured on a GPU." in (tmp_path / "gpu.md").read_text()
