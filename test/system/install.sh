#!/bin/bash
# Files that make install installs beside the programs: the systemd unit, which systemd accepts, the seccomp
# profile, and the documents about containers.
. "$(dirname "$0")/lib/common.bash"
cd "$(dirname "$0")/../.."
needs make
stage=$dir/stage
unit=$stage/usr/lib/systemd/system/rocefs@.service

test_case "make install puts the files into their directories"
# Runs only the parts of the recipe that need no build.
make -n install BUILD="$dir/build" DESTDIR="$stage" PREFIX=/usr | grep -E '^(install|sed) ' >"$dir/all"
grep -v "$dir/build/" "$dir/all" >"$dir/recipe"
bash -euo pipefail "$dir/recipe"
for file in share/rocefs/seccomp.json share/doc/rocefs/containers/README.md \
  lib/systemd/system/rocefs@.service lib/pkgconfig/mango.pc include/libmango.h include/rocefs_pcc.h include/rocefs_pcc_test.h \
  share/man/man1/{rocefs,rocefs-enter,rocefs-host,rocefs-attach,rocefs-sim}.1 share/bash-completion/completions/mango-ctl share/man/man3/libmango.3 share/man/man5/rocefs.ini.5; do
  [ -f "$stage/usr/$file" ] || fail "$file is not installed"
  ! grep -q '@PREFIX@' "$stage/usr/$file" || fail "$file has no prefix"
done
page=share/man/man1/mango-ctl.1
grep -qE "^install .* $dir/build/$page $stage/usr/$page\$" "$dir/all" || fail "$page is not installed"
[ -s "$ROCEFS_BUILD/$page" ] || fail "$page is not built"
cmp tools/containers/seccomp.json "$stage/usr/share/rocefs/seccomp.json"
# Files that need the sources, or belong beside them.
for file in Dockerfile compose.yaml crossing; do
  [ ! -e "$stage/usr/share/doc/rocefs/containers/$file" ] || fail "$file is installed, and cannot work there"
done

test_case "another package's program is not overwritten"
for program in rocefs mango-pccd mango-ctl; do
  theirs=$dir/theirs-$program/usr/bin/$program
  mkdir -p "$(dirname "$theirs")"
  printf '#!/bin/sh\necho "another program"\n' >"$theirs"
  chmod 755 "$theirs"
  make -n install BUILD="$dir/build" DESTDIR="$dir/theirs-$program" PREFIX=/usr |
    awk '/^for program in/, /done$/' >"$dir/guard"
  said=$(bash "$dir/guard" 2>&1) && fail "$program: somebody else's is overwritten"
  expect "rocefs: $theirs is somebody else's: nothing is installed" "$said" "$program"
done

test_case "the systemd unit starts the installed program and does not hide the mount"
grep -q '^ExecStart=/usr/bin/rocefs -f ' "$unit" || fail "the unit starts: $(grep ExecStart= "$unit")"
# A mount in a private namespace of the service would be invisible to everybody.
! grep -E '^(Private(Devices|Tmp|Mounts|Users)|Protect(System|Home|Kernel.*|ControlGroups|Hostname)|ReadWritePaths|BindPaths|RootDirectory|MountFlags|DynamicUser)=' "$unit" ||
  fail "the unit hides the mount"

test_case "systemd accepts the unit and refuses a broken one"
needs systemd-analyze systemd-escape
name=$(systemd-escape --path --template=rocefs@.service "$mnt")
sed "s|/usr/bin/rocefs|$ROCEFS|" "$unit" >"$dir/rocefs@.service"
ln -s rocefs@.service "$dir/$name"
said=$(systemd-analyze verify --man=no "$dir/$name" 2>&1 | grep -F "$name" || true)
expect "" "$said" "what systemd says of the unit"
sed 's/^KillMode=.*/KillMode=sometimes/' "$dir/rocefs@.service" >"$dir/broken@.service"
ln -s broken@.service "$dir/broken@mnt.service"
said=$(systemd-analyze verify --man=no "$dir/broken@mnt.service" 2>&1 | grep -c sometimes || true)
[ "$said" -gt 0 ] || fail "systemd says nothing of a broken unit"
