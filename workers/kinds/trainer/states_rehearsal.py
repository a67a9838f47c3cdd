"""Rehearses a trainer in every state of the code, because each may fail, or behave differently, on its own."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from esper_ab.contracts.code_state import StateOfCode, tree_of
from esper_ab.contracts.package_versions import sha256_of_versions
from esper_ab.contracts.trainer import (
    Resumption,
    StateFacts,
    TrainerFacts,
    TrainerQuestion,
    fill,
    is_command,
    placeholders,
)
from workers.kinds.trainer.code_tree import TreeFiles, files_of
from workers.kinds.trainer.named_files import named_files
from workers.kinds.trainer.versions import versions_of

_WORST_FIRST: tuple[Resumption, ...] = ("anew", "untried", "resumes", "exactly")
_ALWAYS = ("Python", "torch")  # whose versions are recorded even if they are equal
_MOST_VERSIONS = 20  # of packages that differ


def rehearse_states(
    question: TrainerQuestion, rehearse: Callable[[TrainerQuestion], TrainerFacts], doing: Callable[[str], None]
) -> TrainerFacts:
    """Rehearse the trainer in each of `question.states`; ValueError, which begins with the state, if one fails."""
    root = Path(question.states_in)
    trees = {state.group: files_of(tree_of(state), root) for state in question.states}
    _refuse_missing_files(question, trees)
    facts = {}
    versions = {}
    for state in question.states:
        doing(f"{state.group}: {state.words}")
        try:
            state_question = _state_question(question, state, trees[state.group])
            facts[state.group] = rehearse(state_question)
        except ValueError as error:
            raise ValueError(f"group {state.group!r}, {state.words}: {error}") from None
        variables = trees[state.group].variables(os.environ)
        versions[state.group] = versions_of(state_question.reference, state_question.directory, variables)
    _refuse_different(facts)
    recorded_names = _telling(versions)
    states = {}
    for state in question.states:
        own_facts = facts[state.group]
        states[state.group] = StateFacts(
            state=state,
            root=Path(own_facts.root).relative_to(trees[state.group].top).as_posix().removeprefix("."),
            files=own_facts.files,
            sha256=own_facts.sha256,
            repeats=own_facts.repeats,
            found=own_facts.found,
            versions={name: versions[state.group][name] for name in recorded_names if name in versions[state.group]},
            packages_sha256=sha256_of_versions(versions[state.group]),
        )
    return _merged(facts, states, question.directory)


def _state_question(question: TrainerQuestion, state: StateOfCode, files: TreeFiles) -> TrainerQuestion:
    """Return the question about one state, of which only the tree is seen."""
    if not files.folder.is_dir():
        raise ValueError(f"it has no folder {state.inside}, in which you are")
    return msgspec.structs.replace(
        question,
        reference=files.reference(question.reference, question.directory),
        directory=str(files.folder),
        groups={state.group: question.groups[state.group]},
        states=(),
        tree=tree_of(state),
    )


def _refuse_missing_files(question: TrainerQuestion, trees: Mapping[str, TreeFiles]) -> None:
    """Raise ValueError for a file that a command names and a state lacks, or that is the same for all states."""
    if not is_command(question.reference):
        return
    states = {state.group: state for state in question.states}
    program = shlex.split(question.reference)[0]
    named_words = set(named_files(question.reference, question.directory, question.groups.values())) - {program}
    for files in trees.values():
        if files.folder.is_dir():
            named_words |= set(named_files(question.reference, str(files.folder), question.groups.values()))
    for group, files in trees.items():
        settings = question.groups[group]
        own_facts = {name: settings.get(name, f"{{{name}}}") for name in placeholders(question.reference)}
        for word in fill(question.reference, own_facts):
            path = word.rpartition("=")[2]
            if files.moved(path) != path and Path(files.moved(path)).exists():
                raise ValueError(
                    f"the command names {path}, which would be the same file for every state; write it relative to "
                    f"{question.directory}"
                )
        missing_names = [name for name in sorted(named_words) if not (files.folder / name).is_file()]
        if missing_names:
            raise ValueError(
                f"group {group!r}, {states[group].words}: it has no file {missing_names[0]}, which the command names; "
                "commit the file, or, if all states may use one file, give its absolute path"
            )


def _refuse_different(facts: Mapping[str, TrainerFacts]) -> None:
    """Raise ValueError unless the outcomes of all states can be compared."""
    (first_group, expected), *others = facts.items()
    for group, own_facts in others:
        if own_facts.evaluations != expected.evaluations:
            raise ValueError(
                f"evaluate returns {expected.evaluations} outcomes in {first_group} but {own_facts.evaluations} in "
                f"{group}; make them equal"
            )


def _telling(versions: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the names whose versions are recorded: those that differ between states, and a few that always are."""
    known_versions = [own_facts for own_facts in versions.values() if own_facts]
    names = dict.fromkeys(name for own_facts in known_versions for name in own_facts)
    differing = [name for name in names if len({own_facts.get(name, "") for own_facts in known_versions}) > 1]
    return list(dict.fromkeys([*_ALWAYS, *differing[:_MOST_VERSIONS]]))


def _merged(facts: Mapping[str, TrainerFacts], states: dict[str, StateFacts], directory: str) -> TrainerFacts:
    """Return what holds in every state."""
    all_facts = list(facts.values())
    first_group = all_facts[0]
    digest = hashlib.sha256()
    for state in states.values():
        digest.update(f"{state.state.group} {state.state.sealed} {state.sha256}\n".encode())
    settings = {group: own_facts.settings[group] for group, own_facts in facts.items()}
    sources = {own_facts.source for own_facts in all_facts}
    return msgspec.structs.replace(
        first_group,
        settings=settings,
        root=directory,
        files=(),  # each state has its own
        sha256=digest.hexdigest(),
        points=min(own_facts.points for own_facts in all_facts),
        metrics=_shared([own_facts.metrics for own_facts in all_facts]),
        repeats=all(own_facts.repeats for own_facts in all_facts),
        outcome_repeats=all(own_facts.outcome_repeats for own_facts in all_facts),
        resumption=min((own_facts.resumption for own_facts in all_facts), key=_WORST_FIRST.index),
        evaluates_alike=all(own_facts.evaluates_alike for own_facts in all_facts),
        source=sources.pop() if len(sources) == 1 else "",
        interpreter=first_group.interpreter if len({own_facts.interpreter for own_facts in all_facts}) == 1 else "",
        memory_bytes=max(own_facts.memory_bytes for own_facts in all_facts),
        point_s=max(own_facts.point_s for own_facts in all_facts),
        evaluate_s=max(own_facts.evaluate_s for own_facts in all_facts),
        states=states,
    )


def _shared(metrics: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the metrics that every state has, under names that no other has."""
    from workers.kinds.trainer.metric_names import measure_names

    return measure_names(name for name in metrics[0] if all(name in own_facts for own_facts in metrics))
