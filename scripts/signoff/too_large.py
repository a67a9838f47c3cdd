"""Part 9: a run that must run out of memory ends as documented, and harms nobody else on the GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from benchmarks.gpu import GPU, on_gpu
from benchmarks.worlds import Case

from esper_ab.journal.load import load
from signoff.machine import SHARED, TEST_MEMORY, Machine, environment_of_test_device

TITLE = "Out of memory"
BUDGET_S = 50
ENDED = 4  # exit status of an experiment that failed
REMEDY = "a smaller growth.batch_size need less"  # after the name of the environments, which differs in Python
_LEFT_BYTES = 4 << 30
# 13 GiB by the formula, for two groups: far more than is left.
_FLAGS = {
    "--groups": "a=shaped,b=shaped",
    "--seeds": "1",
    "--episodes": "1",
    "--steps": "4",
    "--eval-episodes": "2",
    **SHARED,
}
_LARGE = {"--n-envs": "512", "--set": "growth.batch_size=1024"}
_SMALL = {"--task": "synthetic", "--n-envs": "4", "--set": "growth.batch_size=64"}  # 3 MiB, where 1/2 is left


def measure(machine: Machine) -> dict[str, Any]:
    """Let an experiment run out of memory beside this process, which has a network on the same GPU.

    This process's next epoch is compared with that of a twin which had the GPU to itself.
    """
    case = Case(task="digits", n_envs=16 if machine.real else 2, live_seeds=3, batches=2)
    twin = on_gpu(case)
    gpu_world = on_gpu(case)
    for world in (twin, gpu_world):
        world.bank_epoch()
    expected = [part.tolist() for part in twin.bank_epoch()]
    with _nearly_full(machine) as env:
        flags = {**_FLAGS, **(_LARGE if machine.real else _SMALL)}
        process = machine.run(*machine.launch_command("too_large", flags), env=env)
    repeated_results = [part.tolist() for part in gpu_world.bank_epoch()]
    incidents = load(machine.folder / "too_large").history.incidents
    next_launch = machine.run(*machine.launch_command("afterwards", {**_FLAGS, "--task": "synthetic", "--n-envs": "2"}))
    return {
        "exit_status": process.returncode,
        "said": process.stderr.strip().splitlines()[-3:],
        "remedy": REMEDY in " ".join(process.stderr.split()),
        "restarts": sum(incident.category == "restart" for incident in incidents),
        "neighbour_unharmed": repeated_results == expected,
        "afterwards": next_launch.returncode,
    }


@contextmanager
def _nearly_full(machine: Machine) -> Iterator[dict[str, str] | None]:
    """Take the GPU's memory but for 4 GiB, or half of what is free; on the test device, workers find none."""
    if not machine.real:
        yield environment_of_test_device(machine.folder / "full", taken_later={"0": TEST_MEMORY - (1 << 19)})
        return
    free_bytes, _ = torch.cuda.mem_get_info()
    filler = torch.empty(free_bytes - min(_LEFT_BYTES, free_bytes // 2), dtype=torch.uint8, device=GPU)
    yield None
    del filler
    torch.cuda.empty_cache()


def problems(findings: dict[str, Any]) -> list[str]:
    """Another end than the documented one, a retry, and harm to anybody else."""
    lines = []
    if findings["exit_status"] != ENDED:
        lines.append(f"the experiment ended with exit status {findings['exit_status']}, not {ENDED}")
    if not findings["remedy"]:
        lines.append(f"its error does not say that {REMEDY}: {' '.join(findings['said'])}")
    if findings["restarts"]:
        lines.append(f"it was started again {findings['restarts']} times, unchanged")
    if not findings["neighbour_unharmed"]:
        lines.append("another process on the same GPU computed other losses afterwards")
    if findings["afterwards"]:
        lines.append(f"the next experiment on the GPU ended with exit status {findings['afterwards']}")
    return lines


def render(findings: dict[str, Any]) -> list[str]:
    """Return how it ended."""
    return [
        f"The experiment ended with exit status {findings['exit_status']}. It said:",
        "",
        "```text",
        *findings["said"],
        "```",
    ]
