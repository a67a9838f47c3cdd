"""The states of the code that groups are trained with, and what differs beside the code, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from esper_ab.contracts.code_state import is_folder
from esper_ab.contracts.trainer import StateFacts, TrainerFacts
from esper_ab.contracts.wording import counted, listed

_SEALED = "The files are sealed: editing them now changes no run."


def states_words(facts: TrainerFacts) -> str:
    """Return what the code of each group is: "Code: base is main (1a2b3c4), head is the working tree at …"."""
    states = [f"{group} is {state.words}" for group, state in facts.code_states.items()]
    return f"Code: {listed(states)}."


def in_plan(facts: TrainerFacts) -> tuple[str, ...]:
    """Return the lines that come before a plan."""
    states = list(facts.states.values())
    lines = [f"{states_words(facts)} {_SEALED}"]
    if len({state.found for state in states}) == 1 and facts.repeats:
        lines.append("In the rehearsal, one seed gave the same outcome in every state.")
    return tuple(lines)


def beside_the_code(facts: TrainerFacts) -> tuple[str, ...]:
    """Return a sentence for each thing that differs between the groups and is not their code."""
    states = facts.states
    locks = _differing_locks(list(states.values()))
    sentences = list(_changes_left(facts))
    packages = list(_differing_versions(facts))
    if packages:
        sentences.append(f"Beside the code, versions differ: {'; '.join(packages)}.")
    if locks and packages:
        sentences.append(f"The states have different lock files: {listed(locks)}.")
    elif locks and all(state.versions for state in states.values()):
        sentences.append(
            f"The states have different lock files ({listed(locks)}), but all runs use the packages that are installed "
            "here, so what only a lock file changes is not compared."
        )
    elif locks:
        sentences.append(
            f"The states have different lock files ({listed(locks)}); the command does not show which Python it runs, "
            "so whether its packages differ is not known."
        )
    unrepeatable = [group for group, state in states.items() if not state.repeats]
    if unrepeatable and len(unrepeatable) < len(states):
        sentences.append(f"A seed repeats to the bit in some states, but not in {listed(unrepeatable)}.")
    return tuple(sentences)


def equal_beside(facts: TrainerFacts) -> str:
    """Return a sentence on what is the same in all states, as far as it is known."""
    first_state = next(iter(facts.states.values()))
    equal_names = [
        f"{name} {version}"
        for name, version in first_state.versions.items()
        if all(state.versions.get(name) == version for state in facts.states.values())
    ]
    if first_state.state.locks and not _differing_locks(list(facts.states.values())):
        equal_names.append(listed(sorted(first_state.state.locks)))
    return f"The same in all states: {listed(equal_names)}." if equal_names else ""


def _changes_left(facts: TrainerFacts) -> Iterator[str]:
    if any(is_folder(state.asked) for state in facts.code_states.values()):
        return  # whoever names the working tree knows that a commit does not have its changes
    for group, state in facts.code_states.items():
        if state.left_out:
            files = counted(state.left_out, "file")
            yield f"{group} is {state.words}, without the uncommitted changes in {files}; {group}=. has them."


def _differing_locks(states: Sequence[StateFacts]) -> list[str]:
    names = dict.fromkeys(name for state in states for name in state.state.locks)
    return [name for name in names if len({state.state.locks.get(name, "") for state in states}) > 1]


def _differing_versions(facts: TrainerFacts) -> Iterator[str]:
    known_versions = {group: state.versions for group, state in facts.states.items() if state.versions}
    names = dict.fromkeys(name for versions in known_versions.values() for name in versions)
    for name in names:
        versions = {group: own_versions.get(name, "none") for group, own_versions in known_versions.items()}
        if len(set(versions.values())) > 1:
            yield f"{name} {', '.join(f'{version} in {group}' for group, version in versions.items())}"
