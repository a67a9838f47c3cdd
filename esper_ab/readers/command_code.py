"""Which code the commands of several experiments had, as far as journals have it.

A command's imports are not checked. Each journal has the state of the git repository in which the command runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from esper_ab.analysis.code_states import sittings_at_work
from esper_ab.contracts.trainer import is_command
from esper_ab.contracts.wording import counted, listed
from esper_ab.journal.fold import History

_SHOWN_CHARS = 7  # of hashes
_UNKNOWN = ""


@dataclass(frozen=True, kw_only=True)
class CommandCode:
    """A sentence on the code of several commands."""

    sentence: str  # "": no command, or a declared state of the code per group
    same: bool  # as far as it is recorded


def command_code(histories: Mapping[str, Sequence[History]]) -> CommandCode:
    """Describe the code of each experiment's command; `histories`: of each task of an experiment, by its name."""
    states = {
        name: tuple(dict.fromkeys(state for history in own_histories for state in _states(history)))
        for name, own_histories in histories.items()
        if all(_has_command(history) for history in own_histories)
    }
    if len(states) < len(histories):
        return CommandCode(sentence="", same=True)
    unknown_names = [name for name, own_states in states.items() if _UNKNOWN in own_states]
    known_words = {name: ", then ".join(own_states) for name, own_states in states.items() if name not in unknown_names}
    known_sentence = "; ".join(f"{words} in {name}" for name, words in known_words.items())
    if unknown_names:
        ending = f"; {known_sentence}" if known_sentence else ""
        sentence = (
            f"The code that the command imported is not known in {listed(unknown_names)}{ending}. It may differ: only "
            "the files that the command names are compared."
        )
        return CommandCode(sentence=sentence, same=False)
    if len({state for own_states in states.values() for state in own_states}) == 1:
        return CommandCode(sentence=f"The command's code was {next(iter(known_words.values()))}.", same=True)
    sentence = f"The command's code differs: {known_sentence}. Whatever changed may be part of the difference."
    return CommandCode(sentence=sentence, same=False)


def _has_command(history: History) -> bool:
    experiment = history.plan.experiment
    return bool(experiment.trainer) and is_command(experiment.trainer) and not experiment.code


def _states(history: History) -> Iterator[str]:
    """Yield the state of the repository in each sitting that recorded something, in words; "" if it is not known."""
    for sitting in sittings_at_work(history):
        yield _describe(sitting.repository)


def _describe(repository: Mapping[str, str]) -> str:
    if "commit" not in repository:
        return _UNKNOWN
    commit = f"commit {repository['commit'][:_SHOWN_CHARS]}"
    if "changes" not in repository:
        return commit
    files = counted(int(repository["changed"]), "changed file")
    return f"{commit} with {files} ({repository['changes'][:_SHOWN_CHARS]})"
