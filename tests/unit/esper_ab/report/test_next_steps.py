"""Steps that fit the state and the verdict, whose commands are accepted."""

import shlex
from dataclasses import replace

import msgspec
import pytest
from support.journals.ready_journals import failed_run, one_replicate, planted_effect, same_twice, three_groups
from support.journals.synthetic import Shape, Synthetic

from esper_ab.campaign.extending import extension
from esper_ab.design.check import check_design
from esper_ab.design.pairs_needed import PairsNeeded
from esper_ab.journal.fold import fold
from esper_ab.plan.budget import ENOUGH_EPISODES
from esper_ab.plan.text import question
from esper_ab.report.content import Content, content
from esper_ab.report.experiment import render_brief
from esper_ab.report.next_steps import next_steps
from esper_ab.report.verdicts import verdicts
from esper_ab.settings.experiment import ResolvedExperiment

ANEW = "esper-ab launch 'a folder/x/experiment.toml'"


def open_ones():
    return Synthetic(groups={"left": Shape(), "right": Shape()}).events()


def constant():
    ends = {"a": 74.0, "b": 69.0}
    return Synthetic(groups={name: Shape(accuracy=end, stream="x") for name, end in ends.items()}).events()


JOURNALS = {
    "constant": constant,
    "better": planted_effect,
    "identical": same_twice,
    "one seed": one_replicate,
    "three groups": three_groups,
    "failed": failed_run,
    "running": lambda: planted_effect()[:9],
    "open": open_ones,
}


def found(name: str) -> Content:
    return content(fold(JOURNALS[name]()), place="a folder/x")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("better", f"{ANEW} --rng-seed 12 --name synthetic-again"),
        ("identical", ""),
        ("one seed", f"{ANEW} --seeds 12 --rng-seed 12 --name synthetic-larger"),
        ("failed", "esper-ab resume 'a folder/x'"),
        ("running", "esper-ab status 'a folder/x' --follow"),
    ],
)
def test_the_next_step_fits_what_came_out(name, command):
    assert next_steps(found(name))[0].command == command


def test_a_new_plan_has_other_randomness_than_the_runs_that_led_to_it():
    """Else runs that looked promising would count twice, and false claims would be more frequent than alpha."""
    shown = found("one seed")
    anew = [step.command for name in JOURNALS for step in next_steps(found(name)) if "launch" in step.command]
    assert len(anew) > 2
    assert all(f"--rng-seed {shown.experiment.rng_seed + 1}" in command for command in anew)


def test_a_seed_that_changes_the_outcomes_is_not_doubted_where_every_pair_differs_by_the_same_amount():
    shown = found("constant")
    (compared,) = shown.comparisons
    assert compared.constant
    assert not compared.unmoved
    said = " ".join((*compared.caveats, *(step.sentence for step in next_steps(shown))))
    assert f"Every pair differs by {compared.constant}, and so would further pairs" in said
    assert "check that the seed" not in said


def test_the_log_of_a_failed_run_is_proposed_before_more_runs():
    shown = found("one seed")
    name, run = next(iter(shown.history.runs.items()))
    history = replace(shown.history, runs=shown.history.runs | {name: replace(run, failed=True)})
    first, second = next_steps(replace(shown, history=history))
    assert first.command == f"esper-ab logs 'a folder/x' {name}"
    assert "--seeds 12" in second.command


@pytest.mark.parametrize(
    ("episodes", "command"),
    [
        (8, f"{ANEW} --outcome-over curve-mean --rng-seed 12 --name synthetic-training"),
        (1, ""),  # as of a command, of which `--outcome-over curve-mean` and `--episodes` are refused
    ],
)
def test_mostly_equal_pairs_lead_to_another_question_not_to_more_pairs(episodes, command):
    shown = found("open")
    changed = msgspec.structs.replace
    started = shown.history.started
    plan = changed(started.plan, experiment=changed(started.plan.experiment, episodes=episodes))
    history = replace(shown.history, started=changed(started, plan=plan))
    (item,) = shown.comparisons
    altered = replace(item, effect=changed(item.effect, se=None, t=None, p=None), pairs_needed=None, pairs_anew=None)
    (step,) = next_steps(replace(shown, history=history, analysis=replace(shown.analysis, comparisons=(altered,))))
    assert "on a harder task" in step.sentence
    assert (step.command, "--episodes" in step.sentence) == (command, episodes > 1)


