"""The live view and status, on a terminal and in a pipe."""

import io
import json
import re
import shlex
from contextlib import closing

import pytest
from msgspec.structs import replace
from rich.console import Console
from support.journals.ready_journals import (
    failed_run,
    planted_effect,
    same_twice,
    three_groups,
    without_evaluations,
    write,
)
from support.journals.synthetic import Shape, Synthetic

from esper_ab.analysis.observe import pairs_of
from esper_ab.contracts.answer_files import VERDICT
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.journal.events import EpisodeRecorded, Incident, LookTaken
from esper_ab.journal.fold import fold
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME, Lock
from esper_ab.journal.recent import differences_now, group_now
from esper_ab.live.following import _last_words
from esper_ab.live.terminal import LiveView
from esper_ab.live.viewer import Viewer
from esper_ab.readers.reported import reported
from esper_ab.readers.status import status
from esper_ab.readers.status_text import status_json, status_text
from esper_ab.report.build import build_report


def show(events, *, terminal=False, pace_s=10.0, width=130) -> str:
    output = io.StringIO()
    time_s = [0.0]
    console = Console(file=output, force_terminal=terminal, width=width, color_system="standard", legacy_windows=False)
    with LiveView(events[0].plan, console, clock=lambda: time_s[0]) as view:
        for event in events:
            time_s[0] += pace_s
            view.observe(event)
    return output.getvalue()


def open_ended(**changes):
    """A plan in which every seed may decide, so that differences are shown as they come."""
    return Synthetic(settings={"open_ended": True}, **changes).events()


def test_the_live_view_of_a_users_trainer_has_points_and_no_columns_of_policies():
    first, *others = planted_effect()
    facts = TrainerFacts(root="/", files=("train.py",))
    of_a_trainer = [replace(first, plan=replace(first.plan, trainer=facts)), *others]
    text = show(of_a_trainer, terminal=True)
    assert "last 5 points" in text
    assert not [word for word in ("training episodes", "reward", "entropy", "gone") if word in text]
    assert "reward" in show(planted_effect(), terminal=True)


def test_the_live_view_prints_one_line_per_barrier_into_a_pipe():
    text = show(planted_effect(), pace_s=60.0)
    barriers = 6 * (Synthetic().episodes + 2)
    assert len(text.splitlines()) == barriers
    assert "seed 0 episode 4 of 8 | shaped 56.5 %; simplified 53.2 % | 6 %" in text
    assert "seed 1 episode 4 of 8 | shaped 74.4 % in 1 run; simplified 68.3 % in 1 run | 23 %" in text
    assert "seed 2 episode 4 of 8 | shaped 73.6 to 74.4 % in 2 runs; simplified 65.9 to 68.3 % in 2 runs | 39 %" in text
    assert "points" not in text
    assert text.splitlines()[-1].split(" | ")[-1].startswith("100 %")
    assert "\x1b" not in text


def test_the_live_view_ends_with_the_verdict(tmp_path):
    write(tmp_path, planted_effect())
    comparison = {
        "a": "shaped",
        "b": "simplified",
        "verdict": "BETTER",
        "headline": "shaped is better.",
        "warnings": ["Only six pairs."],
    }
    assert _last_words(tmp_path, Viewer(tmp_path)).endswith("shows the verdict")
    (tmp_path / "verdict.json").write_text(json.dumps({"comparisons": [comparison]}))
    comparison = "shows the rest\n  BETTER: shaped is better.\n  ! Only six pairs."
    assert _last_words(tmp_path, Viewer(tmp_path)).endswith(comparison)


def pathology(run, finding, detail):
    text = f"{finding}: {detail}"
    return Incident(category="ppo_pathology", run_name=run, episode=0, detail=text, confounder=finding)


def with_pathology(group, runs):
    """An incident for the first `runs` of a group, each behind its first episode."""
    events = []
    for event in planted_effect():
        events.append(event)
        if isinstance(event, EpisodeRecorded) and event.record.episode == 0:
            ref = event.record.run
            if ref.group_id == group and ref.replicate < runs:
                events.append(pathology(ref.name, "ratio explosion", "one update made a decision 12.0 times as likely"))
    return events


