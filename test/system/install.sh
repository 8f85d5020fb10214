#!/bin/bash
# `make install` and `make uninstall`: what is installed works without the checkout, is nobody else's, and goes away
# whole. Completions and the systemd unit are among it.
. "$(dirname "$0")/lib/common.bash"
top=$(realpath "$(dirname "$0")/../..")
cd "$top"
needs make
version=$(sed -n 's/^VERSION := //p' Makefile)
installation() {  # VERB… [NAME=VALUE…], with the build that is tested
  local verb=() setting=()
  for word; do case $word in *=*) setting+=("$word") ;; *) verb+=("$word") ;; esac; done
  env VERSION="$version" "${setting[@]}" "$top/tools/installation" "${verb[@]}"
}
stage=$dir/stage
unit=$stage/usr/lib/systemd/system/rocefs@.service
all_in() { (cd "$1" && find . -mindepth 1 | sort); }
# Runs lib/installed.bash where the checkout and the build are hidden.
used_in() {  # PREFIX SPACES…
  "${@:2}" -- bash "$lib/installed.bash" "$1" "$mnt" "$top" "$(realpath "$ROCEFS_BUILD")" 2>&1
}
needs_hiding() {
  needs pkg-config cc g++
  [[ $ROCEFS_BUILD != */?san ]] || skip "sanitizers look for their sources"
}
completed() {  # WORDS… UNFINISHED: in bash
  COMP_WORDS=("$ROCEFS" "$@") COMP_CWORD=$#
  _rocefs
  printf '%s\n' "${COMPREPLY[@]}" | xargs
}
. tools/completions/rocefs.bash

test_case "make tells the script what it is told"
words=$(make -n install BUILD=/nowhere DESTDIR=/stage PREFIX="/opt/the nic" LIBDIR=/opt/lib64 -o all | tail -n 1)
for word in "DESTDIR='/stage'" "PREFIX='/opt/the nic'" "LIBDIR='/opt/lib64'" "UNITDIR='/opt/the nic/lib/systemd/system'" \
  VERSION="'$version'" "tools/installation install /nowhere"; do
  [[ $words == *"$word"* ]] || fail "no $word in: $words"
