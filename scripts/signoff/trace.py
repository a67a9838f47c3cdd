"""What a trace of torch's profiler says about an epoch on a GPU: launches, waits, and how long the GPU was busy."""

from collections import Counter
from typing import Any

LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch")
WAITING_CALLS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy")
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")  # categories of what the GPU itself did


def summary(events: list[dict[str, Any]], window: str) -> dict[str, Any]:
    """Summarise the events within the range called `window` of a Chrome trace; times in milliseconds.

    What the GPU did counts until the range ends: an epoch ends when its losses have come back.
    """
    start, end = _range(events, window)
    events_inside = [event for event in events if event.get("ph") == "X" and start <= event["ts"] <= end]
    gpu_events = [event for event in events_inside if event.get("cat") in ON_GPU]
    calls = Counter(event["name"] for event in events_inside if event.get("cat") not in ON_GPU)
    longest_operations = Counter[str]()
    for event in gpu_events:
        longest_operations[event["name"]] += event["dur"]
    return {
        "wall_ms": (end - start) / 1e3,
        "launches": sum(calls[name] for name in LAUNCHES),
        "waits": sum(calls[name] for name in WAITING_CALLS),
        "busy_share": covered(gpu_events) / (end - start),
        "longest": [[name, total / 1e3] for name, total in longest_operations.most_common(5)],
    }


def _range(events: list[dict[str, Any]], window: str) -> tuple[float, float]:
    """Return begin and end of the range in microseconds; ValueError if the trace does not have it once."""
    annotations = [event for event in events if event.get("name") == window and event.get("cat") == "user_annotation"]
    if len(annotations) != 1:
        raise ValueError(f"the trace has {len(annotations)} ranges called {window}, not one")
    return annotations[0]["ts"], annotations[0]["ts"] + annotations[0]["dur"]


def covered(events: list[dict[str, Any]]) -> float:
    """Return the microseconds in which at least one of the events lasted."""
    total = 0.0
    covered_until = float("-inf")
    for event in sorted(events, key=lambda interval: interval["ts"]):
        end = event["ts"] + event["dur"]
        total += max(0.0, end - max(covered_until, event["ts"]))
        covered_until = max(covered_until, end)
    return total
