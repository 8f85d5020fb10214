#!/bin/bash
# test/run and test/system/lib/cases.bash: what is counted and printed for scripts with named cases.
set -euo pipefail
cd "$(dirname "$0")/../.."
. test/system/lib/cases.bash
tree=$ROCEFS_TEST_DIR/tree
mkdir -p "$tree"/test/{system/lib,house} "$tree/build/test"
cp test/run "$tree/test"
cp test/system/lib/cases.bash "$tree/test/system/lib"

# The script on standard input, of which each line begins with a bar, as test/system/sample.sh; runs it by test/run.
sample() {  # -> $said, $status
  sed 's/^ *|//' >"$tree/test/system/sample.sh"
  chmod 755 "$tree/test/system/sample.sh"
  status=0
  said=$("$tree/test/run" "$tree/build" sample 2>&1) || status=$?
}
says() { grep -qxF -- "$1" <<<"$said" || fail "no line '$1' in: $(sed "s/^/| /" <<<"$said")"; }
ends() {  # STATUS LAST-LINE
  expect "$2" "$(tail -n 1 <<<"$said")" "the last line"
  expect "$1" "$status" "the status of test/run"
}
head='|#!/bin/bash
|set -euo pipefail
|. "$(dirname "$0")/lib/cases.bash"
|cd /
|double() { expect "$1" $((2 * $2)) "twice $2"; }'

test_case "a script goes on with the next case after a failure"
sample <<SAMPLE
$head
|test_case "two and two are four"
|double 4 2
|test_case "three and three are seven"
|double 7 3
|double 8 3
|test_case "four and four are eight"
|double 8 4
SAMPLE
says "FAILED sample: three and three are seven"
says "  sample.sh:9: twice 3: wanted '7', got '6'"
expect 0 "$(grep -c "wanted '8'" <<<"$said" || true)" "lines of what stands behind the failure"
says "$(printf '%-28s %4d passed, %d failed' sample 2 1)"
ends 1 "2 passed, 1 failed"

test_case "each way to fail is a failure of its case"
sample <<SAMPLE
$head
|test_case "a command"
|grep -q nobody-has-this-name /etc/passwd
|test_case "a function in a substitution"
|twice=\$(double 3 1)
|test_case "an unbound variable"
|echo \$nothing
|test_case "an unfinished line"
|if true; then
|test_case "an early end"
|exit 0
|test_case "none of these"
|if (double 3 1) >/dev/null; then fail "it is not"; fi
|nothing=\$(false; true)
|false && fail "it is not"
SAMPLE
says "  sample.sh:7: status 1 of: grep -q nobody-has-this-name /etc/passwd"
says "  sample.sh:9: twice 1: wanted '3', got '2'"
says "  sample.sh:10: the case ends with status 1"
grep -q "line 11: nothing: unbound variable" <<<"$said" || fail "no word of the variable: $(sed "s/^/| /" <<<"$said")"
says "FAILED sample: an unfinished line"
says "  sample.sh:14: the case ends with status 0"
ends 1 "1 passed, 5 failed"

test_case "each mistake is reported, and fails its case at the end"
sample <<SAMPLE
$head
|test_case "three mistakes"
|for i in 1 2 3; do mistake "mistake \$i"; done
|echo "REPORT the end"
|test_case "none"
|true
SAMPLE
says "  sample.sh:7: mistake 1"
says "  sample.sh:7: mistake 3"
says "  the end"
ends 1 "1 passed, 1 failed"

test_case "a case sees what the cases that passed have set"
sample <<SAMPLE
$head
|test_case "a variable, a function and a descriptor"
|x=1
|f() { echo f; }
|exec 5<<<five
|test_case "a failure"
|x=2
|fail "on purpose"
|test_case "the later one"
|expect "1 f five" "\$x \$(f) \$(cat <&5)" "what was set"
SAMPLE
ends 1 "2 passed, 1 failed"

test_case "at_end runs after a case that passed and after one that failed"
sample <<SAMPLE
$head
|at_end echo "REPORT the script ends"
|test_case "passes"
|at_end echo "REPORT first"
|at_end echo "REPORT second"
|test_case "fails"
|at_end echo "REPORT third"
|false
SAMPLE
expect "second first third the script ends" "$(sed -n 's/^  REPORT //p; s/^   *//p' <<<"$said" | grep -vE 'sample|FAILED' | xargs)" "what ran"
ends 1 "1 passed, 1 failed"

test_case "a skipped case or script gives the reason"
sample <<SAMPLE
$head
|test_case "on the moon"
|skip "not on the moon"
|test_case "on earth"
|true
SAMPLE
says "SKIPPED sample: on the moon: not on the moon"
says "1 skipped"
ends 0 "1 passed, 0 failed"
sample <<SAMPLE
$head
|skip "nothing here"
|test_case "never"
|true
SAMPLE
says "SKIPPED sample: nothing here"
ends 1 "0 passed, 0 failed"

test_case "cases that were not run are failures"
sample <<SAMPLE
$head
|fail "no fixture"
|test_case "one"
|true
|test_case "two"
|true
SAMPLE
says "NOT RUN of sample: 2 cases"
ends 1 "0 passed, 2 failed"
sample <<SAMPLE
$head
|exit 0
|test_case "one"
|true
SAMPLE
ends 1 "0 passed, 1 failed"
sample <<SAMPLE
$head
|test_case "one"
|true
|test_case "two"
|kill -TERM 0
|test_case "three"
|true
SAMPLE
ends 1 "1 passed, 2 failed"

test_case "a script without cases is one case"
sample <<SAMPLE
$head
|double 2 1
SAMPLE
ends 0 "1 passed, 0 failed"
sample <<SAMPLE
$head
|double 3 1
SAMPLE
says "FAILED: twice 1: wanted '3', got '2'"
ends 1 "0 passed, 1 failed"

test_case "behind a case that crashed a program, each of its other cases runs once"
program=$ROCEFS_BUILD/test/wire_test
[ -x "$program" ] || skip "no wire_test is built"
cat >"$tree/build/test/wire_test" <<END
#!/bin/bash
cd "$PWD"
[ "\$1" = --reporter ] || exec "$program" "\$@"
if [ -e "$tree/ran" ]; then
  "$program" "\$@"
  grep '<TestCase ' "\$4" >>"$tree/ran"
else
  echo '<TestCase name="the first"><FatalErrorCondition/>' | tee "\$4" >"$tree/ran"
  kill -ABRT \$\$
fi
END
chmod 755 "$tree/build/test/wire_test"
"$program" --list-test-names-only >"$tree/cases" || true  # its status is their number
grep -q , "$tree/cases" || fail "no name of a case has a comma"
status=0
said=$("$tree/test/run" "$tree/build" wire_test 2>&1) || status=$?
says "CRASHED wire_test (status 134): the first"
ends 1 "$(($(wc -l <"$tree/cases") - 1)) passed, 1 failed"
expect "$(wc -l <"$tree/cases")" "$(sort -u "$tree/ran" | wc -l)" "the cases that ran"
