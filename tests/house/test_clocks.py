"""Time limits use a monotonic clock, so a step of the wall clock, by hand or by NTP, ends no run.

Durations on a GPU are measured by one function that synchronises: a call returns before its kernels have run.
"""

import ast

from house.sources import ROOT, SOURCES, breaking, calls, name_of

# Modules that read the wall clock, and what they write it into or compare it with.
ASKED_FOR = {
    "esper_ab/api/requested.py": "the date in an experiment's name",
    "esper_ab/campaign/directory.py": "the time in an experiment's name",
    "esper_ab/gate/running.py": "when a sitting began, beside the stamps of the journal",
    "esper_ab/gate/spent.py": "when a sitting ended, likewise",
    "esper_ab/journal/file.py": "the stamp of a line",
    "esper_ab/stream/ledger.py": "the stamp of a line",
    "esper_ab/journal/lock.py": "since when the holder has it",
    "esper_ab/live/console.py": "the stamp of a line",
    "esper_ab/live/on_stderr.py": "the stamp of a line",
    "esper_ab/report/listing.py": "when the page was written",
    "esper_ab/kept_runs/offers.py": "the age of kept runs",
    "esper_ab/kept_runs/folder.py": "the age of temporary files, likewise",
    "esper_ab/commands/_removable.py": "the age of temporary files, which `tidy` removes",
}
WALL = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "date.today"}


def test_only_listed_modules_read_the_wall_clock():
    def asks_clock(source: str) -> bool:
        return any(ast.unparse(call.func) in WALL for call in calls(source))

    assert breaking(asks_clock) == ASKED_FOR.keys()


# Modules that measure durations in processes that may have a GPU, and why that is correct.
TIMES = {
    "workers/kinds/growth/layers/device.py": "the one function, `seconds`, which waits for the GPU before and after",
    "workers/environments.py": "phases of an episode, each of which ends with its results on the host",
    "workers/commands/torch_facts.py": "a convolution on the CPU",
    "workers/kinds/gymnasium/preflight.py": "environments, which are on the CPU",
    "workers/process/link.py": "time limits of a connection",
    "workers/process/loop.py": "time between two reports",
    "workers/kinds/trainer/command_rehearsal.py": "a user's trainer, to its result",
    "workers/kinds/trainer/trial.py": "likewise",
    "workers/kinds/trainer/session.py": "likewise",
    "workers/kinds/trainer/command_session.py": "likewise",
    "workers/kinds/trainer/python_session.py": "likewise",
    "workers/kinds/trainer/function_rehearsal.py": "likewise",
    "workers/kinds/trainer/function_session.py": "likewise",
    "workers/kinds/trainer/idling.py": "how long a user's program does nothing",
    "scripts/benchmarks/coordination.py": "messages",
    "scripts/benchmarks/fake_node.py": "messages",
    "scripts/benchmarks/fleet.py": "messages",
    "scripts/benchmarks/machine.py": "a lap of a core",
    "scripts/benchmarks/other_ppo.py": "on the CPU",
    "scripts/benchmarks/ppo.py": "on the CPU",
    "scripts/benchmarks/startup.py": "a process",
}
BESIDE_GPUS = [path for path in SOURCES if name_of(path).startswith("workers/")]
BENCHMARKS = sorted((ROOT / "scripts" / "benchmarks").rglob("*.py"))
_CLOCKS = ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "thread_time")


def times(source: str) -> bool:
    """True if the source measures a duration or uses CUDA events."""
    call_names = [ast.unparse(call.func) for call in calls(source)]
    return any(
        name.rpartition(".")[2] in _CLOCKS or name.startswith("timeit.") or name.endswith("cuda.Event")
        for name in call_names
    )


def test_only_one_function_times_a_gpu():
    assert times("began = time.perf_counter()")
    assert times("timeit.repeat(step, number=1)")
    assert breaking(times, BESIDE_GPUS + BENCHMARKS) == TIMES.keys()


def test_the_gpu_timer_synchronises_before_each_clock_reading():
    tree = ast.parse((ROOT / "workers" / "kinds" / "growth" / "layers" / "device.py").read_text())
    (seconds,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "seconds"]
    order = [ast.unparse(call.func) for line in seconds.body for call in calls(ast.unparse(line))]
    assert order[1:] == ["work", "wait", "perf_counter", "work", "wait", "perf_counter"]
