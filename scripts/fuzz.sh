#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# fuzz.sh: runs every fuzz target of build/fuzz for FUZZ_SECONDS (default 300), from a corpus that
# Byway makes and that grows in build/fuzz/corpus. What breaks a promise is kept in build/fuzz/found;
# the first such input ends the run with status 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${FUZZ_SECONDS:-300}
programs=build/fuzz/tests/fuzz
corpus=build/fuzz/corpus found=build/fuzz/found
mkdir -p "$corpus" "$found"
"$programs/make_corpus" "$corpus"

for program in "$programs"/*_fuzz; do
  name=$(basename "$program" _fuzz)
  known=("$corpus/$name")
  if [[ -d "tests/fuzz/found/$name" ]]; then known+=("tests/fuzz/found/$name"); fi
  options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536
    -print_final_stats=1 -verbosity=0 -artifact_prefix="$found/$name-")
  if [[ "$name" == *_json ]]; then options+=(-dict=tests/fuzz/json.dict); fi
  echo "== fuzz $name, $seconds s"
  if ! "$program" "${options[@]}" "${known[@]}" >"build/fuzz/$name.log" 2>&1; then
    tail -n 40 "build/fuzz/$name.log"
    echo "fuzz $name: failed; the input is in $found, the log in build/fuzz/$name.log" >&2
    exit 1
  fi
  grep -E 'stat::(number_of_executed_units|new_units_added|peak_rss_mb)' "build/fuzz/$name.log"
done
