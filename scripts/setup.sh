#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# setup.sh {demo|test|lint|fuzz}: installs what that target needs: Debian packages (packages.txt) and
# Python packages (requirements/<target>.txt) in .venv. Does nothing, quickly, when all is there.
#   PYTHON=...       the interpreter that .venv is made from (default: the present .venv's, else python3)
#   BYWAY_NO_APT=1   leave Debian packages alone: the tools come from elsewhere
#   TORCH=...        the torch that `test` installs (default torch==2.13.0) where .venv has none that fits
#   BYWAY_NO_TORCH=1 leave torch out
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$@" >&2; exit 1; }

# Names of the sections up to and including $1: each section adds to those before it.
packages_for() {
  awk -v last="$1" '
    /^#/ { section = $2; sub(":", "", section); if (done) exit; if (section == last) done = 1; next }
    NF { print $1 }' packages.txt
}

missing_packages() {
  local name
  for name in $(packages_for "$1"); do
    # A provided name (a virtual package) is not looked up: the list names real packages only.
    [[ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" == installed ]] || printf '%s ' "$name"
  done
}

install_packages() {
  if [[ "${BYWAY_NO_APT:-}" == 1 ]]; then return; fi
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: expecting the equivalents of packages.txt to be installed"
    return
  fi
  local missing as_root=()
  missing=$(missing_packages "$1")
  if [[ -z "$missing" ]]; then return; fi
  if [[ $(id -u) -ne 0 ]]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      die "Debian packages are missing and this is not root. Run as root, then start again:" \
        "  apt-get install --no-install-recommends -y $missing"
    fi
  fi
  say "installing Debian packages: $missing"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  # A stale list is no reason to stop: the install below says what is really missing.
  "${apt[@]}" update </dev/null || say "apt-get update failed; going on with the lists at hand"
  # shellcheck disable=SC2086  # one word per package
  "${apt[@]}" install --no-install-recommends -y $missing </dev/null >/dev/null \
    || die "apt-get could not install: $missing"
}

# What a virtual environment is made from: a different answer means that .venv must be made anew.
python_identity() { "$1" -c 'import sys; print(sys.version, sys.base_prefix)'; }

make_venv() {
  local python=${PYTHON:-python3}
  command -v "$python" >/dev/null || die "no interpreter '$python'; name one with PYTHON=..."
  if [[ -x .venv/bin/python ]] && .venv/bin/python -c '' 2>/dev/null; then
    if [[ -z "${PYTHON:-}" || "$(python_identity "$python")" == "$(python_identity .venv/bin/python)" ]]; then
      return
    fi
    say "making .venv anew for $python"
  fi
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
    || die "$("$python" --version) is too old: Byway needs 3.10 or later; name one with PYTHON=..."
  "$python" -c 'import venv, ensurepip' 2>/dev/null \
    || die "$(command -v "$python") has no venv module: apt-get install python3-venv, or name another with PYTHON=..."
  "$python" -m venv --clear .venv
}

install_requirements() {
  local target=$1 stamp=".venv/.byway-setup-$1" wanted
  wanted=$(cat requirements/*.txt | sha256sum)
  if [[ -f "$stamp" && "$(cat "$stamp")" == "$wanted" ]]; then return; fi
  say "installing Python packages of requirements/$target.txt in .venv"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
    -r "requirements/$target.txt" </dev/null
  # `import byway` finds the sources.
  printf '%s\n' "$PWD/python" \
    >"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/byway-source.pth"
  printf '%s\n' "$wanted" >"$stamp"
}

# The PyTorch backend is built and tested with a torch of .venv: 2.11 to 2.14.
install_torch() {
  if [[ "${BYWAY_NO_TORCH:-}" == 1 ]]; then return; fi
  local fits='import importlib.metadata as m, sys
sys.exit(not (2, 11) <= tuple(map(int, m.version("torch").split(".")[:2])) <= (2, 14))'
  if [[ -z "${TORCH:-}" ]] && .venv/bin/python -c "$fits" 2>/dev/null; then return; fi
  local wanted=${TORCH:-torch==2.13.0} stamp=.venv/.byway-setup-torch
  if [[ -f "$stamp" && "$(cat "$stamp")" == "$wanted" ]]; then return; fi
  say "installing $wanted in .venv from the package index (from 200 MB for a CPU build to some GB with" \
    "CUDA); BYWAY_NO_TORCH=1 leaves torch and its tests out"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input "$wanted" </dev/null
  printf '%s\n' "$wanted" >"$stamp"
}

target=${1:-}
case "$target" in
  demo | test | lint | fuzz) ;;
  *) die "usage: scripts/setup.sh {demo|test|lint|fuzz}" ;;
esac

install_packages "$target"
mkdir -p build
exec 9>build/.setup.lock
flock 9 # two targets started at once must not make .venv twice
make_venv
install_requirements "$target"
if [[ "$target" == test ]]; then install_torch; fi