def test_the_first_step_is_the_one_that_trains_fewer_pairs():
    """An extension follows a stricter rule and keeps the pairs that are there; a new plan begins without any."""
    shown = found("open")
    (item,) = shown.comparisons
    there = shown.history.replicates
    for extended, anew in ((there + 9, there + 5), (there + 175, there + 60)):
        here, other = (PairsNeeded(margin=2.0, alpha=0.05, pairs=n, low=n, high=n) for n in (extended, anew))
        altered = replace(item, pairs_needed=here, pairs_anew=other)
        steps = next_steps(replace(shown, analysis=replace(shown.analysis, comparisons=(altered,))))
        commands = [f"esper-ab resume 'a folder/x' --seeds {extended}", f"{ANEW} --seeds {anew} "]
        commands = commands if extended - there < anew else commands[::-1]
        assert [step.command.startswith(said) for step, said in zip(steps, commands, strict=False)] == [True, True]


@pytest.mark.parametrize(
    ("how", "settled"),
    [
        ({"head_entropy": 0.95}, False),
        ({"head_entropy": 0.3, "sampled": 60.0, "greedy": 80.0}, False),
        ({"head_entropy": 0.3, "sampled": 80.0, "greedy": 60.0}, True),  # more of the same does not mend that
        ({"head_entropy": 0.3, "sampled": 80.0, "greedy": 81.0}, True),
    ],
)
def test_before_more_pairs_policies_that_have_not_settled_are_trained_longer(how, settled):
    shown = found("open")
    learned = [msgspec.structs.replace(one, **how) for one in shown.analysis.learning]
    first = next_steps(replace(shown, analysis=replace(shown.analysis, learning=tuple(learned))))[0]
    episodes = shown.history.plan.experiment.episodes
    assert (f"--episodes {4 * episodes}" in first.command) is not settled
    assert ("left and right have not settled" in first.sentence) is not settled


