#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# lint.sh [--fix]: formats and rules of all sources; clang-tidy on the C++ files that changed since
# BASE (default: where this branch left origin's or the local main, else the previous commit),
# at most TIDY_LIMIT of them (default 20). Needs build/dev/compile_commands.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.cc')
ruff=.venv/bin/ruff
python_sources=(.) # what git ignores, ruff does too

if [[ "${1:-}" == --fix ]]; then
  clang-format -i "${sources[@]}"
  "$ruff" check --quiet --fix "${python_sources[@]}" || true
  "$ruff" format --quiet "${python_sources[@]}"
  exit 0
fi

base_commit() {
  local head candidate
  head=$(git rev-parse HEAD)
  for candidate in ${BASE:-origin/main main HEAD~1}; do
    candidate=$(git merge-base HEAD "$candidate" 2>/dev/null) || continue
    # On main itself the merge base is HEAD: look at the last commit instead.
    if [[ "$candidate" != "$head" ]]; then echo "$candidate"; return; fi
  done
  git hash-object -t tree /dev/null # a first commit: everything changed
}

tidy() {
  local changed
  mapfile -t changed < <(
    { git diff --name-only --diff-filter=d "$(base_commit)" -- 'src/*.cc' 'bench/*.cc'
      git ls-files --others --exclude-standard -- 'src/*.cc' 'bench/*.cc'; } | sort -u \
      | while read -r file; do if grep -q "/$file\"" build/dev/compile_commands.json; then echo "$file"; fi; done)
  local limit=${TIDY_LIMIT:-20}
  if ((${#changed[@]} > limit)); then
    echo "clang-tidy: ${#changed[@]} files changed, looking at the first $limit (TIDY_LIMIT)"
    changed=("${changed[@]:0:limit}")
  fi
  if ((${#changed[@]} == 0)); then echo "no C++ source changed"; return; fi
  printf '%s\0' "${changed[@]}" | xargs -0 -n 1 -P "${JOBS:-1}" clang-tidy -p build/dev --quiet \
    --extra-arg=-Wno-unknown-warning-option \
    2> >(grep -v ' warnings\? generated' >&2) # those of system headers, suppressed
}

failed=()
check() { # name, command...
  echo "== $1"
  if ! "${@:2}"; then failed+=("$1"); fi
}
check clang-format clang-format --dry-run -Werror "${sources[@]}"
check clang-tidy tidy
check "ruff check" "$ruff" check --quiet --output-format=concise "${python_sources[@]}"
check "ruff format" "$ruff" format --check --quiet --output-format=concise "${python_sources[@]}"
if ((${#failed[@]})); then
  printf 'lint failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
echo "lint passed"
