#!/bin/bash
# rocefs view: who may ask its server for what, and what it answers.
. "$(dirname "$0")/lib/common.bash"
. "$(dirname "$0")/lib/view.bash"

test_case "a file can be read, nothing beside the mount, no device"
mount_one "$dir/star.ini"
serve "$mnt"
expect 9 "$(get "$site/api/list?path=class/infiniband" | grep -o '"name"' | wc -l)" "entries"
expect "$(cat "$mnt/$loss")" "$(get "$site/api/file?path=$loss")" "a file"
for outside in ./dev/infiniband/issm0 dev//infiniband/issm0 ../../etc/passwd /etc/passwd class/infiniband/../../../../../etc/passwd "$dir/star.ini" ''; do
  get "$site/api/file?path=$outside" | grep -q '"errno":"E' || fail "$outside: $(get "$site/api/file?path=$outside" | head -n 1)"
done
get "$site/api/file?path=dev/infiniband/issm0" | grep -q EPERM || fail "a device was opened"
get --path-as-is "$site/../../etc/passwd" | grep -q ENOENT || fail "a page of the machine"

test_case "only the page with the token stores, and the errors are those of echo"
mount_one "$dir/star.ini"
serve "$mnt"
store "$loss" 0.5 | grep -q '"errno":"EPERM"' || fail "without a token"
store "$loss" 0.5 -H "X-Rocefs-Token: x${token#?}" | grep -q '"errno":"EPERM"' || fail "another token"
store "$loss" 0.5 -H "X-Rocefs-Token: 0" | grep -q '"errno":"EPERM"' || fail "a short token"
expect 0 "$(cat "$mnt/$loss")" "what was refused"
expect true "$(store "$loss" 0.5 -H "X-Rocefs-Token: $token")" "a store"
expect 0.5 "$(cat "$mnt/$loss")" "what was stored"
store "$loss" 7 -H "X-Rocefs-Token: $token" >"$dir/said"
grep -q '"errno":"EINVAL"' "$dir/said" && grep -q "is outside 0 to 1 (EINVAL)" "$dir/said" || fail "$(cat "$dir/said")"
store nothing 7 -H "X-Rocefs-Token: $token" | grep -q '"errno":"ENOENT"' || fail "a file that is not there"
get -X POST --data-binary 'no json' -H "X-Rocefs-Token: $token" "$site/api/store" | grep -q '"errno":"EINVAL"' || fail "no JSON"
expect 0.5 "$(cat "$mnt/$loss")" "after mistakes"

test_case "a page of another site stores and reads nothing"
mount_one "$dir/star.ini"
serve "$mnt"
with_token=(-H "X-Rocefs-Token: $token")
store "$loss" 0.5 "${with_token[@]}" -H "Origin: http://evil.example" | grep -q '"errno":"EPERM"' || fail "another origin"
store "$loss" 0.5 "${with_token[@]}" -H "Origin: http://127.0.0.1:1" | grep -q '"errno":"EPERM"' || fail "another port"
# A name that the attacker makes lead here (DNS rebinding).
for host in evil.example:$port evil.example 127.0.0.1.evil.example:$port; do
  store "$loss" 0.5 "${with_token[@]}" -H "Host: $host" -H "Origin: http://$host" | grep -q '"errno":"EPERM"' || fail "a store for $host"
  get -H "Host: $host" "$site/api/shape" | grep -q '"errno":"EPERM"' || fail "a look for $host"
done
get -D - -o /dev/null -H 'Origin: http://evil.example' "$site/api/shape" | grep -qi 'access-control' && fail "others may read"
expect 0 "$(cat "$mnt/$loss")" "what was refused"
expect true "$(store "$loss" 0.5 "${with_token[@]}" -H "Origin: $site")" "its own origin"

test_case "a body without a length, or packed, is not read, nor is one without the token"
mount_one "$dir/star.ini"
serve "$mnt"
head -c 100M /dev/zero >"$dir/large"
highest() { awk '/VmHWM/ {print $2}' "/proc/$server/status"; }
before=$(highest)
for options in '-H Transfer-Encoding:chunked' '-H Content-Encoding:gzip' ''; do
  get -X POST $options --data-binary @"$dir/large" -H "X-Rocefs-Token: $token" "$site/api/store" >"$dir/said" 2>"$dir/curl" || true
  # A fifth of what was sent: threads and their buffers, but not a body.
  [ $(($(highest) - before)) -lt 20480 ] || fail "$options: $before KB before, $(highest) now"
done
store "$loss" 0.5 -H 'Transfer-Encoding: chunked' -H "X-Rocefs-Token: $token" | grep -q '"errno":"EINVAL"' || fail "chunked"
expect 0 "$(cat "$mnt/$loss")" "what was refused"
get -H 'Sec-Fetch-Site: cross-site' "$site/api/file?path=$loss" | grep -q '"errno":"EPERM"' || fail "another site's picture"

test_case "an empty text is stored as by echo"
mount_one "$dir/star.ini"
serve "$mnt"
get -X POST --data-binary "{\"path\": \"$loss\", \"text\": \"\"}" -H "X-Rocefs-Token: $token" "$site/api/store" >"$dir/said"
grep -q '"errno":"EINVAL"' "$dir/said" || fail "$(cat "$dir/said")"
grep -q 'is wanted (EINVAL)' "$dir/said" || fail "no reason: $(cat "$dir/said")"

test_case "ranges are ignored: many of them ask for no more than the page"
mount_one "$dir/star.ini"
serve "$mnt"
get -o "$dir/page" "$site/"
for ranges in 0-14 "0-$(printf ',0-%.0s' {1..2000})"; do
  expect 200 "$(get -o "$dir/said" -w '%{http_code}' -H "Range: bytes=$ranges" "$site/")" "the status"
  cmp "$dir/page" "$dir/said" || fail "$(stat -c %s "$dir/said") octets"
done

test_case "an error has its own reason"
mount_one "$dir/star.ini"
serve "$mnt"
reason() { get -w ' %{http_code}' "$@"; }
expect '{"errno":"ENOENT","reason":"no such page"} 404' "$(reason "$site/none")" "no page"
expect '{"errno":"EINVAL","reason":"not a request of HTTP that this server takes"} 400' "$(reason -X BREW "$site/")" "no method"
expect '{"errno":"EFBIG","reason":"a body has at most 64 KiB"} 413' \
  "$(head -c 100K /dev/zero | reason -X POST --data-binary @- -H "X-Rocefs-Token: $token" "$site/api/store")" "a long body"
expect '{"errno":"ENAMETOOLONG","reason":"an address has at most 8192 octets"} 414' \
  "$(reason "$site/$(printf 'a%.0s' {1..9000})")" "a long address"
expect '{"errno":"EINVAL","reason":"no such range"} 416' "$(reason -H 'Range: bytes=9-2' "$site/")" "no range"
expect "1 rocefs view: 192.0.2.1:8470: Cannot assign requested address" "$(outcome_of timeout 20 "$view" -m "$mnt" --listen 192.0.2.1:8470)" "an address of another machine"
