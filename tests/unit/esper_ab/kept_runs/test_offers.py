"""Runs that one experiment keeps are offered to the next one, if they are the same runs."""

import msgspec
import pytest
from msgspec.structs import replace
from support.journals.kept_experiments import COST, MACHINE, POLICY, finished_experiment, groups_of, synthetic

from esper_ab.kept_runs.eligible import eligible_groups
from esper_ab.kept_runs.folder import stored_files
from esper_ab.kept_runs.keeping import keep_runs
from esper_ab.kept_runs.offers import find_offers
from esper_ab.settings.references import References


@pytest.fixture
def kept(tmp_path):
    """The folder in which an experiment of groups a and b has kept six seeds."""
    folder = tmp_path / "kept runs"
    assert keep_runs(finished_experiment(tmp_path / "earlier", folder, synthetic())) == 12
    return folder


def offered(folder, experiment, plan=None):
    references = References(folder=folder, limit_bytes=10**9)
    return find_offers(plan or experiment.plan(), MACHINE, COST, None, references, ())


def names(offers):
    return [run.run_name for run in offers.runs if not run.check]


def test_all_but_the_first_seed_are_offered_for_reuse(kept):
    offers = offered(kept, synthetic())
    assert [run.run_name for run in offers.runs if run.check] == ["a/0", "b/0"]
    assert names(offers) == [f"{group}/{seed}" for group in "ab" for seed in range(1, 6)]
    assert set(offers.policies) == {f"reused/{name}.pt" for name in names(offers)}
    assert set(offers.policies.values()) == {POLICY}
    assert offers.saved_s == pytest.approx(100 * 10 / 12)


def test_more_seeds_and_looks_do_not_matter(kept):
    offers = offered(kept, synthetic(replicates=10, settings={"looks": (8, 10)}))
    assert names(offers) == [f"{group}/{seed}" for group in "ab" for seed in range(1, 6)]


def test_fewer_seeds_need_fewer(kept):
    assert names(offered(kept, synthetic(replicates=3))) == ["a/1", "a/2", "b/1", "b/2"]


def test_the_name_of_a_group_and_other_groups_do_not_matter(kept):
    shapes = synthetic().groups
    renamed = replace_groups(synthetic(), {"new": shapes["b"], "old": shapes["a"]})
    assert names(offered(kept, renamed)) == [f"{group}/{seed}" for group in ("new", "old") for seed in range(1, 6)]


def replace_groups(experiment, groups):
    return type(experiment)(groups=groups, replicates=6, episodes=2, eval_episodes=4)


@pytest.mark.parametrize(
    "changes",
    [{"rng_seed": 12}, {"episodes": 3}, {"steps": 24}, {"eval_episodes": 8}, {"n_envs": 2}],
    ids=lambda changes: next(iter(changes)),
)
def test_another_setting_misses(kept, changes):
    experiment = synthetic()
    other = type(experiment)(**{**{"groups": experiment.groups, "episodes": 2, "eval_episodes": 4}, **changes})
    assert offered(kept, other).runs == ()


def test_another_setting_of_a_group_misses_only_there(kept):
    shapes = synthetic().groups
    other = replace_groups(synthetic(), {"a": shapes["a"], "b": type(shapes["b"])(mode="sparse")})
    assert names(offered(kept, other)) == [f"a/{seed}" for seed in range(1, 6)]


def test_a_damaged_file_is_passed_over(kept):
    damaged = stored_files(kept)[0].path
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    assert len(offered(kept, synthetic()).runs) in (11, 6)  # 6: it was a first seed, so its group is left out


def test_files_that_are_none_of_ours_are_passed_over(kept):
    for file in stored_files(kept)[:6]:
        file.path.write_bytes(b"\xff not JSON")
    (kept / "00").mkdir(exist_ok=True)
    (kept / "00" / f"{'0' * 64}-{'0' * 16}.run").symlink_to("/dev/zero")
    assert len(offered(kept, synthetic()).runs) <= 6


def test_an_empty_folder_offers_nothing(tmp_path):
    offers = offered(tmp_path / "nosuch", synthetic())
    assert (offers.runs, offers.saved_s, set(offers.opened.groups)) == ((), 0.0, {"a", "b"})


