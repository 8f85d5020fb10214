#!/bin/bash
# The GitLab recipe builds the packages of a commit once: those of a branch that has moved are built anew. Programs that
# it calls stand beside it; test/packages/recipes runs the whole in a Debian.
. "$(dirname "$0")/lib/common.bash"
needs git
top=$(realpath "$(dirname "$0")/../..")
export HOME=$dir/home GIT_CONFIG_NOSYSTEM=1
mkdir -p "$dir"/{home,programs,source,job}
git config --global user.name ci
git config --global user.email ci@rocefs.invalid
git -C "$dir/source" init -q -b main
cat >"$dir/programs/make" <<'MAKE'
#!/bin/bash
echo build >>"$HOME/log"
mkdir -p rocefs/build/deb && cp rocefs/version rocefs/build/deb/rocefs_1.deb
MAKE
cat >"$dir/programs/apt-get" <<'APT'
#!/bin/bash
for word; do [[ $word != *.deb ]] || echo "install $(cat "$word")" >>"$HOME/log"; done
APT
printf '#!/bin/bash\n' >"$dir/programs/rocefs"
chmod +x "$dir"/programs/*
version() { echo "$1" >"$dir/source/version" && git -C "$dir/source" add version && git -C "$dir/source" commit -q -m "$1"; }
# What the job says to have built and installed. The cache is what it left in packages/, for the same key.
job() {  # ROCEFS_VERSION
  local key
  rm -f "$HOME/log"
  rm -rf "$dir/job/rocefs"
  key=$(sed -n "s/^    key: //p" "$top/tools/ci/gitlab.yml")
  mkdir -p "$dir/cache/${key//\$ROCEFS_VERSION/$1}"
  ln -sfn "$dir/cache/${key//\$ROCEFS_VERSION/$1}" "$dir/cached"
  rm -rf "$dir/job/packages"
  ! [ -d "$dir/cached/packages" ] || cp -r "$dir/cached/packages" "$dir/job"
  sed -n '/^  before_script:/,/^  script:/s/^    - //p' "$top/tools/ci/gitlab.yml" | sed "/^trap /d; s|/tmp/nic|$dir/nic|" >"$dir/steps"
  (cd "$dir/job" && PATH=$dir/programs:$PATH ROCEFS=file://$dir/source ROCEFS_VERSION=$1 bash -eo pipefail "$dir/steps" >"$dir/said" 2>&1) ||
    fail "$(cat "$dir/said")"
  rm -rf "$dir/cached/packages" && cp -r "$dir/job/packages" "$dir/cached"
  xargs <"$HOME/log"
}

test_case "a branch is built once for each of its commits"
version one
first=$(git -C "$dir/source" rev-parse HEAD)
expect "build install one" "$(job main)" "the first time"
expect "install one" "$(job main)" "the second time"
version two
expect "build install two" "$(job main)" "a commit later"
expect "install two" "$(job main)" "once more"
expect 1 "$(ls "$dir/job/packages" | wc -l)" "commits in the cache"

test_case "a tag and a commit are built, too"
git -C "$dir/source" tag v2
git -C "$dir/source" config uploadpack.allowReachableSHA1InWant true
expect "install two" "$(job v2)" "a tag of the same commit"
expect "build install one" "$(job "$first")" "an older commit"
