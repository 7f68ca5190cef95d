#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# setup_torchrec.sh [FOLDER]: a virtual environment (default build/torchrec/venv) with TorchRec, beside
# the torch of the interpreter PYTHON (default .venv's), which it sees but does not change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=${1:-build/torchrec/venv}
python=${PYTHON:-.venv/bin/python}
stamp=$venv/.byway-torchrec
wanted=$(sha256sum tests/torchrec/requirements.txt; "$python" -c 'import sys, torch; print(sys.version, torch.__file__)')
if [[ -f "$stamp" && "$(cat "$stamp")" == "$wanted" ]]; then exit 0; fi

echo "setup: installing TorchRec for its tests in $venv"
"$python" -m venv --clear "$venv"
"$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
  >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch-of-python.pth"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
  -r tests/torchrec/requirements.txt </dev/null
"$venv/bin/python" -c 'import torchrec.distributed.sharded_relay_utils' </dev/null
printf '%s\n' "$wanted" >"$stamp"
