"""A part's process: python -m signoff.run_part NAME FOLDER real|rehearsal; writes FOLDER/answer.json."""

import json
import sys
from pathlib import Path

import torch

from esper_ab.contracts.settings import Arithmetic
from signoff.machine import Machine
from signoff.parts import part
from workers.devices.by_torch import pin
from workers.process.setup import end


def main(name: str, folder: Path, kind: str) -> None:
    """Measure a part, check it, and write what was found, its problems and its section of the page."""
    if not torch.cuda.is_available():
        sys.exit(f"error: torch {torch.__version__} can use no GPU here")
    pin(Arithmetic())  # as workers compute by default: one thread, deterministic, no TF32
    module = part(name)
    findings = module.measure(Machine(folder=folder, real=kind == "real"))
    answer = {"found": findings, "problems": module.problems(findings), "section": module.render(findings)}
    (folder / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
    # Without Python's clean-up: a thread of torch that still frees the last epoch's graph for a GPU would abort then.
    end()
