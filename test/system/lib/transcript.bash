# Transcripts: what a terminal shows, line by line. A line that begins with `~$ ` is run, the lines
# behind it are what it must print on stdout and stderr, and `[N]` its exit status if that is not 0.
# Then nothing may stand on stdout. `/path/to` is $dir; a line that begins with # is skipped.

# With $tree as its mount, whatever else is mounted.
mango-ctl() { (unset ROCEFS_MOUNT SYSFS_PATH; exec "$MANGO_CTL" --mount "$tree" "$@"); }
sudo() { "$@"; }

# TRANSCRIPT [SETTLE]: SETTLE is called with each command after it has run.
transcript() {
  local file=$1 settle=${2:-:} line command="" wanted="" ran=0
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      '#'*) continue ;;
      '~$ '*)
        run_line "$file" "$command" "$wanted" "$settle"
        command=${line#'~$ '} wanted="" ran=$((ran + 1))
        ;;
      *) wanted+=$line$'\n' ;;
    esac
  done <"$file"
  run_line "$file" "$command" "$wanted" "$settle"
  [ "$ran" -gt 0 ] || fail "$file: no commands"
}
run_line() {
  local file=$1 command=${2//\/path\/to/$dir} wanted=${3//\/path\/to/$dir} settle=$4 status=0 got errors
  [ -n "$command" ] || return 0
  eval "$command" >"$dir/stdout" 2>"$dir/stderr" </dev/null || status=$?
  IFS= read -rd '' got <"$dir/stdout" || true
  IFS= read -rd '' errors <"$dir/stderr" || true
  got+=$errors
  if [ "$status" -ne 0 ]; then
    got+="[$status]"$'\n'
    [ ! -s "$dir/stdout" ] || fail "$(basename "$file"): $command: an error, and on stdout: $(cat "$dir/stdout")"
  fi
  [ "$wanted" = "$got" ] || fail "$(basename "$file"): $command"$'\n'"$(diff <(echo -n "$wanted") <(echo -n "$got"))"
  "$settle" "$command"
}
