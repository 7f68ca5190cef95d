# SPDX-License-Identifier: BSD-3-Clause
"""`byway trace`: the timeline of a run, read as a viewer reads it."""

import collections
import itertools
import json

import pytest


def tracks(document):
    """Bars by (process, track), in order of their start."""
    found = collections.defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            assert event["dur"] >= 0
            found[event["pid"], event["tid"]].append(event)
    return {track: sorted(bars, key=lambda bar: bar["ts"]) for track, bars in found.items()}


def names(document, what):
    return {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in document["traceEvents"]
        if event["ph"] == "M" and event["name"] == what
    }


def check_bars_do_not_overlap(document):
    slack = 0.002  # microseconds: times are rounded to one nanosecond
    for bars in tracks(document).values():
        for before, after in itertools.pairwise(bars):
            assert before["ts"] + before["dur"] <= after["ts"] + slack, (before, after)


@pytest.fixture
def traced_demo(byway, tmp_path):
    demo = [byway.command, "demo", "--quick", "--pairs", 1, "--picture", ""]
    done = byway("trace", "-o", "t.json", "--", *demo, "--cells", "^allreduce A=2 single float32")
    assert "8 ranks" in done.stdout
    return json.loads((tmp_path / "t.json").read_text())


def test_trace_of_a_run(byway, traced_demo, tmp_path):
    assert sorted(names(traced_demo, "process_name").values()) == [f"rank {r}" for r in range(8)]
    check_bars_do_not_overlap(traced_demo)
    calls = [e for e in traced_demo["traceEvents"] if e.get("cat") == "call"]
    relayed = [c for c in calls if c["args"].get("route", "").startswith("S3")]
    assert len(relayed) == 8  # one on each rank
    assert {c["args"]["state"] for c in calls} == {"completed"}
    # Every transfer of the schedule, once.
    row = json.loads((tmp_path / "byway-demo.json").read_text())["rows"][0]
    count = row["bytes"]
    byway(
        *("plan", "allreduce", "--active", 2, "--ranks", 8, "--bytes", count),
        *("--topology", "mesh:8@10M,50", "--route", row["route"], "--schedule", "s.json"),
    )
    schedule = json.loads((tmp_path / "s.json").read_text())
    wanted = sum(len(phase["transfers"]) for phase in schedule["phases"])
    call = relayed[0]["args"]
    ran = [
        e
        for e in traced_demo["traceEvents"]
        if e.get("cat") == "transfer"
        and e["args"]["communicator"] == call["communicator"]
        and e["args"]["sequence"] == call["sequence"]
    ]
    assert sorted(e["args"]["transfer"] for e in ran) == list(range(wanted))
    assert {e["args"]["phase"] for e in ran} == {
        i for i, phase in enumerate(schedule["phases"]) if phase["transfers"]
    }
    for event in ran:
        assert event["args"]["bytes"] > 0
        assert event["args"]["sent_us"] <= event["ts"] + event["dur"]
    # Transfers lie within their call.
    by_rank = {c["pid"]: c for c in relayed}
    for event in ran:
        owner = by_rank[event["pid"]]
        assert event["ts"] >= owner["ts"]
        assert event["ts"] + event["dur"] <= owner["ts"] + owner["dur"] + 0.002


def test_trace_of_a_folder(byway, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    byway("probe", "-n", 2, "--pace", "100M", "--seconds", 0.5, BYWAY_TRACE=str(folder))
    done = byway("trace", folder, "--output", "-")
    document = json.loads(done.stdout)
    check_bars_do_not_overlap(document)
    messages = [e for e in document["traceEvents"] if e["name"].startswith("message ")]
    assert messages
    assert all("sent_us" in message["args"] for message in messages)


def test_trace_names_a_bad_line(byway, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    part = folder / "trace-0-1-0.jsonl"
    part.write_text('{"byway": "trace"}\n')
    assert f"{part}:1: " in byway("trace", folder, status=2).stderr
    header = {
        "byway": "trace",
        "version": 1,
        "communicator": "0",
        "name": "x",
        "rank": 0,
        "ranks": 1,
        "process": 0,
        "pid": 1,
        "boot": "b",
        "realtime_s": 0,
    }
    part.write_text(json.dumps(header) + '\n{"k": "dance"}\n')
    assert f'{part}:2: "dance" is no kind of event' in byway("trace", folder, status=2).stderr


def test_trace_passes_the_exit_code_on(byway):
    byway("trace", "--", "sh", "-c", "exit 7", status=7)
