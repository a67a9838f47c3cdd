#!/usr/bin/env bash
# Run the gate, and write its exit status as the output `status`; the status of the job is set by the last step, after
# the answer has been published. All files are outside the workspace, so that they are no part of the code.
set -uo pipefail

mkdir -p "$GATE_FOLDER"
rm -f "$GATE_COMMENT" "$GATE_ERRORS"
words=(gate "$GATE_FILE" --base "$GATE_BASE" --head "$GATE_HEAD" --output-dir "$GATE_FOLDER/gates" --comment "$GATE_COMMENT")
[[ -z $GATE_MINUTES ]] || words+=(--minutes "$GATE_MINUTES")
[[ -z $GATE_REFERENCES ]] || words+=(--references "$GATE_REFERENCES")
"$GATE_PYTHON" -m esper_ab "${words[@]}" 2> >(tee "$GATE_ERRORS" >&2)
status=$?
wait # for tee
echo "status=$status" >>"$GITHUB_OUTPUT"
# The directory of this gate is the one that was changed last; the newest ten go into the cache.
mapfile -t directories < <(ls -1dt "$GATE_FOLDER"/gates/gate-* 2>/dev/null)
if ((${#directories[@]})) && ((status == 0 || status == 12)); then
    echo "directory=${directories[0]}" >>"$GITHUB_OUTPUT"
fi
if ((${#directories[@]} > 10)); then
    rm -rf -- "${directories[@]:10}"
fi
exit 0
