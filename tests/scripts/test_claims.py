"""The registry of claims: what is sealed stays, one error rate covers all, and the page shows what is stored."""

import json

import claims
import pytest
from claims import ALPHA, CLAIMS, MOST_CLAIMS, Refused, StoredClaim

from esper_ab.settings.claim_table import read_claim
from esper_ab.settings.parts import parse_parts
from esper_ab.settings.request import read_request
from esper_ab.settings.settings_file import read_toml
from esper_ab.verdict.scale import MEAN

ALL = claims.all_claims()
SEALED = [claim for claim in ALL if claim.stored("seal.json") is not None]


def test_the_claims_share_one_error_rate():
    assert 0 < len(ALL) <= MOST_CLAIMS
    assert {claim.settings["alpha"] for claim in ALL} == {ALPHA / MOST_CLAIMS}


@pytest.mark.parametrize("claim", ALL, ids=lambda claim: claim.name)
def test_a_claim_can_be_launched_and_says_where_it_comes_from(claim):
    parts = parse_parts(read_request({}, read_toml(claim.file)))
    assert len(parts) >= 2
    assert len(parts[0].asked.groups) == 2
    declared = read_claim(claim.settings["claim"], claim.name)
    assert declared.source
    assert declared.source_says
    assert declared.margin_reason
    assert declared.holds_if
    assert declared.core_minutes is not None


@pytest.mark.parametrize("claim", SEALED, ids=lambda claim: claim.name)
def test_the_files_of_a_sealed_claim_are_those_that_were_sealed(claim):
    assert claim.stored("seal.json")["claim_sha256"] == claim.sha256


def test_the_page_shows_what_is_stored():
    page = claims.PAGE.read_text()
    assert "\n".join(claims.table()) in page


@pytest.fixture
def claim(tmp_path):
    """A copy of a claim's question, not sealed."""
    folder = tmp_path / "gae-lambda"
    folder.mkdir()
    (folder / "claim.toml").write_bytes((CLAIMS / folder.name / "claim.toml").read_bytes())
    return StoredClaim(folder)


def test_a_claim_that_is_not_sealed_does_not_run(claim, tmp_path):
    with pytest.raises(Refused, match="not sealed; run scripts/claims seal"):
        claims.run(claim, tmp_path / "experiments")


def test_a_sealed_claim_does_not_run_with_other_settings(claim, tmp_path):
    claim.store("seal.json", {"claim_sha256": claim.sha256, "sealed": "2026-11-30T09:00:00+00:00"})
    with claim.file.open("a") as file:
        file.write("\n[group.other]\n")
    with pytest.raises(Refused, match="differ from the sealed ones"):
        claims.run(claim, tmp_path / "experiments")


def test_modules_beside_a_claim_are_sealed_with_it(claim):
    sha256 = claim.sha256
    (claim.folder / "rewards.py").write_text("")
    assert claim.sha256 != sha256


CONDITIONS = {"better-than": False, "worse-than": False, "equivalent-to": False}


@pytest.mark.parametrize(
    ("relation", "met", "over_all", "on_tasks", "answer"),
    [
        ("better-than", "better-than", "BETTER", ["BETTER", "INCONCLUSIVE"], "holds"),
        ("better-than", "worse-than", "WORSE", ["WORSE", "WORSE"], "the opposite holds"),
        ("better-than", "equivalent-to", "EQUIVALENT", ["EQUIVALENT", "EQUIVALENT"], "no difference that matters"),
        ("better-than", None, "BETTER", ["BETTER", "WORSE"], "depends on the task"),
        ("better-than", None, "EQUIVALENT", ["WORSE", "BETTER"], "depends on the task"),
        ("better-than", None, "EQUIVALENT", ["EQUIVALENT", "INCONCLUSIVE"], "no difference on the mean"),
        ("better-than", None, "INCONCLUSIVE", ["BETTER", "INCONCLUSIVE"], "open"),
        ("equivalent-to", "equivalent-to", "EQUIVALENT", ["EQUIVALENT", "EQUIVALENT"], "holds"),
        ("equivalent-to", "worse-than", "WORSE", ["WORSE", "EQUIVALENT"], "a difference"),
        ("equivalent-to", None, "INCONCLUSIVE", ["EQUIVALENT", "INCONCLUSIVE"], "open"),
    ],
)
def test_the_answer_to_a_claim_follows_from_the_conditions_that_its_verdicts_meet(
    claim, relation, met, over_all, on_tasks, answer
):
    text = claim.file.read_text()
    claim.file.write_text(text.replace(f" {claim.relation} ", f" {relation} "))
    conditions = CONDITIONS | ({met: True} if met else {})
    assert claims.answer_to(claim, conditions, over_all, on_tasks) == answer


def test_a_row_tells_an_answer_from_a_claim_that_has_not_run(claim):
    assert "| not sealed |" in claims.row(claim)
    claim.store("seal.json", {"sealed": "2026-11-30T09:00:00+00:00"})
    assert "| sealed, not run |" in claims.row(claim)
    claim.store("result.json", {"core_minutes": 12.3, "conditions": CONDITIONS | {"worse-than": True}})
    on_task = {"task": "gym:CartPole-v1", "verdict": "INCONCLUSIVE"}
    over_all = {"task": MEAN, "verdict": "WORSE", "estimate": -0.5, "low": -0.9, "high": -0.1, "used": 40}
    claim.store("verdict.json", {"judged": {"comparisons": [on_task, over_all]}})
    cells = [cell.strip() for cell in claims.row(claim).split("|")][2:8]
    assert cells == [
        "**the opposite holds**",
        "-0.50 [-0.90, -0.10]",
        "CartPole-v1 INCONCLUSIVE",
        "40",
        "12.3",
        "2026-11-30",
    ]


def test_the_cost_counts_warm_ups_episodes_and_evaluations(tmp_path):
    folder = tmp_path / "part"
    folder.mkdir()
    events = [
        {"kind": "experiment_started", "machine": {"processor": "made up"}, "versions": {}, "code": {}},
        {"kind": "run_ready", "warm_up_s": 6.0},
        {"kind": "episode", "record": {"timing": {"total_s": 60.0}}},
        {"kind": "evaluation", "record": {"timing": {"total_s": 30.0}}},
    ]
    lines = [json.dumps({"t": f"2026-11-30T09:0{minute}:00", "event": event}) for minute, event in enumerate(events)]
    (folder / "events.jsonl").write_text("\n".join(lines) + "\n")
    result = claims.result_of(tmp_path)
    assert (result["core_minutes"], result["runs"], result["processor"]) == (1.6, 1, "made up")
    assert (result["began"], result["ended"]) == ("2026-11-30T09:00:00", "2026-11-30T09:03:00")


def test_the_folders_of_the_registry_hold_claims_only():
    assert {path.name for path in CLAIMS.iterdir() if path.is_dir()} == {claim.name for claim in ALL}


def test_only_claims_without_an_answer_run_unless_they_are_named(claim, monkeypatch, capsys):
    monkeypatch.setattr(claims, "CLAIMS", claim.folder.parent)
    monkeypatch.setattr(claims, "ROOT", claim.folder.parent)
    claim.store("result.json", {})
    monkeypatch.setattr("sys.argv", ["claims", "run"])
    assert claims.main() == 0
    monkeypatch.setattr("sys.argv", ["claims", "run", claim.name])
    assert claims.main() == 2
    assert "not sealed" in capsys.readouterr().err
