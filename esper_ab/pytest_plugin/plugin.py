"""The hooks of pytest. This module is imported in every session, so it imports nothing else of ours but the session.

The folder of kept runs and the directory of experiments are options; each assertion makes a folder of its own, so the
processes of pytest-xdist share none. Answers stand in the report of their test, and at the end of the session.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from esper_ab.pytest_plugin.session import PytestSession, begin, current, end

_PROPERTY = "esper_ab"  # of a test: the headline of an answer, which pytest-xdist passes on
_JOURNAL = "events.jsonl"  # in the directory of every experiment
_KEY = pytest.StashKey[PytestSession]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options, each on the command line and in the settings file."""
    group = parser.getgroup("esper_ab", "assertions on training (esper_ab.testing)")
    for name, value, words in (
        ("references", "DIR", "keep runs in DIR, relative to the root of the project, and use them again"),
        ("references-limit", "SIZE", "the size of the folder of kept runs, as in 500MB"),
        ("directory", "DIR", "keep the experiments of tests in DIR, and not in pytest's temporary folder"),
    ):
        group.addoption(f"--esper-ab-{name}", metavar=value, default=None, help=words)
        parser.addini(f"esper_ab_{name.replace('-', '_')}", words, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Begin a session with the options."""
    limit = config.getoption("esper_ab_references_limit") or config.getini("esper_ab_references_limit")
    session = PytestSession(
        directory=_folder_option(config, "directory"),
        references=_folder_option(config, "references"),
        references_limit=limit or None,
    )
    config.stash[_KEY] = session
    begin(session)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the session."""
    session = config.stash.get(_KEY, None)
    if session is not None:
        end(session)


def _folder_option(config: pytest.Config, name: str) -> Path | None:
    """Return an absolute folder: a flag is relative to where pytest was started, a setting to the project's root."""
    if flag := config.getoption(f"esper_ab_{name}"):
        return Path(config.invocation_params.dir, flag)
    setting = config.getini(f"esper_ab_{name}")
    return Path(config.rootpath, setting) if setting else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out directories of experiments, which have copies of users' files, tests among them."""
    session = config.stash[_KEY]
    if collection_path in (session.directory, session.references) or (collection_path / _JOURNAL).is_file():
        return True
    return None


@pytest.fixture(autouse=True, scope="session")
def _esper_ab_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tell the session where temporary folders are made; nothing is made before an assertion needs one."""
    if (session := current()) is not None:
        session.make_temporary = tmp_path_factory.mktemp


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let answers go to the report of this test."""

    def note(headline: str, text: str) -> None:
        item.user_properties.append((_PROPERTY, headline))
        item.add_report_section("call", _PROPERTY, text)

    item.config.stash[_KEY].note = note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line per answer of a test that passed; a test that failed has shown its answer."""
    lines = [
        f"{report.nodeid}: {headline}"
        for report in terminalreporter.getreports("passed")
        if report.when == "call"
        for name, headline in report.user_properties
        if name == _PROPERTY
    ]
    if lines:
        terminalreporter.section("esper_ab")
        for line in lines:
            terminalreporter.line(line)
