#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# check-debian.sh [--worktree] [--keep] [COMMAND...]: runs each command (default: "make demo" and
# "make test") in a fresh, minimal Debian 12, on a clone of HEAD (--worktree: the files as they are),
# and prints what came of it. --keep leaves the root for a look. Needs root, debootstrap, git.
# Packages come from the mirror and by the pip settings that this machine is configured with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

worktree=0 keep=0
while [[ "${1:-}" == --* ]]; do
  case "$1" in
    --worktree) worktree=1 ;;
    --keep) keep=1 ;;
    *) sed -n '3,6s/^# //p' "$0"; exit 2 ;;
  esac
  shift
done
if (($# == 0)); then set -- "make demo" "make test"; fi
[[ $(id -u) -eq 0 ]] || { echo "check-debian: needs root (debootstrap, chroot)" >&2; exit 2; }

# The first Debian mirror in either format of the sources.
mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null || true; } | awk '
  found {next}
  /^URIs:/ {print $2; found = 1}
  /^deb / {for (i = 2; i <= NF; i++) if ($i ~ /:\/\//) {print $i; found = 1; break}}')
[[ -n "$mirror" ]] || { echo "check-debian: no mirror in /etc/apt/sources.list*" >&2; exit 2; }

root=$(mktemp -d "${TMPDIR:-/tmp}/byway-debian.XXXXXX")
chmod 755 "$root"
# shellcheck disable=SC2317  # called by the trap
finish() {
  if ((keep)); then echo "check-debian: left in $root"; else rm -rf --one-file-system "$root"; fi
}
trap finish EXIT

echo "== Debian 12 in $root"
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror" >"$root.log" 2>&1 \
  || { tail -n 20 "$root.log" >&2; exit 1; }
rm -f "$root.log"

# Network and registries as this machine is configured.
echo "deb $mirror bookworm main" >"$root/etc/apt/sources.list"
for path in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt /etc/apt/apt.conf.d/*; do
  if [[ -f "$path" ]]; then cp -L "$path" "$root$path"; fi
done
mapfile -t pip_settings < <(env | grep -E '^PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL|DEFAULT_TIMEOUT)=' || true)

mkdir "$root/byway"
if ((worktree)); then
  git ls-files -z --cached --others --exclude-standard \
    | tar --create --null --files-from=- --ignore-failed-read | tar --extract --directory="$root/byway"
else
  git archive HEAD | tar --extract --directory="$root/byway"
fi

# In a mount namespace of its own: nothing stays mounted when it ends, however it ends.
inside() {
  # shellcheck disable=SC2016  # expanded inside
  unshare --mount --propagation private bash -c '
    set -euo pipefail
    root=$1 command=$2
    shift 2
    mount --bind /proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      HOME=/root LANG=C.UTF-8 CI=true "$@" bash -c "cd /byway && $command"
  ' inside "$root" "$1" "${pip_settings[@]}" </dev/null
}

# What a reader of the README has: make, and git to have cloned with.
inside "apt-get -qq update && apt-get -qq install --no-install-recommends -y make git >/dev/null 2>&1
  git init -q . && git add -A && git -c user.name=check -c user.email=check@localhost commit -qm check"

results=()
status=0
for command in "$@"; do
  echo "== $command"
  start=$SECONDS
  if inside "$command"; then word=passed; else word=FAILED status=1; fi
  results+=("$word: $command ($((SECONDS - start)) s)")
done
echo "== Debian 12, Python $(inside '.venv/bin/python -V 2>&1' || true)"
printf '%s\n' "${results[@]}"
exit "$status"
