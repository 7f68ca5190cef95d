# SPDX-License-Identifier: BSD-3-Clause
"""`byway probe` between real processes on paced links, whose truth is known."""

import json

import pytest

RATE, ALPHA = 10e6, 50e-6


def mesh(ranks, **changes):
    links = [[0 if a == b else RATE for b in range(ranks)] for a in range(ranks)]
    for link, rate in changes.items():
        a, b = map(int, link[1:].split("_"))
        links[a][b] = rate
    return {"byway": "topology", "version": 1, "ranks": ranks, "links_Bps": links, "alpha_s": ALPHA}


def check(tmp_path, truth, ports=None):
    starved = json.loads((tmp_path / "raw.json").read_text())["starved"]
    if starved > 0.1:
        pytest.skip(f"undecided: ranks waited for a core {starved:.2f} of the time")
    found = json.loads((tmp_path / "found.json").read_text())
    for a, row in enumerate(truth["links_Bps"]):
        for b, rate in enumerate(row):
            assert found["links_Bps"][a][b] == pytest.approx(rate, rel=0.05), (a, b)
    limits = [ports and pytest.approx(ports, rel=0.05)] * truth["ranks"]
    assert found["egress_Bps"] == limits
    assert found["ingress_Bps"] == limits
    assert found["bus_Bps"] is None
    assert found["reduce_Bps"] > 0


def probe(byway, *arguments):
    options = ["--output", "found.json", "--json", "raw.json", "--seconds", 5]
    return byway("probe", "-n", 4, *options, *arguments).stdout


def test_probe_finds_a_mesh(byway, tmp_path):
    said = probe(byway, "--pace", "10M,50")
    byway("plan", "allreduce", "--active", 2, "--topology", "found.json")
    assert list(tmp_path.glob("*.part")) == []
    raw = json.loads((tmp_path / "raw.json").read_text())
    assert (raw["byway"], raw["version"], raw["ranks"]) == ("probe", 1, 4)
    check(tmp_path, mesh(4))
    assert said.startswith("uniform mesh of 4 ranks, links of ")
    assert raw["notes"] == []


def test_probe_finds_a_switch(byway, tmp_path):
    said = probe(byway, "--pace", "switch:4@10M,50")
    check(tmp_path, mesh(4), ports=RATE)
    assert said.startswith("switch of 4 ranks")


def test_probe_finds_slow_and_missing_links_under_a_launcher(byway, tmp_path):
    truth = mesh(4, _0_1=RATE / 4, _1_0=RATE / 4, _2_3=0)
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    options = ["--output", "found.json", "--json", "raw.json", "--seconds", 5]
    done = byway("run", "-n", 4, byway.command, "probe", *options, BYWAY_PACE="./truth.json")
    assert "link 2 to 3 is missing" in done.stdout
    check(tmp_path, truth)
    assert "irregular of 4 ranks" in done.stdout
    assert "link 0 to 1 is slow" in done.stdout


def test_probe_says_when_the_launcher_started_another_number(byway):
    done = byway("run", "-n", 2, byway.command, "probe", "-n", 3, status=2)
    assert "--ranks 3, but the launcher started 2" in done.stderr
