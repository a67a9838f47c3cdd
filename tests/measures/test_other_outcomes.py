"""All output about an outcome in joules that is negative and better when lower uses no growth terms."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from support.journals.ready_journals import write
from support.journals.synthetic import Shape, Synthetic
from support.plans.requests import TASK, experiment, machine, planned

from esper_ab.api.loaded import load_experiment
from esper_ab.api.results import Results
from esper_ab.commands.power import command as power
from esper_ab.contracts.answer_files import PAGE, VERDICT
from esper_ab.contracts.kinds_of_task import of_kind
from esper_ab.contracts.machine import TaskFacts
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.journal.events import AnyEvent, Incident, RunEvaluated
from esper_ab.journal.fold import fold
from esper_ab.plan.estimate import Estimate
from esper_ab.plan.text import plan_text
from esper_ab.readers.sql import query
from esper_ab.readers.status_text import status_text
from esper_ab.report.build import build_report, printed
from esper_ab.report.content import content
from esper_ab.report.figures import catalogue
from esper_ab.report.figures.kind import FiguresKind
from esper_ab.trackers.numbers import episode_numbers, evaluation_numbers

MEASURES = TaskMeasures(
    outcome=Measure(name="energy", label="energy used", unit="J", better="lower", high=0.0),
    measures=(
        Measure(name="distance", label="distance covered", unit="m", better="higher"),
        Measure(name="entropy", label="entropy of the states"),  # also the name of a column of updates
    ),
)
GROUPS = {"calm": Shape(accuracy=-80.0), "wild": Shape(accuracy=-70.0, mode="simplified")}
ESTIMAND = "Mean energy used by the last policy, over seeds."
FOREIGN = r"\bpoints|accurac|held.out|\bhosts?\b|fossil|germinat|prune|\bgrown?\b|\bseed modules?\b|parameters added"


def make_events(groups: dict[str, Shape] = GROUPS, replicates: int = 6) -> list[AnyEvent]:
    """Return the events of an experiment whose kind is in no catalogue."""
    synthetic_experiment = Synthetic(kind="pendulum", measures=MEASURES, groups=groups, replicates=replicates)
    first_event, *later_events = synthetic_experiment.events()
    plan = msgspec.structs.replace(first_event.plan, estimand=ESTIMAND)
    return [msgspec.structs.replace(first_event, plan=plan), *later_events]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("energy") / "run", make_events())


def find_foreign_words(text: str) -> list[str]:
    """Return the words of growth in a text, except in names of flags."""
    return re.findall(FOREIGN, text.replace("--eval-episodes", "").replace("checkpoint", ""), flags=re.IGNORECASE)


def test_the_group_with_the_lower_outcome_is_better(folder: Path) -> None:
    (comparison,) = load_experiment(folder).comparisons
    assert (comparison.question.a, str(comparison.verdict)) == ("calm", "BETTER")
    assert comparison.headline.startswith("calm is better than wild by 8.1 J (95 % interval ")
    assert comparison.headline.endswith(", in 6 of 6 pairs.")
    assert "calm - wild = -8.11 J (lower is better)" in comparison.sentence
    assert comparison.descriptive["improvement"].wins == 6
    assert comparison.descriptive["improvement_interval"].a12 == 1.0


def test_no_output_uses_growth_terms(folder: Path) -> None:
    paths = build_report(folder)
    page = re.sub(r"<style.*?</style>|<[^>]*>", " ", (folder / PAGE).read_text(encoding="utf-8"), flags=re.DOTALL)
    verdict = json.loads((folder / VERDICT).read_bytes())
    texts = {
        "text": printed(paths, "whole"),
        "markdown": printed(paths, "md"),
        "page": page,
        "status": status_text(folder),
        "verdict.json": "\n".join(_strings(verdict, skipped_keys=("settings", "design"))),
        "results": str(Results(folder, paths.content, "")),
    }
    for name, text in texts.items():
        cleaned_text = re.sub(r"set_alpha_target|start germinate.*?advance [+-]\d", "", text)
        assert find_foreign_words(cleaned_text) == [], name
    assert "-78.77" in texts["text"]
    assert not re.search(r"-\d+\.\d+ (?:\([\d.]+\) )?%", texts["text"])


def _strings(tree: object, skipped_keys: tuple[str, ...]) -> list[str]:
    if isinstance(tree, dict):
        return [
            text for key, value in tree.items() if key not in skipped_keys for text in _strings(value, skipped_keys)
        ]
    if isinstance(tree, list):
        return [text for value in tree for text in _strings(value, skipped_keys)]
    return [tree] if isinstance(tree, str) else []


def test_figures_show_the_label_and_unit_of_the_outcome(folder: Path) -> None:
    report_content = content(fold(make_events()))
    assert of_kind(report_content.history.plan.kind, FiguresKind).by_section == {}
    assert not {"cost", "actions", "lifecycle"} & set(catalogue.names(report_content))
    sections = ("answer", "decides", "training")
    drawings = {figure.name: figure for section in sections for figure in catalogue.drawn(section, report_content)}
    assert {"effects", "outcomes", "pairs", "curves", "entropy", "heads"} <= set(drawings)
    for figure in drawings.values():
        assert find_foreign_words(figure.caption + figure.alt + figure.title) == []
    assert drawings["outcomes"].figure.axes[0].get_xlabel() == "energy used, J (lower is better)"
    assert drawings["effects"].figure.axes[0].get_xlabel() == "difference in energy used, J (lower is better)"


def test_a_failed_run_gets_the_worst_value_in_the_declared_direction() -> None:
    events = make_events(replicates=9)
    kept_events = [
        event for event in events if not (isinstance(event, RunEvaluated) and event.record.run.replicate == 2)
    ]
    incidents = [
        Incident(category="dropped_pair", run_name="calm/2", episode=3, detail="died twice"),
        Incident(category="cancelled", run_name="wild/2", episode=3, detail="its block"),
    ]
    plan = msgspec.structs.replace(
        kept_events[0].plan, design=msgspec.structs.replace(kept_events[0].plan.design, worst=-68.0)
    )
    first_event = msgspec.structs.replace(kept_events[0], plan=plan)
    (comparison,) = content(fold([first_event, *kept_events[1:-1], *incidents, kept_events[-1]])).comparisons
    assert comparison.imputed.given_a == -68.0  # lower is better, and no observed energy was as high
    assert "giving lost runs the least favourable outcomes (calm -68.00 j" in " ".join(comparison.caveats).lower()
    worst_seen = max(value for pair in comparison.pairs for value in (pair.a, pair.b))
    assert comparison.unseen.worst == max(-68.0, worst_seen)


def test_sql_views_have_a_column_per_declared_measure(folder: Path) -> None:
    for view in ("episodes", "env_episodes", "evaluations"):
        columns = query(folder, f"SELECT * FROM {view}").columns
        assert {"outcome", "failed", "distance", "entropy"} <= set(columns)
        assert len(columns) == len(set(columns))
    (row,) = query(folder, "SELECT avg(distance), avg(outcome) FROM evaluations WHERE group_id = 'calm'").rows
    assert 90.0 < row[0] < 110.0
    assert row[1] == pytest.approx(-78.7, abs=0.5)


def test_trackers_receive_the_outcome_and_measures_by_name() -> None:
    history = fold(make_events())
    numbers = episode_numbers(history.runs["calm/0"].episodes[0])
    assert {"train/outcome", "train/failed", "measure/distance", "measure/entropy", "ppo/entropy"} <= set(numbers)
    assert {"evaluation/outcome", "evaluation/measure/distance"} <= set(evaluation_numbers(history, "calm/0"))
    assert [name for name in numbers if find_foreign_words(name)] == []


def test_power_and_plan_texts_use_the_unit_of_the_outcome(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    power.main(["--experiment", str(folder)], standalone_mode=False)
    output = capsys.readouterr().out
    assert find_foreign_words(output) == []
    assert "margin 2 J" in output
    facts = TaskFacts(name=TASK.name, kind="pendulum", measures=MEASURES, title="swing up", step_s=1e-3)
    plan = planned(experiment(margin=3.0, eval_episodes=8), machine(tasks=(facts,)))
    estimate = Estimate(duration_s=1.0, start_up_s=1.0, memory_bytes=1, step_s=1.0, basis="measured")
    text = plan_text(plan, machine(), estimate, folder)
    assert find_foreign_words(text) == []
    assert "margin 3 J" in text
    assert "energy used, lower is better" in re.sub(r"\s+", " ", text)
