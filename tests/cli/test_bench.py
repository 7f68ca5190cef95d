# SPDX-License-Identifier: BSD-3-Clause
"""`byway bench` from the outside: sweeps on the virtual clock, processes, files, refusals."""

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BYWAY_BUILD_DIR", ROOT / "build/dev"))
BYWAY = os.environ.get("BYWAY_BIN", str(BUILD / "src/byway/tools/byway"))
ROW_KEYS = {
    *("collective", "active", "scenario", "groups", "ranks", "dtype", "bytes", "direct_s"),
    *("chosen_s", "speedup", "limit", "of_limit", "route", "same_plan", "peer", "peer_s"),
    *("samples", "interval", "verified"),
}
# Few pairs of short runs, which no bar is held against: other programs may have the cores.
SHORT = ("--pairs", "2", "--most-pairs", "2", "--bar", "0")


@pytest.fixture
def bench(tmp_path):
    def run(*arguments, status=0, timeout=120):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("BYWAY_")}
        done = subprocess.run(
            [BYWAY, "bench", *map(str, arguments)],
            cwd=tmp_path,
            env=kept,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert status is None or done.returncode == status, done.stdout + done.stderr
        return done

    return run


def results(folder: pathlib.Path, name: str = "byway-bench.json") -> dict:
    document = json.loads((folder / name).read_text())
    assert document["byway"] == "results"
    assert document["version"] == 1
    assert all(set(row) == ROW_KEYS for row in document["rows"])
    return document


@pytest.mark.parametrize("scenario", ["single", "fused", "parallel"])
def test_tables_on_the_virtual_clock(bench, tmp_path, scenario):
    sizes = ("--sizes", "4Ki,16Mi,256Mi")
    bench(scenario, "--virtual", *sizes, "--collective", "allreduce,all-gather", timeout=300)
    document = results(tmp_path)
    assert document["complete"]
    assert document["clock"] == "virtual"
    assert len(document["rows"]) == 2 * 3 * 3
    for row in document["rows"]:
        assert row["scenario"] == scenario
        assert not row["verified"]
        assert 1 - 1e-9 <= row["speedup"] <= row["limit"] * 1.001
        if row["bytes"] == 2**28:
            # What calls that do not know of each other lose: docs/planner.md, Parallel calls.
            assert row["of_limit"] > (0.7 if scenario == "parallel" else 0.85), row


def test_values_are_compared_on_the_virtual_clock_too(bench, tmp_path):
    arguments = ("--sizes", "64Ki", "--collective", "all-to-all", "--dtype", "int32")
    bench("fused", "--virtual", "--values", *arguments)
    assert all(row["verified"] for row in results(tmp_path)["rows"])


def test_production_shapes(bench, tmp_path):
    bench("fused", "--shape", "production", "--virtual", "--collective", "all-gather", timeout=300)
    document = results(tmp_path)
    assert [row["bytes"] for row in document["rows"]] == [6 * 10**9] * 2
    assert all(row["of_limit"] > 0.85 for row in document["rows"])


def test_processes_measure_and_compare(bench, tmp_path):
    # The answer may be no: two pairs decide little, and cores may be busy.
    done = bench(
        "single", *SHORT, "--sizes", "64Ki", "--active", 2, "--collective", "allreduce", status=None
    )
    assert done.returncode in (0, 1), done.stderr
    assert "held      every value of every rank is right" in done.stdout
    (row,) = results(tmp_path)["rows"]
    assert row["verified"]
    assert row["samples"] in (2, 3)


def test_flat_has_bandwidths(bench, tmp_path):
    done = bench("flat", *SHORT[:4], "--sizes", "64Ki", "--collective", "allreduce", "--ranks", 4)
    assert "bus GB/s" in done.stdout
    document = results(tmp_path)
    (row,), (detail,) = document["rows"], document["details"]
    assert row["limit"] is None
    assert row["peer"] is None
    assert row["ranks"] == 4
    assert detail["bus_Bps"] == pytest.approx(1.5 * 65536 / row["chosen_s"])


def test_what_needs_too_much_memory_is_left_out_before_it_is_taken(bench, tmp_path):
    arguments = ("--sizes", "4Ki,64Gi", "--active", 2, "--collective", "allreduce")
    done = bench("single", *SHORT, *arguments, "--memory", "1Gi", status=None)
    assert "1 cells left out" in done.stdout
    assert "--memory allows" in done.stdout
    document = results(tmp_path)
    assert [row["bytes"] for row in document["rows"]] == [4096]
    assert len(document["refused"]) == 1


def test_it_goes_on_where_it_was_ended(bench, tmp_path):
    arguments = [
        *("single", "--pairs", "6", "--most-pairs", "6", "--bar", "0", "--active", "2"),
        *("--sizes", "256Ki,260Ki,264Ki,268Ki,272Ki", "--collective", "allreduce"),
    ]
    running = subprocess.Popen(
        [BYWAY, "bench", *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if (tmp_path / "byway-bench.json").exists():
            break
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.wait()
    before = results(tmp_path)
    assert not before["complete"]
    assert 1 <= len(before["rows"]) < 5
    done = bench(*arguments, status=None)
    assert f"{len(before['rows'])} of them from an earlier run" in done.stdout
    after = results(tmp_path)
    assert after["complete"]
    assert len(after["rows"]) == 5
    assert after["rows"][: len(before["rows"])] == before["rows"]
    assert [path.name for path in tmp_path.iterdir()] == ["byway-bench.json"]


def test_resume_from_a_named_file(bench, tmp_path):
    first = ("single", "--virtual", "--active", "2", "--collective", "allreduce")
    bench(*first, "--sizes", "4Ki,64Ki", "--json", "a.json")
    more = ("--sizes", "4Ki:1Mi:x16", "--resume", "a.json", "--json", "b.json")
    assert "2 of them from an earlier run" in bench(*first, *more).stdout
    assert len(results(tmp_path, "b.json")["rows"]) == 3
    other = bench(*first, "--rate", "10G", "--resume", "a.json", status=2)
    assert "other settings" in other.stderr


def test_picture(bench, tmp_path):
    pytest.importorskip("matplotlib")
    arguments = ("--virtual", "--sizes", "4Ki:64Mi:x16", "--collective", "allreduce,broadcast")
    done = bench("single", *arguments, "--picture", "p.png")
    if "picture: p.png" in done.stdout:
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fused", "--active", "5"], "two groups"),
        (["fused", "--active", "9"], "--active"),
        (["fused", "--sizes", "8:4"], "--sizes"),
        (["fused", "--sizes", "3"], "no element"),
        (["fused", "--collective", "allreduce,none"], "none"),
        (["fused", "--counts", "1:2", "--active", "2"], "--counts"),
        (["fused", "--shape", "round"], "--shape"),
        (["fused", "--topology", "switch:8@50G"], "--virtual"),
        (["single", "--rate", "0"], "--rate"),
        (["single", "--dtype", "complex64"], "complex64"),
        (["single", "--resume", "none.json"], "none.json"),
        (["single", "--json", "", "--picture", "p.png"], "--picture"),
        (["round"], "round"),
        ([], "bench"),
    ],
)
def test_bad_input(bench, arguments, said):
    line = bench(*arguments, status=2).stderr
    assert said in line
    assert line.count("\n") == 1, line


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--against", "openmpi,lam"), '"lam" is none of openmpi, mpich, impi, gloo'),
        (("--against", "gloo,gloo"), "gloo twice"),
        (("--against", "gloo", "--dtype", "bfloat16"), "bfloat16 is not a type"),
    ],
)
def test_libraries_that_cannot_be_compared_with(bench, options, expected):
    assert expected in bench("flat", *options, status=2).stderr