def test_one_kept_seed_saves_nothing(tmp_path):
    keep_runs(finished_experiment(tmp_path / "earlier", tmp_path / "kept", synthetic(replicates=1)))
    assert offered(tmp_path / "kept", synthetic()).runs == ()


def test_the_check_is_the_first_seed_that_is_kept(kept, tmp_path):
    """A file of the first seed was removed, as by the limit of the folder."""
    first = next(file for file in stored_files(kept) if b'"name":"a/0"' in file.path.read_bytes())
    first.path.unlink()
    offers = offered(kept, synthetic())
    assert [run.run_name for run in offers.runs if run.check] == ["b/0"]
    assert names(offers) == [f"b/{seed}" for seed in range(1, 6)]


def other_conditions(groups, **conditions):
    return {name: replace(group, conditions={**group.conditions, **conditions}) for name, group in groups.items()}


def kept_under(tmp_path, folder, name, *, repeats, **conditions):
    experiment = synthetic()
    changed = next(iter(other_conditions(groups_of(experiment), **conditions).values())).conditions
    keep_runs(finished_experiment(tmp_path / name, folder, experiment, repeats=repeats, conditions=changed))


def test_runs_that_repeat_are_offered_whatever_their_conditions(tmp_path):
    kept_under(tmp_path, tmp_path / "kept", "earlier", repeats=True, processor="another")
    offers = offered(tmp_path / "kept", synthetic())
    assert len(names(offers)) == 10
    assert {run.other_conditions for run in offers.runs} == {("processor",)}


def test_runs_under_the_conditions_of_now_come_first(kept, tmp_path):
    kept_under(tmp_path, kept, "other", repeats=True, processor="another")
    offers = offered(kept, synthetic())
    assert {run.source for run in offers.runs} == {"synthetic"}
    assert {run.other_conditions for run in offers.runs} == {()}


@pytest.fixture
def unrepeatable(monkeypatch):
    """Plans of which the rehearsal found that a seed does not repeat."""

    def groups(*arguments):
        found, refused = eligible_groups(*arguments)
        return {name: replace(group, repeats=False) for name, group in found.items()}, refused

    monkeypatch.setattr("esper_ab.kept_runs.offers.eligible_groups", groups)


@pytest.mark.usefixtures("unrepeatable")
def test_runs_that_do_not_repeat_are_offered_without_a_check(tmp_path):
    kept_under(tmp_path, tmp_path / "kept", "earlier", repeats=False)
    offers = offered(tmp_path / "kept", synthetic())
    assert not any(run.check for run in offers.runs)
    assert len(names(offers)) == 12


@pytest.mark.usefixtures("unrepeatable")
def test_runs_that_do_not_repeat_need_equal_conditions(tmp_path):
    kept_under(tmp_path, tmp_path / "kept", "earlier", repeats=False, packages="others", processor="another")
    offers = offered(tmp_path / "kept", synthetic())
    assert offers.runs == ()
    assert offers.opened.refused == tuple(
        f"Kept runs of {name} are not reused: a seed does not repeat to the bit, and they were trained with other "
        "processor and packages."
        for name in "ab"
    )


@pytest.mark.usefixtures("unrepeatable")
def test_runs_that_once_repeated_are_not_offered_where_seeds_do_not_repeat(kept):
    assert offered(kept, synthetic()).runs == ()


def test_seeds_beyond_the_plan_are_offered_to_one_without_maximum(kept):
    plan = synthetic(replicates=2).plan()
    open_ended = msgspec.structs.replace(plan, experiment=replace(plan.experiment, open_ended=True))
    assert names(offered(kept, synthetic(), open_ended)) == [
        f"{group}/{seed}" for group in "ab" for seed in range(1, 6)
    ]


def test_runs_of_other_files_are_not_mixed_with_these(kept, tmp_path):
    """The first seeds were trained again after a file that no digest sees was changed."""
    shapes = synthetic().groups
    changed = {name: type(shape)(mode=shape.mode, stream="changed") for name, shape in shapes.items()}
    other = type(synthetic())(groups=changed, replicates=3, episodes=2, eval_episodes=4)
    keep_runs(finished_experiment(tmp_path / "later", kept, other))
    offers = offered(kept, synthetic())
    assert names(offers) == ["a/1", "a/2", "b/1", "b/2"]
    assert all(record.digest.startswith("changed") for run in offers.runs for record in run.episodes)
