"""An experiment directory in Python: frames of every library, verdicts, figures, and errors."""

from contextlib import closing

import polars
import pytest
from matplotlib.image import imread
from support.journals.ready_journals import failed_run, one_replicate, planted_effect, write
from support.processes.children import python

from esper_ab import load_experiment
from esper_ab.api.results import Results
from esper_ab.contracts.errors import UsageError
from esper_ab.journal.lock import Lock
from esper_ab.readers import tables
from esper_ab.readers.sql import VIEWS, query
from esper_ab.report.content import content


@pytest.fixture(scope="module")
def run(experiment_dir):
    return load_experiment(str(experiment_dir))


@pytest.mark.parametrize("table", tables.TABLES)
def test_a_table_has_the_same_rows_in_every_data_frame_library(run, experiment_dir, table):
    frame = run.frame(table)
    rows = frame.fetchall()
    assert list(frame.df().columns) == frame.pl().columns == frame.to_arrow_table().column_names == frame.columns
    assert {len(frame.df()), frame.pl().height, frame.to_arrow_table().num_rows} == {len(rows)}
    assert bool(rows) == (table != "incidents")
    if table in VIEWS:
        answer = query(experiment_dir, f"SELECT * FROM {table}")
        assert tuple(frame.columns) == answer.columns
        assert sorted(map(repr, rows)) == sorted(map(repr, answer.rows))


def test_rows_are_ordered_by_run_and_episode(run):
    episodes = run.frame("episodes").pl().select("group_id", "replicate", "episode").rows()
    assert episodes == sorted(episodes)
    steps = run.frame("seed_events").pl().filter(polars.col("seed_id") == "e0-early-0")["step"].to_list()
    assert all(steps[i] < steps[i + 1] < steps[i + 2] for i in range(0, len(steps), 3))


def test_verdicts_and_sentences_equal_those_of_the_comparisons(run):
    assert run.verdicts["shaped", "simplified"] == "BETTER"
    comparison = run.comparison("shaped", "simplified")
    assert run.sentences[0] == " ".join((comparison.headline, comparison.sentence, *comparison.warnings))
    rows = run.frame("comparisons").project("a, b, verdict, estimate, sentence").fetchall()
    assert rows == [(c.question.a, c.question.b, str(c.verdict), c.estimate, c.sentence) for c in run.comparisons]


def test_pairs_have_the_differences_of_the_outcomes(run):
    outcomes = {row[0]: row[1] for row in run.query("SELECT run, outcome FROM runs").fetchall()}
    pairs = run.frame("pairs").pl()
    assert pairs.height == 3 * 6
    for row in pairs.iter_rows(named=True):
        a = outcomes[f"{row['a']}/{row['replicate']}"]
        b = outcomes[f"{row['b']}/{row['replicate']}"]
        assert row["difference"] == pytest.approx(a - b)


def test_queries_cannot_read_files(run):
    sql = "SELECT verdict, count(*) FROM pairs JOIN comparisons USING (a, b) GROUP BY 1"
    assert run.query(sql).fetchall() == [("BETTER", 18)]
    with pytest.raises(UsageError, match="disabled"):
        run.query("SELECT * FROM read_csv('/etc/hosts')")


def test_the_figure_of_effects_has_a_row_per_comparison(run, tmp_path):
    figure = run.plot()
    (axes,) = figure.axes
    rows = [text.get_text().replace("\N{MINUS SIGN}", "-") for text in axes.texts[::2]]  # each beside its verdict
    assert rows == ["shaped - simplified", "shaped - wait", "simplified - wait"]
    dots = {(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in axes.lines}
    assert {(comparison.estimate, float(row)) for row, comparison in enumerate(run.comparisons)} <= dots
    figure.savefig(tmp_path / "effects.png", dpi=50)
    shape = imread(tmp_path / "effects.png").shape
    assert shape[:2] == tuple(round(inches * 50) for inches in reversed(figure.get_size_inches()))
    assert run.plot("pairs") is not run.plot("pairs")
    with pytest.raises(UsageError, match=f"no figure 'x'; known: {', '.join(run.figures)}$"):
        run.plot("x")


def test_the_state_of_an_experiment_is_finished_failed_running_or_stale(tmp_path):
    finished = load_experiment(write(tmp_path / "finished", planted_effect()))
    failed_experiment = load_experiment(write(tmp_path / "failed", failed_run()))
    stale_dir = write(tmp_path / "stale", planted_effect()[:60])
    with closing(Lock(stale_dir)):
        running_experiment = load_experiment(stale_dir)
    states = [run.state for run in (finished, failed_experiment, running_experiment, load_experiment(stale_dir))]
    assert states == ["finished", "failed", "running", "stale"]
    assert repr(finished).startswith(f"<LoadedExperiment '{finished.path}', finished: shaped against simplified")
    assert "shaped - simplified: BETTER" in repr(finished)
    assert "12 of 12 runs evaluated" in finished._repr_html_()
    assert "in progress" not in repr(finished)


def test_markup_in_names_is_escaped_in_notebooks(tmp_path):
    run = load_experiment(write(tmp_path / "<b>run", one_replicate()))
    assert "<b>run" not in run._repr_html_()
    assert "&lt;b&gt;run" in run._repr_html_()


def test_loading_an_experiment_imports_neither_torch_nor_data_frame_libraries(experiment_dir):
    code = (
        f"import sys; from esper_ab import load_experiment; run = load_experiment({str(experiment_dir)!r}); repr(run)\n"
        "run.query('SELECT 1').fetchall()\n"
        "print(sorted({'torch', 'polars', 'pyarrow', 'workers'} & set(sys.modules)))"
    )
    assert python("-c", code).stdout.strip() == "[]"


def test_the_refusal_of_an_unknown_pair_lists_the_known_pairs(run):
    with pytest.raises(KeyError) as caught:
        run.verdicts["simplified", "shaped"]
    reversed_pair = "use shaped - simplified, with the signs reversed"
    assert str(caught.value) == f"no comparison simplified - shaped; {reversed_pair}"
    with pytest.raises(KeyError, match="comparisons: shaped - simplified, shaped - wait, simplified - wait"):
        run.verdicts["shaped", "nobody"]
    with pytest.raises(KeyError, match="'shaped' is not a pair of groups"):
        run.verdicts["shaped"]
    assert run.verdicts.get(("simplified", "shaped")) is None
    assert run.verdicts == dict(run.verdicts)
    with pytest.raises(UsageError, match=reversed_pair):
        run.comparison("simplified", "shaped")


def test_the_refusal_of_an_unknown_variant_suggests_a_close_name(run):
    results = Results(run.path, content(run.history), "")
    with pytest.raises(KeyError) as caught:
        results["shapd"]
    assert str(caught.value) == "no variant 'shapd'; did you mean shaped?"
    assert results.get("shapd") is None
    assert len(results["shaped"]) == 6
