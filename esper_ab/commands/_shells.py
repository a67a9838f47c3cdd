"""Shells that complete `esper-ab`: the scripts that ask it what fits behind the cursor, and how they are answered.

Importing this registers them with click. The scripts are our own where click's do not do: bash breaks words at `=` and
`:`, which stand in settings, and an open end, such as `ppo.lr=`, is not to be followed by a blank.
"""

from __future__ import annotations

import os
import shlex

from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete
from click.shell_completion import add_completion_class as register

PROGRAM, VARIABLE = "esper-ab", "_ESPER_AB_COMPLETE"

_BASH = """\
%(complete_func)s() {
    local kind value response
    response=$(env ESPER_AB_LINE="$COMP_LINE" ESPER_AB_POINT="$COMP_POINT" ESPER_AB_BREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
    COMPREPLY=()
    while IFS=',' read -r kind value; do
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done <<< "$response"
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:/] ]]; then compopt -o nospace; fi
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s
%(complete_func)s() {
    local kind key help
    local -a response closed open described
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \\
        %(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)}")
    for kind key help in ${response}; do
        case $kind in
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            plain)
                if [[ $key == *[=:/] ]]; then open+=("${key//\\\\:/:}")
                elif [[ $help == _ ]]; then closed+=("${key//\\\\:/:}")
                else described+=("$key:$help"); fi ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described -U
    (( $#closed )) && compadd -U -V unsorted -a closed
    (( $#open )) && compadd -S '' -U -V unsorted -a open
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then %(complete_func)s "$@"
else compdef %(complete_func)s %(prog_name)s; fi
"""


class _Bash(BashComplete):
    source_template = _BASH

    def source(self) -> str:
        return ShellComplete.source(self)  # click's starts a bash to look for its version

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor and the one at it, from the line itself: bash breaks its own at `=` and `:`."""
        line = os.environb[b"ESPER_AB_LINE"][: int(os.environ["ESPER_AB_POINT"])].decode(errors="replace")
        words = _split(line)
        self._incomplete = words.pop() if words and not line[-1:].isspace() else ""
        return words[1:], self._incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """A completion as the script reads it, without what bash takes for an earlier word."""
        breaks = [char for char in ":=" if char in os.environ.get("ESPER_AB_BREAKS", "")]
        cut = max((self._incomplete.rfind(char) for char in breaks), default=-1) + 1
        return f"{item.type},{str(item.value).removeprefix(self._incomplete[:cut])}"


class _Zsh(ZshComplete):
    source_template = _ZSH


def _split(line: str) -> list[str]:
    """Split a line into words as the shell would, with a quote that is still open closed."""
    for end in ("", '"', "'"):
        try:
            return shlex.split(line + end)
        except ValueError:
            continue
    return line.split()


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": FishComplete}
for _name, _shell in SHELLS.items():
    register(_shell, _name)  # click asks for them by name when the variable is set
