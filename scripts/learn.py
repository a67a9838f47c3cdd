"""Does it learn? Held-out accuracy of hosts grown by every controller and reward mode, with intervals over runs.

Budgets and rng seeds were fixed before the first run of record; nothing was tuned on these rng seeds. Work is done in
pieces, so the script can be stopped at any time and called again, with more budgets or seeds; runs that
docs/evidence/benchmarks/learning.json holds are not done again.

    scripts/learn                                   do what is missing, write docs/evidence/learning.md and data
    scripts/learn --budgets 12x8 --seeds 6     less of it
    scripts/learn --table                           write them from the data there is and the pieces in --out
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from learning.pieces import BUDGETS, EVAL_EPISODES, REPLICATES, ROOT, perform
from learning.table import (
    budget_text,
    collect,
    curves,
    differences,
    falls,
    machines,
    markdown,
    pieces_of,
    recorded,
    rows,
    state,
)
from marks import between

DATA = ROOT / "docs/evidence/benchmarks/learning.json"


def recorded_data() -> dict[str, Any]:
    """What the data file holds."""
    return json.loads(DATA.read_bytes()) if DATA.exists() else {"runs": []}


def write(out: Path) -> None:
    """docs/evidence/learning.md and its data.

    Runs of the data file count unless there is a piece of theirs.
    """
    data = recorded_data()
    found = recorded(data["runs"])
    for row, runs in collect(out).items():
        found.setdefault(row, {}).update(runs)
    table = rows(found)
    searched = out / "schedule.json"
    schedule = data["schedule"] if "schedule" in data else json.loads(searched.read_text())["schedule"]
    facts = {
        "budget": budget_text(EVAL_EPISODES),
        "state": state(found),
        "table": markdown(table),
        "curves": curves(found),
        "falls": falls(found),
        "differences": differences(found),
        "machines": machines(found),
        "schedule": "`" + "`, `".join(schedule) + "`",
    }
    page = (ROOT / "docs/evidence/learning.md").read_text()
    for mark, value in facts.items():
        page = between(page, mark, value)
    (ROOT / "docs/evidence/learning.md").write_text(page)
    runs = [
        {"group": group, "budget": budget, "replicate": replicate, **run}
        for (group, budget), of in found.items()
        for replicate, run in sorted(of.items())
    ]
    head = {"budget": facts["budget"], "state": facts["state"], "schedule": schedule, "rows": table}
    lines = ",\n".join(json.dumps(run) for run in runs)
    DATA.write_text(f'{json.dumps(head, indent=1)[:-2]},\n "runs": [\n{lines}\n]}}\n')
    print(facts["state"], facts["table"], facts["curves"], sep="\n\n")


def main() -> None:
    """Parse the command line and go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "experiments" / "learn")
    parser.add_argument("--budgets", nargs="+", choices=[one.name for one in BUDGETS], default=None, metavar="ExN")
    parser.add_argument("--seeds", type=int, choices=range(1, REPLICATES + 1), default=REPLICATES, metavar="N")
    parser.add_argument("--in-turn", action="store_true", help="one process at a time, for a machine with other work")
    parser.add_argument("--table", action="store_true", help="only write the table")
    arguments = parser.parse_args()
    if not arguments.table:
        asked = [one for one in BUDGETS if arguments.budgets is None or one.name in arguments.budgets]
        data = recorded_data()
        perform(
            arguments.out, asked, arguments.seeds, known=pieces_of(recorded(data["runs"])),
            schedule=data.get("schedule"), in_turn=arguments.in_turn,
        )  # fmt: skip
    write(arguments.out)


if __name__ == "__main__":
    main()