@pytest.mark.parametrize("terminal", [False, True])
def test_the_live_view_prints_each_pathology_once_per_group(terminal):
    events = with_pathology("shaped", 5)
    lines = [line.strip() for line in show(events, terminal=terminal).splitlines() if "ppo_pathology" in line]
    assert [line[line.index("!") :] for line in lines] == [
        "! ppo_pathology shaped/0: ratio explosion: one update made a decision 12.0 times as likely",
        "! ppo_pathology shaped: ratio explosion in 5 runs, shaped/0 first",
    ]
    collapse = pathology("simplified/0", "entropy collapse", "0")
    text = show([*with_pathology("shaped", 1), collapse])
    assert text.count("ppo_pathology") == 2
    assert " runs, " not in text


def test_a_live_view_opened_late_does_not_print_earlier_pathologies():
    events = with_pathology("shaped", 3)
    second_index = [n for n, event in enumerate(events) if isinstance(event, Incident)][1]
    output = io.StringIO()
    with LiveView(events[0].plan, Console(file=output, width=130), history=fold(events[:second_index])) as view:
        for event in events[second_index:]:
            view.observe(event)
    lines = [line for line in output.getvalue().splitlines() if "ppo_pathology" in line]
    assert lines == ["! ppo_pathology shaped: ratio explosion in 3 runs, shaped/0 first"]


@pytest.mark.parametrize("pace_s", [0.0, 1.0, 7.0, 30.0])
def test_the_live_view_prints_at_most_one_line_per_minute(pace_s):
    events = planted_effect()
    lines = show(events, pace_s=pace_s).splitlines()
    assert 1 <= len(lines) <= 1 + len(events) * pace_s / 60.0
    assert lines[0].startswith("seed 0 ready | shaped -; simplified - | 0 %")


def test_the_live_view_shows_a_table_and_a_bar_on_a_terminal():
    text = show(three_groups(), terminal=True)
    for expected_text in (
        "group",
        "held-out accuracy, %",
        "reward (not comparable)",
        "entropy",
        "s / episode",
        "100 %",
    ):
        assert expected_text in text
    assert "simplified - wait" not in text
    assert "shaped - simplified +" in show(open_ended(), terminal=True)


@pytest.mark.parametrize(("width", "last_word"), [(80, "episode"), (60, "comparable)")])
def test_the_live_view_breaks_no_word_on_a_narrow_terminal(width, last_word):
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", show(three_groups(), terminal=True, width=width)).splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.strip().startswith("simplified ") for line in lines)
    (*_, heading) = (line for line in lines if line.strip().startswith("group "))
    assert {"group", "episodes", "%", "comparable)"} <= set(heading.split())
    assert heading.split()[-1] == last_word


@pytest.mark.parametrize("terminal", [False, True])
def test_the_live_view_prints_a_confounder_at_once(terminal):
    assert "! worker_death simplified/3: exit code -9" in show(failed_run(), terminal=terminal)


def test_the_live_view_handles_journals_without_outcomes():
    unmeasured_events = without_evaluations(same_twice())
    assert show(unmeasured_events).startswith("seed 0 ready | a -; b - | 0 %\n")
    assert "a - b" not in show(unmeasured_events, terminal=True)
    equal_groups = open_ended(groups={"a": Shape(stream="one"), "b": Shape(stream="one")})
    assert "a - b 0.00 points, 6 pairs\n(outcome so far" in show(equal_groups, terminal=True)
    assert show(planted_effect()[:1]) == ""
    assert "starting the workers" in show(planted_effect()[:1], terminal=True)


def test_the_live_difference_is_the_mean_over_complete_pairs():
    history = fold(open_ended()[:-30])
    difference = differences_now(history)[0]
    pairs = pairs_of(history, history.design.comparisons[0])
    assert difference.pairs == len(pairs) < 6
    assert difference.difference == pytest.approx(sum(pair.a - pair.b for pair in pairs) / len(pairs))
    assert differences_now(fold(open_ended()[:20]))[0].difference is None
    assert group_now(fold(failed_run()), "shaped").episodes == 3 * 8 + 2


