"""The registries of claims: what is sealed stays, one error rate covers each, and the pages show what is stored."""

import json
import re

import claims
import pytest
from claim_answers import Judged, Level, answer_to, levels, shown
from claim_details import details
from claim_pages import row, table, totals
from claim_picture import answered, write_picture
from claim_registry import REGISTRIES, Registry, StoredClaim
from claims import Refused

from esper_ab.settings.claim_table import read_claim
from esper_ab.settings.parts import parse_parts
from esper_ab.settings.request import read_request
from esper_ab.settings.settings_file import read_toml
from esper_ab.verdict.scale import MEAN

FIELD, OWN = REGISTRIES
ALL = [claim for registry in REGISTRIES for claim in registry.claims]
SEALED = [claim for claim in ALL if claim.stored("seal.json") is not None]
each_registry = pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.folder.name)


@each_registry
def test_the_claims_of_a_registry_share_one_error_rate(registry):
    assert 0 < len(registry.claims) <= registry.most_claims
    assert {claim.settings["alpha"] for claim in registry.claims} == {registry.alpha}
    assert registry.alpha * registry.most_claims == pytest.approx(0.05)


def test_no_two_claims_have_one_name():
    assert len({claim.name for claim in ALL}) == len(ALL)


@pytest.mark.parametrize("claim", ALL, ids=lambda claim: claim.name)
def test_a_claim_can_be_launched_and_says_where_it_comes_from(claim):
    parts = parse_parts(read_request({}, read_toml(claim.file)))
    first_group, _, second_group = claim.condition
    assert {first_group, second_group} <= {group.name for group in parts[0].asked.groups}
    declared = read_claim(claim.settings["claim"], claim.name)
    assert declared.source
    assert declared.source_says
    assert declared.margin_reason
    assert declared.core_minutes is not None


@pytest.mark.parametrize("claim", FIELD.claims, ids=lambda claim: claim.name)
def test_a_claim_of_the_field_is_about_two_groups_on_several_tasks(claim):
    parts = parse_parts(read_request({}, read_toml(claim.file)))
    assert len(parts) >= 2
    assert len(parts[0].asked.groups) == 2


@pytest.mark.parametrize("claim", SEALED, ids=lambda claim: claim.name)
def test_the_files_of_a_sealed_claim_are_those_that_were_sealed(claim):
    assert claim.stored("seal.json")["claim_sha256"] == claim.sha256


@each_registry
def test_the_page_shows_what_is_stored(registry):
    assert "\n".join([*table(registry), "", totals(registry)]) in registry.page.read_text()


@each_registry
def test_corrections_are_about_sealed_claims_and_differ_from_them(registry):
    claims_by_name = {claim.name: claim for claim in registry.claims}
    for name, correction in registry.corrections.items():
        assert claims_by_name[name].stored("seal.json") is not None
        assert {*correction} <= {"source", "source_says"}
        about = claims_by_name[name].settings["claim"]
        assert all(text != about[key] for key, text in correction.items())


ANSWERED = [
    pytest.param(registry, claim, id=claim.name)
    for registry in REGISTRIES
    for claim in registry.claims
    if claim.stored("result.json") is not None
]


@pytest.mark.parametrize(("registry", "claim"), ANSWERED)
def test_the_page_of_a_claim_shows_what_is_stored(registry, claim):
    assert (claim.folder / "README.md").read_text() == "\n".join(details(registry, claim)) + "\n"


def texts(svg):
    """Return the texts of a picture; their places depend on the version of matplotlib."""
    return re.findall(r">([^<>]+)</text>", svg)


@each_registry
def test_the_picture_shows_what_is_stored(registry, tmp_path):
    write_picture(registry, tmp_path / "answers.svg")
    stored = texts(registry.picture.read_text())
    assert texts((tmp_path / "answers.svg").read_text()) == stored
    assert {answer for _, answer, _ in answered(registry)} <= {*stored}


def test_the_page_shows_what_a_source_says_as_corrected(claim):
    registry = Registry(claim.folder.parent, most_claims=1, verdicts_header="")
    assert claim.settings["claim"]["source_says"] in table(registry)[-1]
    (claim.folder.parent / "corrections.toml").write_text('[gae-lambda]\nsource_says = "nothing"\n')
    assert table(registry)[-1].endswith("| nothing |")


