#!/bin/bash
# The files of tools/containers, as far as they can be tested without a container engine: the active seccomp
# profile, the image's sources and packages, and the names in compose.yaml.
. "$(dirname "$0")/lib/common.bash"
top=$(realpath "$(dirname "$0")/../..")
here=$top/tools/containers
cd "$top"
dockerfile=$(sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$here/Dockerfile")
needs_filters() {  # the profile in force
  needs python3 "${CC:-cc}"
  python3 "$lib/seccomp.py" refuse reboot=EPERM true || skip "no seccomp filters here"
  [[ $ROCEFS_BUILD != */?san ]] || skip "sanitizers call what programs do not"
}
under() { python3 "$lib/seccomp.py" profile "$here/seccomp.json" "$@"; }
strictly() { python3 "$lib/seccomp.py" strict "$here/seccomp.json" CAP_SYS_ADMIN,CAP_SYS_CHROOT "$@"; }

test_case "the image copies existing files and makes what is there"
for path in $(awk '$1 == "COPY" && $2 !~ /^--/ {for (i = 2; i < NF; ++i) print $i}' <<<"$dockerfile"); do
  [ -e "$path" ] || fail "the Dockerfile copies $path"
done
[ -x tools/make-deb ] && grep -q 'RUN tools/make-deb /packages' "$here/Dockerfile" || fail "the Dockerfile makes no packages"
# The sources that the build gets: all but what is ignored, and what of that is not.
left_out=$(grep -vE '^(#|!|\*)' "$here/Dockerfile.dockerignore" | xargs)
context=$dir/context
mkdir -p "$context"
for path in *; do [[ " $left_out " == *" $path "* ]] || cp -r "$path" "$context"; done
for path in $(sed -n 's/^!//p' "$here/Dockerfile.dockerignore"); do
  mkdir -p "$context/${path%/*}"
  cp "$path" "$context/$path"
done
make -C "$context" -n all >/dev/null 2>"$dir/said" || fail "the image's sources cannot be built: $(tail -n 3 "$dir/said")"

test_case "Debian 12 has the packages of the image"
wanted="$(sed -n 's/^ARG PROGRAMS="\(.*\)"/\1/p' "$here/Dockerfile") g++ make pkg-config"
[ "$(wc -w <<<"$wanted")" -ge 6 ] || fail "the image has only $wanted"
if grep -q 'VERSION_ID="12"' /etc/os-release && known=$(apt-cache pkgnames 2>/dev/null) && grep -qx fuse3 <<<"$known"; then
  for package in $wanted; do grep -qx -- "$package" <<<"$known" || fail "Debian 12 has no package $package"; done
else
  skip "not a Debian 12, or its packages are not known"
fi

test_case "the manifests are those of Kubernetes' schema, and mistakes are found"
python=/usr/bin/python3
"$python" -c 'import yaml, kubernetes' 2>/dev/null || skip "no python3-kubernetes"
"$python" "$lib/kubernetes_schema.py" "$here"/kubernetes*.yaml || fail "a manifest"
mistaken() {  # SED-SCRIPT TEXT: the manifest so changed is refused with that text
  local said status=0
  sed "$1" "$here/kubernetes.yaml" >"$dir/mistaken.yaml"
  said=$("$python" "$lib/kubernetes_schema.py" "$dir/mistaken.yaml") || status=$?
  [ $status -eq 1 ] && [[ $said == *"$2"* ]] || fail "$1: status $status, $said"
}
mistaken 's/mountPath/mountpath/' "unknown key mountpath"
mistaken '0,/privileged: true/s//privileged: "yes"/' "bool is wanted, not 'yes'"
mistaken '/selector:/,+1d' "\`selector\`, must not be \`None\`"
mistaken 's/matchLabels: {app: rocefs}/matchLabels: {app: nic}/' "the selector does not select the template"
mistaken 's/privileged: true/privileged: false/' "Bidirectional is for privileged containers"
mistaken '0,/- name: nics$/s//- name: nic/' "no volume"

test_case "compose.yaml gives two services all that a mount needs"
python3 -c 'import yaml' 2>/dev/null || skip "python3 has no yaml"
python3 - "$here" <<'PY' || fail "compose.yaml"
import ipaddress, os, sys, yaml
here = sys.argv[1]
file = yaml.safe_load(open(f"{here}/compose.yaml"))
subnet = ipaddress.ip_network(file["networks"]["wire"]["ipam"]["config"][0]["subnet"])
addresses = set()
assert set(file["services"]) == {"left", "right"}, file["services"]
for name, service in file["services"].items():
    known = {"image", "build", "init", "devices", "cap_add", "security_opt", "healthcheck", "command", "networks"}
    assert set(service) <= known, set(service) - known
    assert service["devices"] == ["/dev/fuse"] and service["cap_add"] == ["SYS_ADMIN"], service
    profile, apparmor = service["security_opt"]
    assert os.path.exists(os.path.join(here, profile.removeprefix("seccomp="))), profile
    assert apparmor == "apparmor=unconfined"
    context = os.path.join(here, service["build"]["context"])
    assert os.path.samefile(os.path.join(context, service["build"]["dockerfile"]), f"{here}/Dockerfile")
    address = service["networks"]["wire"]["ipv4_address"]
    assert ipaddress.ip_address(address) in subnet and address not in addresses, address
    addresses.add(address)
    assert service["command"] == ["rocefs", "-f", "-o", f"uplink={address}", "/nic"], service["command"]
    assert all(isinstance(word, str) for word in service["healthcheck"]["test"])
assert f"address=${{3:-{file['services']['left']['networks']['wire']['ipv4_address']}}}" in open(f"{here}/crossing").read()
PY

test_case "the README names the options that compose.yaml gives"
bash -n "$here/crossing"
for option in "--device /dev/fuse" "--cap-add SYS_ADMIN" seccomp=tools/containers/seccomp.json apparmor=unconfined rslave; do
  grep -qF -e "$option" "$here/README.md" || fail "README.md does not say $option"
done
for path in $(grep -oE '(tools|test)/[a-z_/]+\.[a-z]+' "$here/README.md" | sort -u); do
  [ -e "$path" ] || fail "README.md names $path"
done

test_case "the profile is well formed"
needs python3 "${CC:-cc}"
python3 "$lib/seccomp.py" check "$here/seccomp.json" || fail "seccomp.json"

test_case "a system call outside the profile kills"
needs_filters
expect "159 " "$(outcome_of strictly python3 -c 'import ctypes; ctypes.CDLL(None).syscall(1000)')" "a call that is not allowed"

test_case "with CAP_SYS_ADMIN a mount serves and is taken over under the profile"
needs_filters
$root && unshare -m true 2>/dev/null || skip "no mount namespaces for this user"
strictly "$ROCEFS" "$mnt" >/dev/null || fail "rocefs under the profile: status $?"
strictly bash "$lib/contained.bash" "$mnt" "$dir" || fail "in a container: status $?"
first=$(worker_pid)
kill -KILL "$first"
expect 0.25 "$(strictly cat "$debug/links/mb_0-sw_0/loss")" "after a takeover"
[ "$(worker_pid)" != "$first" ] || fail "no takeover"
! grep -E "SIGSYS|died of [^S]" "$debug/dmesg" || fail "a worker was killed by the filter"
kill -TERM "$(daemon_pid)"
await gone

test_case "without CAP_SYS_ADMIN files and programs work, mounts do not"
needs_filters
mounted
expect "4: ACTIVE" "$(under - cat "$ib/mb_0/ports/1/state")" "a file"
expect "0 $(cat "$debug/seed")" "$(outcome_of under - bash -c 'echo $(<"$1")' sh "$debug/seed")" "a shell"
mkdir "$dir/in"
for denied in "unshare -m true" "unshare -U true" "mount -t tmpfs none $dir/in" "umount $mnt" "chroot / true"; do
  text=$(LC_ALL=C outcome_of under - $denied)
  [[ $text != 0* && ($text == *"not permitted"* || $text == *"permission denied"* || $text == *"must be superuser"*) ]] ||
    fail "$denied, without CAP_SYS_ADMIN: $text"
done
mountpoint -q "$mnt" || fail "unmounted from a container that may not"
expect "0 1" "$(outcome_of under - python3 -c 'import threading; t = threading.Thread(target=print, args=(1,)); t.start(); t.join()')" "threads"
