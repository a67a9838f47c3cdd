"""Resuming an experiment with changed code: refused without a flag, reported per run, harmless if nothing trains."""

import pytest
from support.commands.in_process import esper_ab
from support.coordinators.disturbed import THREADS, events_of, events_of_kind, resume, run
from support.plans import fake_plans

from esper_ab.analysis.analyse import analyse
from esper_ab.campaign.extending import extension
from esper_ab.campaign.resuming import check_resumable
from esper_ab.commands.evaluate import describe_other_code
from esper_ab.contracts.errors import UsageError
from esper_ab.control import experiment_run, provenance
from esper_ab.journal.events import ExperimentContinued, RunStarted
from esper_ab.journal.fold import fold
from esper_ab.journal.lock import JOURNAL_NAME

OTHER_SOURCES = "0123456789abcdef"


@pytest.fixture
def edit(monkeypatch):
    """Change the hash of the sources, as an edit of the code does."""
    return lambda: monkeypatch.setattr(provenance, "sources", lambda: OTHER_SOURCES)


@pytest.fixture
def stopped(tmp_path):
    """Run an experiment and cut its journal after the start of the second of two seeds."""
    whole = run(tmp_path / "run", fake_plans.plan(seeds=2))
    second_start = next(
        n for n, event in enumerate(whole) if isinstance(event, RunStarted) and event.run.replicate == 1
    )
    return cut_journal(tmp_path / "run", second_start + 1)


def cut_journal(experiment_dir, kept_lines):
    path = experiment_dir / JOURNAL_NAME
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept_lines]))
    return experiment_dir


def findings(experiment_dir):
    return {finding.kind: finding for finding in analyse(fold(events_of(experiment_dir))).findings}


def test_resume_with_changed_code_is_refused_without_writing_a_file(stopped, edit):
    journal = (stopped / JOURNAL_NAME).read_bytes()
    original_sources = provenance.sources()
    edit()
    with pytest.raises(UsageError) as caught:
        experiment_run.resume(stopped, THREADS, ())
    assert "\n" not in str(caught.value)
    for named_words in (original_sources, OTHER_SOURCES, "--allow-changed-code"):
        assert named_words in str(caught.value)
    result = esper_ab("resume", stopped)
    assert (result.returncode, result.stdout) == (2, "")
    assert "--allow-changed-code" in result.stderr
    assert (stopped / JOURNAL_NAME).read_bytes() == journal


def test_changed_code_that_the_user_allowed_blocks_the_verdict(stopped, edit):
    edit()
    experiment_run.resume(stopped, THREADS, (), allow_changed_code=True)
    finding = findings(stopped)["code"]
    assert finding.weight == "blocks"
    assert f"sources {OTHER_SOURCES} in 2 runs" in finding.sentence


def test_the_refusal_of_changed_code_names_the_commit_to_check_out(stopped, edit, monkeypatch):
    git = {"ls-files": "provenance.py", "rev-parse": "f" * 40, "status": ""}
    first_event = fold(events_of(stopped)).started
    assert experiment_run.check_code(stopped, fold(events_of(stopped)), allowed=False) is None
    edit()
    monkeypatch.setattr(provenance, "_git", lambda command, *_: git[command])
    with pytest.raises(UsageError) as caught:
        experiment_run.check_code(stopped, fold(events_of(stopped)), allowed=False)
    assert f" to commit {'f' * 12} (sources {OTHER_SOURCES})" in str(caught.value)
    clean = first_event.code.get("dirty") == "no"
    remedy = f"`git checkout {first_event.code['commit']}`" if clean else "restore the earlier code"
    assert remedy in str(caught.value)
    git["rev-parse"] = ""  # no checkout
    with pytest.raises(UsageError, match=f" to sources {OTHER_SOURCES}: "):
        experiment_run.check_code(stopped, fold(events_of(stopped)), allowed=False)
    git["rev-parse"] = first_event.code.get("commit", "")
    with pytest.raises(UsageError, match="restore the earlier code"):  # the commit is checked out already
        experiment_run.check_code(stopped, fold(events_of(stopped)), allowed=False)


def test_changed_code_is_allowed_if_a_resume_trains_no_run(tmp_path, edit):
    whole = run(tmp_path / "run", fake_plans.plan())
    experiment_dir = cut_journal(tmp_path / "run", len(whole) - 1)
    edit()
    assert len(events_of_kind(ExperimentContinued, resume(experiment_dir))) == 1
    assert "code" not in findings(experiment_dir)


def test_evaluate_warns_that_the_policy_was_trained_by_other_code(tmp_path, edit):
    run(tmp_path / "run", fake_plans.plan())
    policies = [str(tmp_path / "run" / "policies" / name / "0.pt") for name in ("a", "b")]
    (tmp_path / "elsewhere.pt").touch()
    assert describe_other_code(policies) == []
    original_sources = provenance.sources()
    edit()
    (line,) = describe_other_code([*policies, str(tmp_path / "elsewhere.pt"), "/x.pt", "no/such/run/policies/a/0.pt"])
    assert line.startswith("run: trained by ")
    assert original_sources in line
    assert f"sources {OTHER_SOURCES}" in line


def test_an_extension_with_changed_code_is_refused(tmp_path, edit):
    experiment_dir = tmp_path / "run"
    run(experiment_dir, fake_plans.plan(seeds=2))
    journal = (experiment_dir / JOURNAL_NAME).read_bytes()
    edit()
    for attempt in (
        lambda: experiment_run.extend(
            experiment_dir, lambda history: extension(experiment_dir, history, 4), THREADS, ()
        ),
        lambda: check_resumable(experiment_dir, 4, (), allow_changed_code=False),
    ):
        with pytest.raises(UsageError, match="--allow-changed-code"):
            attempt()
    assert (experiment_dir / JOURNAL_NAME).read_bytes() == journal
    extension_preview = check_resumable(experiment_dir, 4, (), allow_changed_code=True).added
    assert extension_preview is not None
    assert extension_preview.more == 2
