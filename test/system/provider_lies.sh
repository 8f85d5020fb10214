#!/bin/bash
# The provider against an engine that lies: test/lies/liar.c tells a program one lie at a time. The
# program ends by itself, without a signal, and says what failed, or is not affected.
. "$(dirname "$0")/lib/common.bash"
lies=$ROCEFS_BUILD/test/lies

mounted
needs_enter
program=("$lies/program")
lie() {  # LIE STATUS
  local status=0 share=0
  [[ $1 != shared-* ]] || share=1
  timeout -k 5 60 "$ROCEFS" enter -m "$mnt" -- env LIE="$1" ROCEFS_SHARE_REGIONS=$share LD_PRELOAD="$lies/liar.so" \
    "${program[@]}" >"$dir/$1" 2>&1 || status=$?
  [ $status = "$2" ] && [ -s "$dir/$1" ] || echo "$1: status $status: $(cat "$dir/$1")" >>"$dir/failed"
}
# Several run at a time: a program mostly waits.
all() {  # STATUS LIE…
  local status=$1 name
  shift
  for name; do
    [ "$(jobs -rp | wc -l)" -lt 6 ] || wait -n
    lie "$name" "$status" &
  done
  wait
}
ended() {
  [ -e "$dir/failed" ] || return 0
  mv "$dir/failed" "$dir/told"
  fail "$(cat "$dir/told")"
}

test_case "the program runs without errors against an honest engine"
all 0 none
ended

test_case "lies about the copier do not affect a program"
all 0 copier-few copier-small copier-unsealed copier-elsewhere
all 0 hello-many region-many qp-many shared-small shared-unsealed shared-far shared-odd destroy-qp-events destroy-cq-events
ended

test_case "an engine that touches much memory is waited for, in other requests it is given up"
all 0 region-late
all 1 domain-late
ended

test_case "lies in the greeting end a program cleanly"
all 1 hello-short hello-end hello-silence hello-error hello-codes hello-few hello-small hello-unsealed hello-no-memory hello-pipe \
  hello-ports hello-inline port-gids port-end region-short
! grep -q '[[:cntrl:]]' "$dir/hello-codes" || fail "an escape sequence of the engine's reaches the terminal"
ended

test_case "lies about completion queues end a program cleanly"
all 1 cq-end cq-few cq-small cq-unsealed cq-large cq-odd cq-none cq-entries resize-small resize-entries
ended

test_case "lies about receive queues and queue pairs end a program cleanly"
all 1 srq-few srq-small srq-far srq-doorbell
all 1 qp-short qp-few qp-small qp-unsealed qp-large qp-sends qp-receives qp-odd qp-none qp-entries qp-doorbell \
  qp-number qp-inline
ended

test_case "lies in completions and events end a program cleanly"
all 1 far-ahead made-up-pair made-up-number made-up-status made-up-opcode released-ahead posted-ahead destroy-cq-end
all 1 pair-event queue-event port-event unknown-event completion-event
ended

test_case "lies to libmango end its program cleanly"
# Lies to libmango, whose program runs beside the tree.
program=("$lies/pcc_program")
export ROCEFS_MOUNT=/sys
all 0 none pcc-many pcc-late pcc-changing
all 1 pcc-short pcc-few pcc-small pcc-unsealed
ended

test_case "lies to librdmacm end its program cleanly"
# Lies to librdmacm: a client without a server, with two exit statuses for failure.
needs rping
program=(rping -c -a 10.77.0.2 -p 7999)
all 22 cm-pipe cm-few cm-end
all 255 none cm-nobody cm-of-no-id cm-of-a-group cm-request cm-half cm-again cm-take cm-number cm-destroy cm-address \
  cm-port cm-paths
ended
