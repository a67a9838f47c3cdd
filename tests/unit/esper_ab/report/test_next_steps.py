"""Suggested next steps fit the state and the verdict, and their commands are accepted."""

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


def open_comparison():
    return Synthetic(groups={"left": Shape(), "right": Shape()}).events()


def constant_differences():
    ends = {"a": 74.0, "b": 69.0}
    return Synthetic(groups={name: Shape(accuracy=end, stream="x") for name, end in ends.items()}).events()


JOURNALS = {
    "constant differences": constant_differences,
    "better": planted_effect,
    "identical": same_twice,
    "one seed": one_replicate,
    "three groups": three_groups,
    "failed": failed_run,
    "running": lambda: planted_effect()[:9],
    "open": open_comparison,
}


def make_content(name: str) -> Content:
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
def test_each_state_and_verdict_has_the_expected_next_step(name, command):
    assert next_steps(make_content(name))[0].command == command


def test_a_suggested_new_plan_uses_another_rng_seed():
    """Otherwise runs that looked promising would count twice and raise the rate of false claims above alpha."""
    report_content = make_content("one seed")
    new_plan_commands = [
        step.command for name in JOURNALS for step in next_steps(make_content(name)) if "launch" in step.command
    ]
    assert len(new_plan_commands) > 2
    assert all(f"--rng-seed {report_content.experiment.rng_seed + 1}" in command for command in new_plan_commands)


def test_constant_differences_do_not_raise_doubts_about_the_seed():
    report_content = make_content("constant differences")
    (comparison,) = report_content.comparisons
    assert comparison.constant
    assert not comparison.unmoved
    text = " ".join((*comparison.caveats, *(step.sentence for step in next_steps(report_content))))
    assert f"{comparison.constant}, and would be in further pairs" in text
    assert "check that the seed" not in text


def test_the_log_of_a_failed_run_is_suggested_before_more_runs():
    report_content = make_content("one seed")
    name, run = next(iter(report_content.history.runs.items()))
    history = replace(report_content.history, runs=report_content.history.runs | {name: replace(run, failed=True)})
    first_step, second_step = next_steps(replace(report_content, history=history))
    assert first_step.command == f"esper-ab logs 'a folder/x' {name}"
    assert "--seeds 12" in second_step.command


@pytest.mark.parametrize(
    ("episodes", "command"),
    [
        (8, f"{ANEW} --outcome-over curve-mean --rng-seed 12 --name synthetic-training"),
        (1, ""),  # like a command, which allows neither `--outcome-over curve-mean` nor `--episodes`
    ],
)
def test_a_harder_task_is_suggested_for_mostly_equal_pairs(episodes, command):
    report_content = make_content("open")
    replace_fields = msgspec.structs.replace
    first_event = report_content.history.started
    plan = replace_fields(first_event.plan, experiment=replace_fields(first_event.plan.experiment, episodes=episodes))
    history = replace(report_content.history, started=replace_fields(first_event, plan=plan))
    (item,) = report_content.comparisons
    altered_comparison = replace(
        item, effect=replace_fields(item.effect, se=None, t=None, p=None), pairs_needed=None, pairs_anew=None
    )
    (step,) = next_steps(
        replace(
            report_content,
            history=history,
            analysis=replace(report_content.analysis, comparisons=(altered_comparison,)),
        )
    )
    assert "on a harder task" in step.sentence
    assert (step.command, "--episodes" in step.sentence) == (command, episodes > 1)


def test_the_first_suggestion_is_the_one_that_trains_fewer_pairs():
    """An extension follows a stricter rule and keeps the existing pairs; a new plan starts without any."""
    report_content = make_content("open")
    (item,) = report_content.comparisons
    trained = report_content.history.replicates
    for extension_pairs, new_plan_pairs in ((trained + 9, trained + 5), (trained + 175, trained + 60)):
        pairs_needed, pairs_of_new_plan = (
            PairsNeeded(margin=2.0, alpha=0.05, pairs=n, low=n, high=n) for n in (extension_pairs, new_plan_pairs)
        )
        altered_comparison = replace(item, pairs_needed=pairs_needed, pairs_anew=pairs_of_new_plan)
        steps = next_steps(
            replace(report_content, analysis=replace(report_content.analysis, comparisons=(altered_comparison,)))
        )
        commands = [f"esper-ab resume 'a folder/x' --seeds {extension_pairs}", f"{ANEW} --seeds {new_plan_pairs} "]
        commands = commands if extension_pairs - trained < new_plan_pairs else commands[::-1]
        first_step, second_step = steps[:2]
        assert first_step.command.startswith(commands[0])
        assert second_step.command.startswith(commands[1])


