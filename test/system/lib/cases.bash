# Named cases of a test script. A line `test_case "NAME"` at the left edge begins a case, which ends before the
# next such line or with the script. A case ends at its first failure (`fail`, or a command as under `set -e`);
# the script goes on with the next case. Results are printed in TAP (Test Anything Protocol), which test/run counts.
#
# CASES_OF, where it is set, stands before the names: for a script that runs twice.
#
# Lines above the first case are the fixture: run once, and no case runs where they fail. A case sees the
# variables and functions of the fixture and of the cases before it that passed, because each case is a subshell
# of the last one that passed. Children and open files belong to the case that made them: a later one can neither
# `wait` for those nor close these.
case_store=$ROCEFS_TEST_DIR/.cases  # results of the cases, and the text of the one that runs
case_script=$(realpath "$0")
case_text=$case_store/$(basename "$0")
case_index=-1  # of $case_names; -1 in the fixture
case_names=() case_starts=() case_shell=
script_arguments=("$@")

# fail WHY: ends the case, or the script where it is called outside of cases.
fail() {
  say_failure "$*"
  exit 1
}
# mistake WHY: a failure of the case, which goes on to its end: for a list of things that are each looked at.
mistakes=0
mistake() {
  say_failure "$*"
  mistakes=$((mistakes + 1))
}
expect() {  # WANTED GOT WHAT
  [ "$1" = "$2" ] || fail "$3: wanted '$1', got '$2'"
}
# skip WHY: ends the case, or the script, without a failure; test/run lists what was skipped.
skip() {
  if [ "$case_index" -ge 0 ]; then
    echo "$*" >"$case_store/skipped.$case_index"
  else
    echo "$*"
  fi
  exit 77
}
# at_end COMMAND…: runs the command when the case ends, passed or failed; outside of cases, when the script ends.
# The last one given runs first.
at_end_commands=()
at_end() { at_end_commands=("$(printf '%q ' "$@")" "${at_end_commands[@]}"); }
run_at_end() {
  local command commands=("${at_end_commands[@]}")
  at_end_commands=()
  trap - ERR
  set +e
  for command in "${commands[@]}"; do eval "$command"; done
}
trap run_at_end EXIT

# Line of the script that runs: of the outermost call that stands in the case, or in the fixture.
script_line() {  # -> $line
  local frame text=$0
  [ "$case_index" -lt 0 ] || text=$case_text
  for ((frame = ${#BASH_SOURCE[@]} - 1; frame > 0; --frame)); do
    line=${BASH_LINENO[frame - 1]}
    [ "${BASH_SOURCE[frame]}" != "$text" ] || return 0
  done
}
# Outside of the shell of the case the words are printed, too: in a substitution they are part of what it says.
say_failure() {  # WHY
  [ "$BASHPID" = "$case_shell" ] || echo "FAILED: $*"
  note_failure "$*"
}
note_failure() {  # WHY
  local line
  [ "$case_index" -ge 0 ] || return 0
  script_line
  { echo "$(basename "$0"):$line: $*" >>"$case_store/why.$case_index"; } 2>/dev/null || true
}
# A command that ends the case, by `set -e`; a shell whose `-e` is off goes on.
command_failed() {  # STATUS COMMAND
  [[ $- != *e* ]] || [ -s "$case_store/why.$case_index" ] || note_failure "status $1 of: $2"
}

# Called by the first case's line; runs them all.
test_case() {
  [ "$case_index" -lt 0 ] || fail "test_case does not stand at the left edge, or a name has no end: $1"
  mapfile -t case_names < <(sed -n "s/^test_case \"\(.*\)\"\$/${CASES_OF:+$CASES_OF: }\\1/p" "$case_script")
  mapfile -t case_starts < <(grep -n '^test_case "' "$case_script" | cut -d : -f 1)
  [ ${#case_names[@]} -eq ${#case_starts[@]} ] || fail "a line other than: test_case \"NAME\""
  rm -rf "$case_store"
  mkdir "$case_store"
  echo "1..${#case_names[@]}"
  case_index=0
  run_cases
  if compgen -G "$case_store/failed.*" >/dev/null; then exit 1; fi
  exit 0
}
# The case at $case_index and those behind it. Empty lines stand for the text before the case, so that bash counts
# lines as the script does. A command stands behind it, because a list such as `a && fail` may end a case well.
run_cases() {
  [ "$case_index" -lt ${#case_names[@]} ] || return 0
  set +e
  (
    case_shell=$BASHPID
    at_end_commands=()
    trap run_at_end EXIT
    set -eE
    awk -v from="${case_starts[case_index]}" -v to="${case_starts[case_index + 1]:-0}" 'to && NR >= to {exit} {print(NR > from ? $0 : "")} END {print ":"}' \
      "$case_script" >"$case_text"
    trap 'command_failed $? "$BASH_COMMAND"' ERR
    mistakes=0
    . "$case_text" "${script_arguments[@]}"
    [ "$mistakes" -eq 0 ] || exit 1
    run_at_end
    touch "$case_store/passed.$case_index"
    echo "ok $((case_index + 1)) - ${case_names[case_index]}"
    case_index=$((case_index + 1))
    run_cases
    exit 0
  )
  report_case $?
  case_index=$((case_index + 1))
  run_cases
}
# Unless it passed: then those behind it have been run, too.
report_case() {  # STATUS
  local name="$((case_index + 1)) - ${case_names[case_index]}"
  if [ -e "$case_store/passed.$case_index" ]; then
    case_index=${#case_names[@]}
  elif [ -e "$case_store/skipped.$case_index" ]; then
    echo "ok $name # SKIP $(<"$case_store/skipped.$case_index")"
  else
    touch "$case_store/failed.$case_index"
    echo "not ok $name"
    sed 's/^/# /' "$case_store/why.$case_index" 2>/dev/null ||
      echo "# $(basename "$0"):${case_starts[case_index]}: the case ends with status $1"
    if declare -F after_failure >/dev/null; then after_failure | sed 's/^/# /'; fi
  fi
}