done
words=$(make -n install PREFIX="/home/o'neill" -o all | tail -n 1)
expect "/home/o'neill" "$(bash -c "${words% tools/*} printenv PREFIX")" "a prefix with a quote"
[[ $(make -n uninstall | tail -n 1) == *"PREFIX='/usr/local'"*"tools/installation remove" ]] || fail "uninstall"

test_case "the files are in their directories, and nobody else may write them"
(umask 000; installation install "$ROCEFS_BUILD" DESTDIR="$stage" PREFIX=/usr >"$dir/said")
for file in bin/{rocefs,rocefs-top,rocefs-view,mango-ctl,mango-pccd} lib/rocefs/librocefs-rdmav{34,57,59,64}.so lib/libmango.so.1 \
  share/rocefs/seccomp.json share/doc/rocefs/README.md share/doc/rocefs/doc/changelog.md share/doc/rocefs/examples/scenarios/incast.ini \
  lib/systemd/system/rocefs@.service lib/pkgconfig/mango.pc include/{libmango,rocefs_pcc,rocefs_pcc_test}.h \
  share/man/man1/{rocefs,rocefs-enter,rocefs-host,rocefs-attach,rocefs-sim,rocefs-top,rocefs-view,mango-ctl,mango-pccd}.1 \
  share/man/man3/{libmango,rocefs_pcc}.3 share/man/man5/rocefs.ini.5 \
  share/bash-completion/completions/{rocefs,mango-ctl} share/zsh/site-functions/_{rocefs,mango-ctl}; do
  [ -f "$stage/usr/$file" ] || fail "$file is not installed"
  ! grep -qE '@(PREFIX|LIBDIR|VERSION|ROCEFS)@' "$stage/usr/$file" || fail "$file has a word that was to be replaced"
done
expect libmango.so.1 "$(readlink "$stage/usr/lib/libmango.so")" "libmango.so"
expect "" "$(find "$stage/usr" ! -type l -perm /022)" "what others may write"
expect "" "$(find "$stage/usr" -type f -perm /111 ! -path '*/bin/*')" "what is a program, and should not be"
expect "" "$(grep -rlF "$top" "$stage"/usr/{include,share,lib/pkgconfig,lib/systemd})" "texts that name the checkout"

test_case "what the documents link to, and name, is installed beside them"
documents=$stage/usr/share/doc/rocefs
expect "$(ls README.md doc/*.md)" "$(cd "$documents" && ls README.md doc/*.md)" "documents"
while IFS=: read -r file link; do
  [[ $link == http* || -e $(dirname "$documents/$file")/${link%%#*} ]] || fail "$file links to $link"
done < <(cd "$documents" && grep -roE --include='*.md' '\]\([^) ]+\)' . | sed 's/\](//; s/)$//')
# Directories of examples; the rest of tools/ is sources.
while read -r path; do
  compgen -G "$documents/$path" >/dev/null || fail "$path is named, and not installed"
done < <(cat README.md doc/*.md doc/man/* <("$ROCEFS" sim --help) |
  grep -oE 'tools/(scenarios|examples|containers|ci|grafana)\b[A-Za-z0-9_./*-]*' | sed 's/\.$//' | sort -u)
while read -r path; do
  [ -e "$documents/tools/containers/$path" ] || fail "containers/README.md names $path"
done < <(grep -oE '`[A-Za-z./-]+\.ya?ml`|`(crossing|Dockerfile)`' tools/containers/README.md | tr -d "\`" | sort -u)
while read -r path; do
  [ -d "$stage/usr/$path" ] || fail "$path is not a directory of what is installed"
done < <({ "$ROCEFS" sim --help; cat doc/man/*; } | grep -oE 'share/doc/rocefs[a-z/]*' | sort -u)

test_case "libraries, units and zsh's functions have places of their own where a distribution wants it"
installation install "$ROCEFS_BUILD" DESTDIR="$dir/multiarch" PREFIX=/usr LIBDIR=/usr/lib/some-gnu UNITDIR=/lib/systemd/system \
  ZSHDIR=/usr/share/zsh/vendor-completions >/dev/null
for file in usr/lib/some-gnu/{libmango.so,libmango.so.1,pkgconfig/mango.pc} lib/systemd/system/rocefs@.service \
  usr/share/zsh/vendor-completions/_rocefs usr/lib/rocefs/librocefs-rdmav34.so; do
  [ -e "$dir/multiarch/$file" ] || fail "no $file"
done
grep -qx libdir=/usr/lib/some-gnu "$dir/multiarch/usr/lib/some-gnu/pkgconfig/mango.pc" || fail "mango.pc"
installation remove DESTDIR="$dir/multiarch" PREFIX=/usr LIBDIR=/usr/lib/some-gnu UNITDIR=/lib/systemd/system \
  ZSHDIR=/usr/share/zsh/vendor-completions
expect "" "$(all_in "$dir/multiarch")" "what is left"

test_case "another package's file is not overwritten, and nothing is installed beside it"
for file in bin/rocefs bin/mango-pccd bin/mango-ctl include/libmango.h share/man/man1/rocefs.1; do
  theirs=$dir/theirs/usr/$file
  mkdir -p "$(dirname "$theirs")"
  printf '#!/bin/sh\necho "another program"\n' >"$theirs"
  chmod 755 "$theirs"
  said=$(installation install "$ROCEFS_BUILD" DESTDIR="$dir/theirs" PREFIX=/usr 2>&1) && fail "$file: somebody else's is overwritten"
  expect "rocefs: $theirs is somebody else's: nothing is installed" "$said" "$file"
  expect "./usr/$file" "$(cd "$dir/theirs" && find . -type f)" "what is there"
  rm -r "$dir/theirs"
done

test_case "uninstall removes all of ours, and nothing that somebody has put there or changed"
mkdir -p "$dir/shared/usr/share/man/man1" "$dir/shared/usr/lib/rocefs"
echo theirs | tee "$dir/shared/usr/share/man/man1/other.1" >"$dir/shared/usr/lib/rocefs/other.so"
before=$(all_in "$dir/shared")
installation install "$ROCEFS_BUILD" DESTDIR="$dir/shared" PREFIX=/usr >/dev/null
mkdir "$dir/shared/usr/include/sys"
echo "# edited" >>"$dir/shared/usr/lib/systemd/system/rocefs@.service"
said=$(installation remove DESTDIR="$dir/shared" PREFIX=/usr 2>&1)
expect "rocefs: $dir/shared/usr/lib/systemd/system/rocefs@.service has changed since it was installed, and stays" "$said" "what it says"
rm -r "$dir/shared/usr/lib/systemd" "$dir/shared/usr/include"
expect "$before" "$(all_in "$dir/shared")" "what is left"
said=$(installation remove DESTDIR="$dir/shared" PREFIX=/usr 2>&1) && fail "removed twice"
expect "rocefs: $dir/shared/usr/share/rocefs/manifest is not there: nothing is installed" "$said" "the second time"

test_case "a newer version takes the place of an older one, and its files that are no more go"
mkdir "$dir/newer"
installation install "$ROCEFS_BUILD" DESTDIR="$dir/newer" PREFIX=/usr >/dev/null
echo old >"$dir/newer/usr/include/old.h"
echo "file $(sha256sum <"$dir/newer/usr/include/old.h" | cut -d ' ' -f 1) /usr/include/old.h" >>"$dir/newer/usr/share/rocefs/manifest"
echo edited >>"$dir/newer/usr/share/rocefs/seccomp.json"
installation install "$ROCEFS_BUILD" DESTDIR="$dir/newer" PREFIX=/usr >/dev/null
[ ! -e "$dir/newer/usr/include/old.h" ] || fail "a file of the older version is there"
cmp tools/containers/seccomp.json "$dir/newer/usr/share/rocefs/seccomp.json"
installation remove DESTDIR="$dir/newer" PREFIX=/usr
expect "" "$(all_in "$dir/newer")" "what is left"

test_case "a manifest of somebody else's making removes nothing outside"
mkdir -p "$dir/trap/usr/share/rocefs" "$dir/trap/etc"
echo precious | tee "$dir/trap/etc/passwd" >"$dir/trap/usr/mine"
mark=$(sha256sum <"$dir/trap/etc/passwd" | cut -d ' ' -f 1)
for path in /etc/passwd /usr/../etc/passwd /usr/mine; do echo "file $mark $path"; done >"$dir/trap/usr/share/rocefs/manifest"
said=$(installation remove DESTDIR="$dir/trap" PREFIX=/usr 2>&1)
expect 2 "$(grep -c 'is below none of PREFIX, LIBDIR, UNITDIR and ZSHDIR, and stays$' <<<"$said")" "what it says: $said"
expect "precious" "$(cat "$dir/trap/etc/passwd")" "a file outside"
[ ! -e "$dir/trap/usr/mine" ] || fail "a file inside stays"

test_case "nor through a link, nor an empty directory"
mkdir -p "$dir/links/usr/share/rocefs" "$dir/links/home/empty"
echo precious >"$dir/links/home/file"
ln -s ../home "$dir/links/usr/bin"
{
  echo "file $(sha256sum <"$dir/links/home/file" | cut -d ' ' -f 1) /usr/bin/file"
  printf 'directory - %s\n' /home/empty /usr/bin/empty /usr/share/rocefs
} >"$dir/links/usr/share/rocefs/manifest"
installation remove DESTDIR="$dir/links" PREFIX=/usr >/dev/null 2>&1
expect "empty file" "$(ls "$dir/links/home" | xargs)" "what is left outside"
[ ! -e "$dir/links/usr/share/rocefs" ] || fail "a directory inside stays"

test_case "a path that is not absolute is refused"
said=$(installation install "$ROCEFS_BUILD" PREFIX=prefix 2>&1) && fail "installed into prefix"
expect "rocefs: 'prefix': an absolute path is wanted" "$said" "what it says"

test_case "what is installed in a prefix of a user works without the checkout, and is removed whole"
needs_hiding
unshare -Urm true 2>/dev/null || skip "no user namespaces"
mkdir -p "$dir/a home"
before=$(all_in "$dir/a home")
installation install "$ROCEFS_BUILD" PREFIX="$dir/a home/.local" >/dev/null
if $root; then spaces=(unshare -m); else spaces=(unshare -Urm); fi
said=$(used_in "$dir/a home/.local" "${spaces[@]}") || fail "$said"
expect works "$said" "in a prefix with a blank"
installation remove PREFIX="$dir/a home/.local"
expect "$before" "$(all_in "$dir/a home")" "what is left"

test_case "what is installed in /usr/local works without the checkout, and is removed whole"
needs_hiding
needs_root
unshare -m true 2>/dev/null || skip "no mount namespaces"
[[ $(realpath "$top") != /usr/* ]] || skip "the checkout is in /usr"
# An empty /usr/local for these alone.
cat >"$dir/local" <<'LOCAL'
set -euo pipefail
mount -t tmpfs -o mode=755 none /usr/local
tools/installation install "$2" >/dev/null
unshare -m bash "$3" /usr/local "$4" "$1" "$2"
tools/installation remove
find /usr/local -mindepth 1
LOCAL
said=$(VERSION=$version unshare -m bash "$dir/local" "$top" "$(realpath "$ROCEFS_BUILD")" "$lib/installed.bash" "$mnt" 2>&1) ||
  fail "$said"
expect works "$said" "in /usr/local"

test_case "bash completes commands, options and mount options of rocefs"
cd "$dir"
expect enter "$(completed en)" "a command"
for command in $("$ROCEFS" --help | sed -n 's/^ *rocefs \([a-z]*\) .*/\1/p' | grep -v /); do
  expect "$command" "$(completed "$command")" "rocefs $command"
  [[ $(completed "$command" -) == *--help* ]] || fail "options of rocefs $command"
done
expect "-f -d -h --help -V --version" "$(completed -)" "options"
expect "uid= gid=" "$(completed -o uid) $(completed -o gid)" "mount options"
expect seed=1,clock= "$(completed -o seed=1,cl)" "a second mount option"
[[ $(completed enter -- ibstat) == *ibstat* ]] || ! command -v ibstat >/dev/null || fail "commands behind enter"
touch "$dir/a.ini"
expect "$dir/a.ini" "$(completed sim "$dir/a.")" "the file of sim"

test_case "bash completes a file where one is wanted, and values"
touch "$dir/a pair.ini"
for words in run "run --keep never" "run -o seed = 1" "run -o seed=1,allow_other" "view --replay" "view --record" "attach mb_0 --netns"; do
  expect "$dir/a.ini" "$(completed $words "$dir/a.")" "a file behind $words"
done
expect "$dir/a pair.ini|" "$(completed run "$dir/a p" >/dev/null; printf '%s|' "${COMPREPLY[@]}")" "a file with a blank"
expect "failure always never" "$(completed run --keep '')" "when a run's mount stays"
expect always "$(completed run --keep a)" "a time when it stays"
expect uid= "$(completed run -o ui)" "a mount option of a run"
expect seed=1,clock= "$(completed run -o seed=1,cl)" "its second mount option"
expect seed= "$(completed sim -o '')" "the option of sim"
# Bash makes words of it at each "=".
for run in "" run; do
  expect "$dir/a.ini" "$(completed $run -o config = "$dir/a.")" "the file of config="
  expect "$dir/a.ini" "$(completed $run -o seed = 1,config = "$dir/a.")" "the file of a second option"
  [[ $(completed $run -o config =) == *a.ini* ]] || fail "the files of config="
  expect "config=$dir/a.ini" "$(completed $run -o config="$dir/a.")" "the file in one word"
  expect 1,clock= "$(completed $run -o seed = 1,cl)" "an option behind a value"
  expect "real virtual" "$(completed $run -o clock =)" "clocks"
  expect clock=virtual "$(completed $run -o clock=v)" "a clock in one word"
  expect "" "$(completed $run -o seed = "")" "numbers"
done

test_case "zsh completes both programs"
needs zsh
cat >"$dir/complete" <<'ZSH'
setopt extendedglob
compadd() { while [[ $1 == -* && $1 != -- ]]; do [[ $1 == -S ]] && shift; shift; done; shift; print -r -- $*; }
_files() { [[ $1 == -/ ]] && print -r -- DIRECTORIES || print -r -- FILES }
_normal() { print -r -- NORMAL $CURRENT $words }
compset() { : }
functions[complete]="$(<$1)"
shift
words=("$@")
CURRENT=$#words
complete
ZSH
zsh_offers() { zsh -f "$dir/complete" "$top/tools/completions/$1" "${@:2}" | xargs; }
ctl=$(dirname "$ROCEFS")/mango-ctl
for command in $(zsh_offers _rocefs "$ROCEFS" ''); do
  [ "$command" = DIRECTORIES ] || expect "$command" "$(completed "$command")" "rocefs $command, as in bash"
done
[[ $(zsh_offers _rocefs "$ROCEFS" '') == *enter*sim*DIRECTORIES ]] || fail "commands"
expect "-f -d -h --help -V --version" "$(zsh_offers _rocefs "$ROCEFS" -)" "options"
[[ $(zsh_offers _rocefs "$ROCEFS" -o '') == *clock=*allow_other* ]] || fail "mount options"
for words in run "run -o seed=1" "run -o seed=1,config=a" "-o config=a" sim "view --replay" "view --record" "attach mb_0 --netns"; do
  behind=('') && [[ $words != *config* ]] || behind=()
  expect FILES "$(zsh_offers _rocefs "$ROCEFS" $words "${behind[@]}")" "a file behind $words"
done
expect "failure always never" "$(zsh_offers _rocefs "$ROCEFS" run --keep '')" "when a run's mount stays"
[[ $(zsh_offers _rocefs "$ROCEFS" run -o '') == *clock=*allow_other* ]] || fail "mount options of run"
expect seed= "$(zsh_offers _rocefs "$ROCEFS" sim -o '')" "the option of sim"
expect "real virtual" "$(zsh_offers _rocefs "$ROCEFS" -o seed=1,clock=)" "clocks"
expect "NORMAL 1 ibst" "$(zsh_offers _rocefs "$ROCEFS" enter -m /mnt ibst)" "a command behind enter"
expect "$("$ctl" --complete rdma pcc '' | xargs)" "$(zsh_offers _mango-ctl "$ctl" rdma pcc '')" "words of mango-ctl"

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
# A program whose path has a blank and a percent sign.
mkdir "$dir/a 50% home"
installation install "$ROCEFS_BUILD" PREFIX="$dir/a 50% home" UNITDIR="$dir/units" >/dev/null
ln -s rocefs@.service "$dir/units/$name"
said=$(systemd-analyze verify --man=no "$dir/units/$name" 2>&1 | grep -F "$name" || true)
expect "" "$said" "what systemd says of a path with a blank"