@pytest.mark.parametrize(
    ("changes", "is_settled"),
    [
        ({"head_entropy": 0.95}, False),
        ({"head_entropy": 0.3, "sampled": 60.0, "greedy": 80.0}, False),
        ({"head_entropy": 0.3, "sampled": 80.0, "greedy": 60.0}, True),  # longer training does not help
        ({"head_entropy": 0.3, "sampled": 80.0, "greedy": 81.0}, True),
    ],
)
def test_more_training_is_suggested_before_more_pairs_for_unsettled_policies(changes, is_settled):
    report_content = make_content("open")
    learnings = [
        msgspec.structs.replace(group_learning, **changes) for group_learning in report_content.analysis.learning
    ]
    first_step = next_steps(
        replace(report_content, analysis=replace(report_content.analysis, learning=tuple(learnings)))
    )[0]
    episodes = report_content.history.plan.experiment.episodes
    assert (f"--episodes {4 * episodes}" in first_step.command) is not is_settled
    assert ("left and right have not settled" in first_step.sentence) is not is_settled


def test_a_short_comparison_of_rewards_leads_to_the_recommended_budget():
    """Instead of four times the episodes again and again, and whether or not the policies have settled."""
    report_content = content(
        fold(Synthetic(groups={"a": Shape(mode="shaped"), "b": Shape(mode="sparse")}).events()), place="x"
    )
    steps = next_steps(report_content)
    enough_episodes = -(-ENOUGH_EPISODES // report_content.experiment.n_envs)
    assert f"--episodes {enough_episodes} " in steps[0].command
    first_event = report_content.history.started
    replace_fields = msgspec.structs.replace
    plan = replace_fields(
        first_event.plan, experiment=replace_fields(report_content.experiment, episodes=enough_episodes)
    )
    trained = replace(
        report_content, history=replace(report_content.history, started=replace_fields(first_event, plan=plan))
    )
    assert not any(str(ENOUGH_EPISODES) in step.sentence for step in next_steps(trained))


@pytest.mark.parametrize(
    ("name", "next_name"),
    [
        ("x", "x-larger"),
        ("x-longer", "x-larger-2"),
        ("x-larger-2", "x-larger-3"),
        ("x-longer-y", "x-longer-y-larger"),
        ("longer", "longer-larger"),
        ("x-2", "x-2-larger"),
    ],
)
def test_names_of_successive_plans_are_numbered(name, next_name):
    report_content = make_content("one seed")
    replace_fields = msgspec.structs.replace
    first_event = report_content.history.started
    plan = replace_fields(first_event.plan, experiment=replace_fields(first_event.plan.experiment, name=name))
    (step,) = next_steps(
        replace(report_content, history=replace(report_content.history, started=replace_fields(first_event, plan=plan)))
    )
    assert step.command.endswith(f" --name {next_name}")


@pytest.mark.parametrize(
    ("controller", "mode", "is_same_computation"),
    [
        ("ppo", "shaped", True),
        ("ppo", "sparse", False),
        ("wait", "sparse", True),  # which reads no reward
    ],
)
def test_equal_records_are_explained_by_equal_settings(controller, mode, is_same_computation):
    groups = {
        name: Shape(stream="one", controller=controller, mode=reward) for name, reward in (("a", "shaped"), ("b", mode))
    }
    report_content = content(fold(Synthetic(groups=groups, replicates=1).events()), place="a folder/x")
    (step,) = next_steps(report_content)
    assert ("the settings make the same computation" in step.sentence) is is_same_computation
    assert step.command == (
        "" if is_same_computation else f"{ANEW} --episodes 32 --rng-seed 12 --name synthetic-longer"
    )
    assert ("the same computation" in report_content.comparisons[0].headline) is is_same_computation


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
def test_suggested_commands_are_accepted(name, rng_seed, tmp_path):
    """Check `resume` by the rule of the experiment, and `launch` by its settings with the proposed flags."""
    names = ("left", "right", "third")[: 3 if name == "three groups" else 2]
    synthetic_experiment = Synthetic(
        groups={group: Shape() for group in names},
        replicates=20,
        episodes=2,
        n_envs=2,
        eval_episodes=2,
        rng_seed=rng_seed,
        settings=RULES[name],
    )
    history = fold(synthetic_experiment.events())
    report_content = content(history, place=str(tmp_path))
    for command in [step.command for step in next_steps(report_content) if step.command]:
        _, verb, *words = shlex.split(command)
        if verb == "resume":
            assert extension(tmp_path, history, int(words[-1])).blocks
            continue
        assert words[0] == f"{tmp_path}/experiment.toml"
        flags = dict(zip(words[1::2], words[2::2], strict=True))
        changes = {flag.removeprefix("--").replace("-", "_"): value for flag, value in flags.items()}
        if "looks" in changes:
            changes["looks"] = tuple(map(int, changes["looks"].split(",")))
        if "groups" in changes:
            changes["groups"] = [{"name": group, "settings": {}} for group in changes["groups"].split(",")]
            changes["untested"] = changes["untested"].split(",")
            del changes["placement"]  # "auto" is resolved before the design is made
        experiment = msgspec.convert(
            msgspec.to_builtins(synthetic_experiment.plan().experiment) | changes, ResolvedExperiment, strict=False
        )
        check_design(experiment)


def test_no_extension_is_suggested_after_a_stop_for_futility():
    synthetic_experiment = Synthetic(
        groups={"left": Shape(), "right": Shape()},
        replicates=20,
        episodes=2,
        n_envs=2,
        eval_episodes=2,
        rng_seed=5,
        settings=RULES["futility"],
    )
    for rng_seed in range(1, 40):
        report_content = content(fold(replace(synthetic_experiment, rng_seed=rng_seed).events()), place="a folder/x")
        if report_content.comparisons[0].inconclusive == "futile":
            break
    (step,) = next_steps(report_content)
    assert step.command == f"{ANEW} --seeds 20 --futility 0 --rng-seed 2 --name synthetic-whole"


@pytest.mark.parametrize("name", JOURNALS)
def test_the_brief_text_has_question_answer_and_next_step(name):
    report_content = make_content(name)
    lines = render_brief(report_content, "x/report.html").splitlines()
    brief_text = " ".join(" ".join(lines).split())
    assert all(card.headline in brief_text for card in verdicts(report_content).cards)
    assert "report: x/report.html" in brief_text
    question_text = question(report_content.history.plan)
    assert brief_text.startswith(question_text) or not report_content.state.complete
    assert question_text in brief_text
    steps = next_steps(report_content)
    assert brief_text.endswith(steps[0].command or steps[0].sentence)
    assert len(lines) <= 20


def test_a_trainer_that_fails_in_one_group_only_may_report_nan_instead():
    report_content = make_content("failed")
    history = report_content.history
    experiment = msgspec.structs.replace(history.plan.experiment, trainer="mine.py")
    history.started = msgspec.structs.replace(
        history.started, plan=msgspec.structs.replace(history.plan, experiment=experiment)
    )
    (step,) = next_steps(report_content)
    assert step.sentence.startswith("Fix what failed, then resume it. Or, if a setting just diverges, ")
    assert "--outcome-range" in step.sentence


def gymnasium_content(accuracies, **more_groups):
    groups = {name: Shape(accuracy=accuracy) for name, accuracy in accuracies.items()} | more_groups
    synthetic = Synthetic(groups=groups, replicates=16, episodes=1, kind="gymnasium", settings={"margin": 4.0})
    return content(fold(synthetic.events()), place="a folder/x")


def test_a_small_difference_on_a_gymnasium_task_suggests_a_group_that_learns_nothing():
    equivalent = gymnasium_content({"left": 70.0, "right": 70.0})
    first_step, second_step = next_steps(equivalent)
    assert first_step.sentence.startswith("Whether these groups learned anything is not known")
    assert first_step.command == (
        f"{ANEW} --groups left,right,random --untested random --placement auto --rng-seed 12 --name synthetic-baseline"
    )
    assert "whichever of the equivalent groups" in second_step.sentence
    different = gymnasium_content({"left": 90.0, "right": 60.0})
    with_random = gymnasium_content(
        {"left": 70.0, "right": 70.0}, random=Shape(accuracy=40.0, mode="shaped", controller="random")
    )
    for report_content in (different, with_random):
        assert all("learned anything" not in step.sentence for step in next_steps(report_content))
