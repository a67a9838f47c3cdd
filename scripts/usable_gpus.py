"""Print, as JSON, which build of torch this Python has, and on which GPUs it can compute.

In a process of its own, because a process that has initialised CUDA holds memory of each GPU until it ends.
"""

import json

import torch


def error_of(index: int) -> str:
    """Return why GPU `index` cannot add numbers; "" if it can."""
    try:
        total = (torch.ones(8, device=f"cuda:{index}") + 1).sum().item()
    except RuntimeError as error:
        return f"cuda:{index}: {str(error).splitlines()[0]}"
    return "" if total == 16 else f"cuda:{index}: 8 times 2 is {total}"


def main() -> None:
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "ROCm" if torch.version.hip else "the CPU"
    usable_names = []
    errors = []
    for index in range(torch.cuda.device_count() if torch.version.cuda else 0):
        if error := error_of(index):
            errors.append(error)
        else:
            usable_names.append(torch.cuda.get_device_name(index))
    print(json.dumps({"torch": f"torch {torch.__version__} for {build}", "usable": usable_names, "failing": errors}))


if __name__ == "__main__":
    main()