def test_after_a_quick_look_at_rewards_the_next_plan_has_the_budget_at_which_they_differ_at_once():
    """Not four times the episodes again and again, and whether or not the policies have settled."""
    shown = content(fold(Synthetic(groups={"a": Shape(mode="shaped"), "b": Shape(mode="sparse")}).events()), place="x")
    steps = next_steps(shown)
    enough = -(-ENOUGH_EPISODES // shown.experiment.n_envs)
    assert f"--episodes {enough} " in steps[0].command
    started = shown.history.started
    changed = msgspec.structs.replace
    plan = changed(started.plan, experiment=changed(shown.experiment, episodes=enough))
    trained = replace(shown, history=replace(shown.history, started=changed(started, plan=plan)))
    assert not any(str(ENOUGH_EPISODES) in step.sentence for step in next_steps(trained))


@pytest.mark.parametrize(
    ("name", "following"),
    [
        ("x", "x-larger"),
        ("x-longer", "x-larger-2"),
        ("x-larger-2", "x-larger-3"),
        ("x-longer-y", "x-longer-y-larger"),
        ("longer", "longer-larger"),
        ("x-2", "x-2-larger"),
    ],
)
def test_names_of_plans_that_follow_one_another_count_on_and_do_not_grow(name, following):
    shown = found("one seed")
    changed = msgspec.structs.replace
    started = shown.history.started
    plan = changed(started.plan, experiment=changed(started.plan.experiment, name=name))
    (step,) = next_steps(replace(shown, history=replace(shown.history, started=changed(started, plan=plan))))
    assert step.command.endswith(f" --name {following}")


@pytest.mark.parametrize(
    ("controller", "mode", "same"),
    [
        ("ppo", "shaped", True),
        ("ppo", "sparse", False),
        ("wait", "sparse", True),  # which reads no reward
    ],
)
def test_after_equal_records_it_matters_whether_the_settings_that_a_group_reads_are_equal(controller, mode, same):
    groups = {name: Shape(stream="one", controller=controller, mode=of) for name, of in (("a", "shaped"), ("b", mode))}
    shown = content(fold(Synthetic(groups=groups, replicates=1).events()), place="a folder/x")
    (step,) = next_steps(shown)
    assert ("the settings make the same computation" in step.sentence) is same
    assert step.command == ("" if same else f"{ANEW} --episodes 32 --rng-seed 12 --name synthetic-longer")
    assert ("the same computation" in shown.comparisons[0].headline) is same


RULES = {
    "t": {},
    "looks": {"looks": (8, 20)},
    "one look": {"looks": (20,)},
    "futility": {"futility": 0.8, "margin": 1.3},
    "futility, looks": {"futility": 0.8, "looks": (8, 14, 20)},
    "no early stop": {"early_stop": False},
    "three groups": {"alpha": 0.01},
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("rng_seed", range(1, 5))
def test_proposed_commands_are_accepted(name, rng_seed, tmp_path):
    """`resume` by the rule of the experiment, `launch` with the settings of its file and the flags beside it."""
    names = ("left", "right", "third")[: 3 if name == "three groups" else 2]
    made = Synthetic(
        groups={one: Shape() for one in names},
        replicates=20,
        episodes=2,
        n_envs=2,
        eval_episodes=2,
        rng_seed=rng_seed,
        settings=RULES[name],
    )
    history = fold(made.events())
    shown = content(history, place=str(tmp_path))
    for command in [step.command for step in next_steps(shown) if step.command]:
        _, verb, *words = shlex.split(command)
        if verb == "resume":
            assert extension(tmp_path, history, int(words[-1])).blocks
            continue
        assert words[0] == f"{tmp_path}/experiment.toml"
        flags = dict(zip(words[1::2], words[2::2], strict=True))
        changes = {flag.removeprefix("--").replace("-", "_"): value for flag, value in flags.items()}
        if "looks" in changes:
            changes["looks"] = tuple(map(int, changes["looks"].split(",")))
        asked = msgspec.convert(msgspec.to_builtins(made.plan().experiment) | changes, ResolvedExperiment, strict=False)
        check_design(asked)


def test_an_experiment_stopped_for_futility_is_proposed_no_extension():
    made = Synthetic(
        groups={"left": Shape(), "right": Shape()},
        replicates=20,
        episodes=2,
        n_envs=2,
        eval_episodes=2,
        rng_seed=5,
        settings=RULES["futility"],
    )
    for rng_seed in range(1, 40):
        shown = content(fold(replace(made, rng_seed=rng_seed).events()), place="a folder/x")
        if shown.comparisons[0].inconclusive == "futile":
            break
    (step,) = next_steps(shown)
    assert step.command == f"{ANEW} --seeds 20 --futility 0 --rng-seed 2 --name synthetic-whole"


@pytest.mark.parametrize("name", JOURNALS)
def test_a_terminal_is_left_with_question_answer_report_and_the_next_step(name):
    shown = found(name)
    lines = render_brief(shown, "x/report.html").splitlines()
    brief = " ".join(" ".join(lines).split())
    assert all(one.headline in brief for one in verdicts(shown).cards)
    assert "report: x/report.html" in brief
    asked = question(shown.history.plan)
    assert brief.startswith(asked) or not shown.state.complete
    assert asked in brief
    steps = next_steps(shown)
    assert brief.endswith(steps[0].command or steps[0].sentence)
    assert len(lines) <= 20
