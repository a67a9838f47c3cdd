"""What a plan says about kept runs."""

from msgspec.structs import replace
from support.journals.kept_experiments import COST, MACHINE, finished_experiment, synthetic

from esper_ab.kept_runs.keeping import keep_runs
from esper_ab.kept_runs.offers import find_offers
from esper_ab.kept_runs.words import as_json, in_plan, trained_on
from esper_ab.settings.references import References


def offers(folder):
    references = References(folder=folder, limit_bytes=10**9)
    return find_offers(synthetic().plan(), MACHINE, COST, None, references, ())


def test_a_plan_says_what_is_reused_and_saved(tmp_path):
    keep_runs(finished_experiment(tmp_path / "earlier", tmp_path / "kept", synthetic(groups=("a", "c"), replicates=4)))
    found = offers(tmp_path / "kept")
    day = found.runs[0].trained_at[:10]
    assert in_plan(found) == (
        f"Reuses 3 runs of a (trained {day}), if a/0, trained again, gives the same numbers. Saves about 25 s.",
    )
    assert as_json(found) == {
        "folder": str(tmp_path / "kept"),
        "reused": {"a": 3},
        "trained_again": ["a/0"],
        "saved_s": 25.0,
        "refused": [],
    }
    other_day = replace(found.runs[0], trained_at="2026-11-20T08:00:00+00:00")
    assert trained_on([found.runs[1], other_day]) == " to ".join(sorted({"2026-11-20", day}))


def test_a_plan_says_where_its_runs_will_be_kept(tmp_path):
    assert in_plan(offers(tmp_path / "kept")) == (
        f"No kept run fits this plan; its runs are kept in {tmp_path / 'kept'}.",
    )


def test_a_plan_says_why_nothing_is_kept(tmp_path):
    found = offers(tmp_path / "kept")
    refused = type(found)(opened=replace(found.opened, groups={}, refused=("No run is kept or reused: because.",)))
    assert in_plan(refused) == ("No run is kept or reused: because.",)
