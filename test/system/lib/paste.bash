# paste.bash BLOCK: runs a block of commands as a shell runs what is pasted into it, one command after the
# other in this shell. The block fails with the first command whose status is not 0, or whose output
# (both streams, blanks and newlines as one blank) is not what its `# => TEXT` says. `…` in TEXT stands
# for any text; a command with a TEXT may have any status.
block=$1 output=$(mktemp)
trap 'rm -f "$output"' EXIT
export LC_ALL=C.UTF-8

# True if the shell would begin to run this: no quote, loop, function or here-document is open.
is_complete() {
  local said
  [[ $1 != *\\$'\n' ]] && said=$(bash -n <<<"$1" 2>&1) && [ -z "$said" ]
}
# TEXT as a pattern: every character is itself but for `…`.
pattern_of() { sed 's/[][*?\\]/\\&/g; s/…/*/g' <<<"$1"; }
one_line() { tr -s '[:space:]' ' ' <"$1" | sed 's/^ //; s/ $//'; }
# The words of a command that has failed the block.
refuse() {
  echo "$(one_line <(printf %s "$command"))"
  echo "  $1"
  exit 1
}

ran=0 command=
exec 9<"$block"
while IFS= read -r line <&9; do
  command+=$line$'\n'
  is_complete "$command" || continue
  if [[ $command =~ ^[[:space:]]*(#.*)?$ ]]; then
    command=
    continue
  fi
  wanted=$(sed -n 's/.*# => //p' <<<"$command")
  status=0
  eval "$command" >"$output" 2>&1 </dev/null 9<&- || status=$?
  ran=$((ran + 1))
  if [[ $command == *'# => '* ]]; then
    got=$(one_line "$output") pattern=$(pattern_of "$wanted")
    # shellcheck disable=SC2053
    [[ $got == $pattern ]] || refuse "wanted: $wanted"$'\n'"  got:    $got (status $status)"
  elif [ "$status" -ne 0 ]; then
    refuse "status $status: $(one_line "$output")"
  fi
  command=
done
[ -z "$command" ] || refuse "the block ends in the middle of a command"
echo "$ran commands"