def test_the_live_view_shows_no_difference_before_the_first_look():
    events = Synthetic(replicates=20, settings={"looks": (12, 20)}).events()
    assert differences_now(fold(events)) == ()
    look = LookTaken(replicates=12, decided=(), leaving=())
    assert differences_now(fold([*events[:-1], look]))[0].pairs == 20


@pytest.mark.parametrize(
    ("events", "state"),
    [(planted_effect, "finished"), (failed_run, "failed"), (lambda: planted_effect()[:50], "stale")],
)
def test_status_shows_the_state_of_an_experiment(tmp_path, events, state):
    progress = status(write(tmp_path / "run", events()))
    assert progress.state == state
    assert len(progress.runs) == 12
    assert progress.groups[0].outcome is not None
    assert ("the process that ran it has died" in status_text(tmp_path / "run")) == (state == "stale")
    with closing(Lock(tmp_path / "run")):
        assert status(tmp_path / "run").state == (state if state != "stale" else "running")


@pytest.mark.parametrize("events", [planted_effect, failed_run, lambda: planted_effect()[:50]])
def test_commands_that_status_prints_can_be_pasted(tmp_path, events):
    entry = Incident(category="bad_message", run_name="", episode=None, detail="x")
    directory = write(tmp_path / "a folder", [*events()[:1], entry, *events()[1:]])
    text = status_text(directory)
    commands = [shlex.split(command) for command in re.findall("`(esper-ab .*?)`", text)]
    assert ["esper-ab", "report", str(directory)] in commands
    assert all(str(directory) in command for command in commands)


def test_status_lists_only_runs_in_progress(tmp_path):
    lines = status_text(write(tmp_path / "run", failed_run())).splitlines()
    assert "  12 runs: 6 finished, 2 stopped, 4 planned" in lines
    assert [line.split()[0] for line in lines if " on cpu:" in line] == ["simplified/3", "shaped/3"]
    assert not [line for line in status_text(write(tmp_path / "done", planted_effect())).splitlines() if " on " in line]


def test_status_json_counts_the_bytes_of_an_unfinished_last_line(tmp_path):
    experiment_dir = write(tmp_path / "run", failed_run())
    with (experiment_dir / JOURNAL_NAME).open("ab") as file:
        file.write(b'{"n":1')
    document = json.loads(status_json(experiment_dir))
    assert (document["state"], document["torn_bytes"], document["incidents"]) == ("failed", 6, 1)
    assert "6 bytes of an unfinished last line are ignored" in status_text(experiment_dir)
    assert document["runs"][6] == {
        "name": "simplified/3",
        "state": "stopped",
        "device": "cpu:0",
        "episodes": 1,
        "of_episodes": 8,
    }


def test_status_of_a_finished_experiment_begins_with_the_verdict(tmp_path):
    experiment_dir = write(tmp_path / "run", planted_effect())
    assert "`esper-ab report" in status_text(experiment_dir)
    (comparison,) = build_report(experiment_dir).content.comparisons
    first_line, *other_lines = status_text(experiment_dir).splitlines()
    assert other_lines == [
        f"  {comparison.verdict}: {comparison.headline}",
        *(f"  ! {warning}" for warning in comparison.warnings),
        f"  report: {experiment_dir / 'report.html'}",
        "  12 runs: 12 finished",
    ]
    assert "training so far" not in first_line
    assert "recent" not in first_line
    assert json.loads(status_json(experiment_dir))["verdicts"] == [
        {
            "a": "shaped",
            "b": "simplified",
            "verdict": "BETTER",
            "headline": comparison.headline,
            "warnings": list(comparison.warnings),
        }
    ]
    path = experiment_dir / VERDICT
    path.write_text(json.dumps(json.loads(path.read_text()) | {"replicates": 5}))  # fewer than the journal has
    verdicts, problem = reported(experiment_dir, load(experiment_dir).history)
    assert verdicts == ()
    assert "out of date" in problem
