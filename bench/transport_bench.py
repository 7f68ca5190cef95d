# SPDX-License-Identifier: BSD-3-Clause
"""Messages through the executor against ucx_perftest of the same UCX, in turns; two processes.

    .venv/bin/python bench/transport_bench.py [--build build/release] [--rounds 9] [--json FILE]

latency: an 8-byte send and its answer (bench/flat_calls sendrecv), against twice what ucx_perftest
    prints for active messages (ucp_am_lat, the median of one way).
bandwidth: messages of 4 MB one way, eight under way (flat_calls stream), against ucp_am_bw.

Exit status 1 if the median latency is above twice the printed one plus 2 us, or the median ratio of
bandwidths is below 0.9.
"""

import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
LARGE, STREAM = 4 << 20, 8
ALLOWED_US, BANDWIDTH_BAR = 2.0, 0.9
LIMIT_S = 60


def ucx_folder() -> pathlib.Path:
    import libucx

    return pathlib.Path(libucx.__file__).parent


def perftest(folder: pathlib.Path, *options: str) -> list[str]:
    """The numbers of ucx_perftest's last line."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    program = str(folder / "bin" / "ucx_perftest")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder / "lib")}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([program, "-p", port], env=environment, **quiet) as server:
        try:
            until = time.monotonic() + LIMIT_S
            while not listens(int(port)):
                if server.poll() is not None or time.monotonic() > until:
                    sys.exit(f"ucx_perftest did not start to listen on port {port}")
            run = subprocess.run(
                [program, "127.0.0.1", "-p", port, "-f", *options],
                env=environment, capture_output=True, text=True, timeout=LIMIT_S,
            )  # fmt: skip
        finally:
            server.kill()
    if run.returncode != 0:
        sys.exit(f"ucx_perftest {' '.join(options)} failed: {run.stderr or run.stdout}")
    return run.stdout.strip().splitlines()[-1].split()


def listens(port: int) -> bool:
    """Without a connection, which the server would take for its client."""
    wanted = f":{port:04X}"
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    lines += pathlib.Path("/proc/net/tcp6").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(wanted) and line.split()[3] == "0A" for line in lines)


def flat_calls(build: pathlib.Path, name: str, size: int) -> float:
    """The median microseconds of a call."""
    command = [build / "src/byway/tools/byway", "run", "-n", "2", "--"]
    run = subprocess.run(
        [*command, build / "bench/flat_calls", name, str(size)],
        capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    found = re.search(r"median +([0-9.]+) us", run.stdout)
    if run.returncode != 0 or not found:
        sys.exit(f"flat_calls {name} {size} failed: {run.stderr or run.stdout}")
    return float(found[1])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", metavar="FILE", help="also write the numbers there")
    asked = parser.parse_args()
    folder = ucx_folder()
    rows = []
    for _ in range(asked.rounds):
        printed = float(perftest(folder, "-t", "ucp_am_lat", "-s", "8", "-n", "20000")[1])
        bandwidth = float(perftest(folder, "-t", "ucp_am_bw", "-s", str(LARGE), "-n", "300")[4])
        ours = STREAM * LARGE / flat_calls(asked.build, "stream", LARGE) * 1e6 / 2**20
        rows.append(
            {
                "round_trip_us": flat_calls(asked.build, "sendrecv", 8),
                "ucx_latency_us": printed,
                "bandwidth_MiBps": ours,
                "ucx_bandwidth_MiBps": bandwidth,
                "bandwidth_ratio": ours / bandwidth,
            }
        )
    result = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    allowed = 2 * result["ucx_latency_us"] + ALLOWED_US
    print(
        f"8 bytes there and back: {result['round_trip_us']:.2f} us "
        f"(ucx_perftest one way: {result['ucx_latency_us']:.2f}; allowed {allowed:.2f})\n"
        f"4 MB: {result['bandwidth_MiBps']:.0f} MiB/s, ucx_perftest "
        f"{result['ucx_bandwidth_MiBps']:.0f}, ratio {result['bandwidth_ratio']:.2f} "
        f"(bar {BANDWIDTH_BAR})"
    )
    if asked.json:
        pathlib.Path(asked.json).write_text(
            json.dumps({"median": result, "rounds": rows}, indent=1)
        )
    return int(result["round_trip_us"] > allowed or result["bandwidth_ratio"] < BANDWIDTH_BAR)


if __name__ == "__main__":
    sys.exit(main())