def test_a_library_that_cannot_be_installed_is_named(bench, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    cache = ("--peer-cache", tmp_path / "cache")
    said = bench("flat", "--against", "mpich", *cache, status=1).stderr
    assert "MPICH is not to be had here" in said
    assert "leave it out of the list" in said


def left_behind(folder: pathlib.Path) -> list[str]:
    """Command lines that name the folder, and shared memory that is newer than it."""
    lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    found = [line for line in lines.splitlines() if str(folder) in line]
    begin = folder.stat().st_ctime
    return found + [
        path.name
        for path in pathlib.Path("/dev/shm").iterdir()
        if path.name.startswith(("byway-bench", "sm_segment", "mpich", "Intel_MPI"))
        and path.stat().st_ctime > begin
    ]


AGAINST = [
    *("flat", "--against", "openmpi,mpich,impi,gloo", "--ranks", "2", "--sizes", "8,64Ki"),
    *("--collective", "allreduce,all-gather", "--pairs", "3", "--most-pairs", "3"),
]


@pytest.mark.full
def test_against_other_libraries(bench, tmp_path):
    cache = ("--peer-cache", tmp_path / "cache")
    bench(*AGAINST, *cache, status=None, timeout=1500)
    rows = results(tmp_path)["rows"]
    assert [row["peer"] for row in rows] == ["openmpi", "mpich", "impi", "gloo"] * 4
    assert all(row["verified"] and row["peer_s"] > 0 for row in rows)
    assert all(row["interval"][0] <= row["speedup"] <= row["interval"][1] for row in rows)
    # Killed in the middle it leaves nothing, and the next run goes on.
    (tmp_path / "byway-bench.json").unlink()
    running = subprocess.Popen(
        [BYWAY, "bench", *AGAINST, *map(str, cache)], cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    until = time.monotonic() + 120
    while not (tmp_path / "byway-bench.json").exists() and time.monotonic() < until:
        time.sleep(0.05)
    running.kill()
    running.wait()
    while left_behind(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    assert left_behind(tmp_path) == []
    known = len(results(tmp_path)["rows"])
    assert 4 <= known < 16
    done = bench(*AGAINST, *cache, status=None, timeout=600)
    assert f"{known} of them from an earlier run" in done.stdout
    assert len(results(tmp_path)["rows"]) == 16
