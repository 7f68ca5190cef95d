#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# sanitized.sh {asan|tsan}: the C++ tests of a sanitizer build, except those that measure time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# gcc 12's ThreadSanitizer refuses the wide address randomisation of newer kernels.
run=(ctest --preset "$1" -j "${JOBS:-1}")
if [[ "$1" == tsan ]] && setarch -R true 2>/dev/null; then run=(setarch -R "${run[@]}"); fi
exec "${run[@]}"
