"""The tables of scripts/gate_rates."""

import gate_rates
import numpy as np
import pytest


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "runs.csv"
    rng = np.random.default_rng(1)
    lines = ["trainer,margin,state,seed,outcome"]
    for state, mean in (("base", 50.0), ("bug", 25.0)):
        lines += [f"mine,10,{state},{seed},{rng.normal(mean, 5.0)}" for seed in range(12)]
    path.write_text("\n".join(lines))
    return gate_rates.read_stored(path)


def test_a_bug_is_worse_and_a_reshuffled_base_passes_as_often_as_printed(stored):
    rows = {(row[1], row[2]): row for row in gate_rates.resampled(stored, repeats=40)}
    titles = ("trainer", "head", "pairs", *gate_rates.VERDICTS, "printed", "used")
    bug = dict(zip(titles, rows["bug", "20"], strict=True))
    assert (bug["WORSE"], bug["printed"], bug["used"]) == ("100 %", "", "20.0")
    reshuffled = dict(zip(titles, rows["reshuffled", "40"], strict=True))
    assert int(reshuffled["NOT WORSE"].rstrip(" %")) >= 90
    assert " SE)" in reshuffled["printed"]
    at_margin = dict(zip(titles, rows["reshuffled, worse by the margin", "20"], strict=True))
    assert int(at_margin["NOT WORSE"].rstrip(" %")) <= 15


def test_looks_of_a_gate_cost_little_power_and_no_maximum_costs_much(monkeypatch):
    monkeypatch.setattr(gate_rates, "PAIRS", (40,))
    monkeypatch.setattr(gate_rates, "EFFECTS", (1.0,))
    monkeypatch.setattr(gate_rates, "PATHS", 2000)
    *_, row = gate_rates.rules().splitlines()
    powers = [int(cell.split(" %")[0]) for cell in row.strip("| ").split(" | ")[3:]]
    assert powers[1] >= powers[0] - 6
    assert powers[2] < powers[0] - 25