def test_the_totals_count_answers_and_sum_their_cost(claim):
    registry = Registry(claim.folder.parent, most_claims=1, verdicts_header="")
    assert totals(registry).startswith("1 claims (not run: 1), 0.0 core hours. On 0 of 0 tasks ")
    store_answer(claim, CONDITIONS | {"better-than": True}, "BETTER", ["BETTER", "INCONCLUSIVE"])
    assert totals(registry).startswith("1 claims (holds: 1), 0.2 core hours. On 1 of 2 tasks ")


@pytest.fixture
def claim(tmp_path):
    """A copy of a claim's question, not sealed."""
    folder = tmp_path / "gae-lambda"
    folder.mkdir()
    (folder / "claim.toml").write_bytes((FIELD.folder / folder.name / "claim.toml").read_bytes())
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


def test_a_trainer_that_claims_share_is_sealed_with_each_of_them(claim):
    sha256 = claim.sha256
    with claim.file.open("r+") as file:
        settings = file.read()
        file.seek(0)
        file.write(f'trainer = "../trainer.py:train"\n{settings}')
    trainer = claim.folder.parent / "trainer.py"
    trainer.write_text("a")
    sealed = claim.sha256
    trainer.write_text("b")
    assert len({sha256, sealed, claim.sha256}) == 3


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
        ("not-worse-than", "not-worse-than", "INCONCLUSIVE", [], "holds"),
        ("not-worse-than", "worse-than", "WORSE", [], "the opposite holds"),
        ("not-worse-than", None, "INCONCLUSIVE", [], "open"),
    ],
)
def test_the_answer_to_a_claim_follows_from_the_conditions_that_its_verdicts_meet(
    claim, relation, met, over_all, on_tasks, answer
):
    text = claim.file.read_text()
    claim.file.write_text(text.replace(f" {claim.condition[1]} ", f" {relation} "))
    conditions = CONDITIONS | {relation: False} | ({met: True} if met else {})
    judged = Judged({"verdict": over_all}, [{"verdict": verdict} for verdict in on_tasks], [])
    assert answer_to(claim, conditions, judged) == answer


# Standard deviations of 3 and 1 on the first task, and twice 1 on the second.
FIRST_PAIRS = [{"a": 497.0, "b": 259.5}, {"a": 500.0, "b": 260.5}, {"a": 503.0, "b": 261.5}]
SECOND_PAIRS = [{"a": -497.0, "b": -85.0}, {"a": -496.0, "b": -84.0}, {"a": -495.0, "b": -86.0}]


def store_answer(claim, conditions, over_all, on_tasks):
    """Store the files of an answer in the folder of a claim."""
    claim.store("seal.json", {"sealed": "2026-11-30T09:00:00+00:00"})
    claim.store("result.json", {"core_minutes": 12.3, "conditions": conditions})
    groups = {"a": "lambda95", "b": "lambda90"}
    tasks = zip(("gym:CartPole-v1", "gym:Acrobot-v1"), (FIRST_PAIRS, SECOND_PAIRS), on_tasks, strict=False)
    of_tasks = [groups | {"task": task, "pairs": pairs, "verdict": verdict} for task, pairs, verdict in tasks]
    of_all = groups | {"task": MEAN, "verdict": over_all, "estimate": -0.5, "low": -0.9, "high": -0.1, "used": 40}
    claim.store("verdict.json", {"judged": {"comparisons": [*of_tasks, of_all]}})


def test_a_row_tells_an_answer_from_a_claim_that_has_not_run(claim):
    assert "| not sealed |" in row(claim, "nothing")
    claim.store("seal.json", {"sealed": "2026-11-30T09:00:00+00:00"})
    assert "| sealed, not run |" in row(claim, "nothing")
    store_answer(claim, CONDITIONS | {"worse-than": True}, "WORSE", ["INCONCLUSIVE"])
    cells = [cell.strip() for cell in row(claim, "nothing").split("|")][2:-1]
    assert cells == [
        "**the opposite holds** on the mean; shown on 0 of 1 tasks",
        "-0.50 [-0.90, -0.10]",
        "CartPole INCONCLUSIVE",
        "40",
        "12.3",
        "2026-11-30",
        "nothing",
    ]


def test_on_one_task_a_claim_is_judged_by_its_own_groups_in_units_of_its_margin(claim):
    own = {"a": "lambda95", "b": "lambda90", "verdict": "BETTER", "margin": 4.0, "estimate": 6.0, "used": 15}
    other = {"a": "lambda95", "b": "lambda99", "verdict": "EQUIVALENT"}
    judged = Judged.of(claim, {"comparisons": [other, own | {"low": 2.0, "high": None}]})
    assert [judged.own[key] for key in ("estimate", "low", "high")] == [1.5, 0.5, None]
    assert judged.verdicts == "lambda95 - lambda90 BETTER; lambda95 - lambda99 EQUIVALENT"


def test_the_estimate_counts_a_device_once_though_several_runs_share_it():
    lanes = [{"devices": ["cpu:0"]}, {"devices": ["cpu:1"]}, {"devices": ["cpu:0"]}]
    plan = {"estimate": {"duration_s": 90.0}, "plan": {"lanes": lanes}}
    assert claims.estimated_core_minutes({"parts": [plan, plan]}) == 6.0


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
    of_its_run = folder / "runs" / "a" / "0" / "own"
    of_its_run.mkdir(parents=True)
    for directory in (folder, of_its_run):
        (directory / "events.jsonl").write_text("\n".join(lines) + "\n")
    result = claims.result_of(tmp_path)
    assert (result["core_minutes"], result["runs"], result["processor"]) == (1.6, 1, "made up")
    assert (result["began"], result["ended"]) == ("2026-11-30T09:00:00", "2026-11-30T09:03:00")


@each_registry
def test_the_folders_of_a_registry_hold_claims_only(registry):
    folders = {path.name for path in registry.folder.iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders == {claim.name for claim in registry.claims}


def test_only_claims_without_an_answer_run_unless_they_are_named(claim, monkeypatch, capsys):
    monkeypatch.setattr(claims, "REGISTRIES", (Registry(claim.folder.parent, most_claims=1, verdicts_header=""),))
    claim.store("result.json", {})
    monkeypatch.setattr("sys.argv", ["claims", "run"])
    assert claims.main() == 0
    monkeypatch.setattr("sys.argv", ["claims", "run", claim.name])
    assert claims.main() == 2
    assert "not sealed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("met", "over_all", "on_tasks", "words"),
    [
        ("better-than", "BETTER", ["BETTER", "BETTER"], " on each of 2 tasks"),
        ("better-than", "BETTER", ["BETTER", "EQUIVALENT"], " on the mean; shown on 1 of 2 tasks"),
        (
            "better-than",
            "BETTER",
            ["BETTER", "BETTER, BELOW MARGIN"],
            " on each of 2 tasks, on Acrobot by less than a margin",
        ),
        (
            "worse-than",
            "WORSE, BELOW MARGIN",
            ["WORSE", "INCONCLUSIVE"],
            " on the mean, by less than a margin; shown on 1 of 2 tasks",
        ),
        (None, "EQUIVALENT", ["WORSE", "EQUIVALENT"], "; WORSE on CartPole"),
        (None, "INCONCLUSIVE", ["BETTER", "WORSE"], ""),
        (None, "INCONCLUSIVE", ["INCONCLUSIVE", "EQUIVALENT"], ""),
    ],
)
def test_an_answer_says_on_how_many_tasks_it_is_shown_and_which_task_differs(claim, met, over_all, on_tasks, words):
    conditions = CONDITIONS | ({met: True} if met else {})
    store_answer(claim, conditions, over_all, on_tasks)
    assert shown(claim, conditions, Judged.stored(claim)) == words


def test_the_outcomes_of_groups_are_placed_on_the_way_from_random_to_good(claim):
    store_answer(claim, CONDITIONS, "BETTER", ["BETTER", "WORSE"])
    first, second = Judged.stored(claim).on_tasks
    assert levels(claim, first) == [Level("lambda95", 500.0, 3.0, 1.0), Level("lambda90", 260.5, 1.0, 0.5)]
    assert [level.near for level in levels(claim, first)] == ["near good", ""]
    assert [level.near for level in levels(claim, second)] == ["near random", "near good"]
