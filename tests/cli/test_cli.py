# SPDX-License-Identifier: BSD-3-Clause
"""The `byway` command, from the outside: every subcommand with good and bad input."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BYWAY_BUILD_DIR", ROOT / "build/dev"))
BYWAY = os.environ.get("BYWAY_BIN", str(BUILD / "src/byway/tools/byway"))
COMMANDS = [
    *("demo", "plan", "limits", "verify", "table", "bench", "run", "probe", "trace", "doctor")
]
ROW_KEYS = {
    *("collective", "active", "scenario", "groups", "ranks", "dtype", "bytes", "direct_s"),
    *("chosen_s", "speedup", "limit", "of_limit", "route", "same_plan", "peer", "peer_s"),
    *("samples", "interval", "verified"),
}


def only_line(text: str) -> str:
    assert text.count("\n") == 1, text
    return text.rstrip("\n")


# --- the command itself


def test_version(byway):
    assert re.fullmatch(r"byway \d+\.\d+\.\d+\n", byway("--version").stdout)


def test_help_lists_the_commands(byway):
    text = byway("--help").stdout
    assert [c for c in COMMANDS if not re.search(rf"^  {c} ", text, re.MULTILINE)] == []
    assert "demo-rank" not in text
    assert "bench-rank" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(byway, command):
    assert "Usage:" in byway(command, "--help").stdout


def documented_options():
    """(command, option) for each `--option` in a command's section of docs/command-line.md."""
    command, found = None, []
    for line in (ROOT / "docs/command-line.md").read_text().splitlines():
        heading = re.match(r"## byway (\w+)", line)
        if line.startswith("## "):
            command = heading[1] if heading else None
        elif command:
            found += [(command, option) for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line)]
    return sorted(set(found))


@pytest.mark.parametrize("command", COMMANDS)
def test_documented_options_are_those_that_exist(byway, command):
    text = byway(command, "--help").stdout
    for subcommand in re.findall(r"^  ([a-z]+) ", text.partition("Subcommands:")[2], re.MULTILINE):
        text += byway(command, subcommand, "--help").stdout
    listed = set(re.findall(r"^  (?:-\w,)?(--[a-z][a-z-]*)", text, re.MULTILINE)) - {"--help"}
    documented = {option for owner, option in documented_options() if owner == command}
    assert documented == listed


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "byway: A subcommand is required"),
        (["dance"], '"dance" is no command'),
        (["plan"], "byway plan: name a COLLECTIVE (allreduce, "),
        (["plan", "allsum"], '"allsum" is no collective; there are: allreduce'),
        (["plan", "allreduce", "--active", "9"], "--active 9: there are 8 ranks"),
        (["plan", "allreduce", "--active", "x"], '--active: "x" is not a whole number from 1 ('),
        (["plan", "allreduce", "--active", "0"], '--active: "0" is not a whole number from 1 ('),
        (["plan", "allreduce", "--groups", ""], '--groups: "" is not a list of groups'),
        (["plan", "allreduce", "--groups", "0,1;1,2"], "byway plan: rank 1"),
        (["plan", "allreduce", "--groups", "0,a"], '--groups: "a" is not a rank'),
        (["plan", "allreduce", "--groups", "0,1", "--fused"], "--groups excludes"),
        (["plan", "allreduce", "--bytes", "8X"], '--bytes: "8X"'),
        (["plan", "allreduce", "--bytes", "7"], "--bytes 7: not a multiple"),
        (["plan", "allreduce", "--dtype", "float"], '"float" is no element type'),
        (["plan", "allreduce", "--dtype", "bool", "--op", "avg"], "--op avg --dtype bool"),
        (["plan", "allreduce", "--topology", "mesh:4", "--ranks", "8"], "mesh:4"),
        (["plan", "allreduce", "--topology", "nowhere.json"], "nowhere.json"),
        (["plan", "allreduce", "--route", "S99"], '"S99" is no schedule'),
        (["plan", "broadcast", "--active", "2", "--root", "2"], "root 2"),
        (["plan", "allreduce", "--json", "/nonexistent/x.json"], "/nonexistent/x.json"),
        (["plan", "allreduce", "--strange"], "--strange"),
        (["limits"], "name a COLLECTIVE"),
        (["limits", "allreduce", "--all", "--active", "2"], "--all excludes"),
        (["verify"], "FILE"),
        (["verify", "x", "--accumulator-ratio", "abc"], '"abc" is not a number above 0'),
        (["verify", "missing.json"], "cannot read missing.json"),
        (["verify", "."], "it is a folder"),
        (["verify", "/dev/zero"], "it is larger than 256 MiB"),
        (["table", "--sizes", "9-1"], "--sizes"),
        (["table", "--active", "9"], "--active"),
        (["run", "-n", "2"], "no PROGRAM"),
        (["run", "true"], "--ranks"),
        (["run", "-n", "0", "true"], "--ranks"),
        (["run", "-n", "x", "true"], '--ranks: "x" is not a whole number from 1 to 4096'),
        (["demo", "--rate", "fast"], '--rate: "fast"'),
        (["demo", "--cells", "("], '--cells: "("'),
        (["demo", "--cells", "nothing"], '--cells: "nothing" matches none'),
        (["demo", "--pairs", "0"], "--pairs"),
        (["demo", "--json", "/nonexistent/x.json"], "/nonexistent/x.json"),
        (["demo", "--json", ""], 'cannot write ""'),
        (["probe", "--ranks", "1"], "--ranks"),
        (["probe", "--pace", "mesh:x"], "mesh:x"),
        (["probe", "--output", "/nonexistent/x.json"], "/nonexistent/x.json"),
        (["trace"], "give either a FOLDER"),
        (["trace", "/nonexistent"], "cannot read the folder /nonexistent"),
        (["trace", "."], "holds no trace"),
        (["trace", ".", "--", "true"], "give either a FOLDER"),
        (["demo", "--picture", "/nonexistent/x.png"], "cannot write /nonexistent/x.png"),
    ],
)
def test_bad_input_is_one_line_and_status_2(byway, arguments, expected):
    line = only_line(byway(*arguments, status=2).stderr)
    assert line.startswith("byway")
    assert expected in line


def test_unknown_variables_are_named(byway):
    done = byway("limits", "allreduce", BYWAY_TOPOLGY="mesh:8")
    assert "BYWAY_TOPOLGY is set, but nothing reads it" in only_line(done.stderr)
    assert byway("limits", "allreduce", BYWAY_UCX_TLS="tcp").stderr == ""


def test_documented_variables_are_those_of_the_list():
    page = (ROOT / "docs/environment.md").read_text()
    documented = set(re.findall(r"^\| `(BYWAY_[A-Z_]+\*?)`", page, re.MULTILINE))
    listed = set(
        re.findall(r'"(BYWAY_[A-Z_]+\*?)"', (ROOT / "src/byway/tools/env.cc").read_text())
    ) - {"BYWAY_"}
    assert documented == listed


def test_no_colours_in_a_pipe(byway):
    assert "\033" not in byway("limits", "--all", "--ranks", 4).stdout


# --- plan, limits, verify, table


def test_plan(byway, tmp_path):
    text = byway(
        *("plan", "allreduce", "--active", 2, "--topology", "mesh:8", "--bytes", "64Mi"),
        *("--json", "p.json", "--dot", "p.dot", "--schedule", "s.json"),
    ).stdout
    assert "S3" in text
    document = json.loads((tmp_path / "p.json").read_text())
    assert (document["byway"], document["version"]) == ("plan", 1)
    assert (tmp_path / "p.dot").read_text().startswith("digraph")
    schedule = json.loads((tmp_path / "s.json").read_text())
    assert (schedule["byway"], schedule["collective"]) == ("schedule", "allreduce")
    assert list(tmp_path.glob("*.part")) == []


def test_plan_on_a_host_goes_direct_and_says_why(byway):
    text = byway("plan", "allreduce", "--active", 2).stdout
    assert "relay never pays" in text
    assert "mesh:8" in text


def test_plan_takes_the_topology_of_the_environment(byway):
    assert "S3" in byway("plan", "allreduce", "--active", 2, BYWAY_TOPOLOGY="mesh:6").stdout


def test_plan_of_a_forced_route(byway):
    call = ("plan", "allreduce", "--active", 2, "--topology", "mesh:8")
    assert "chosen   S3 K=4" in byway(*call, "--route", "S3 K=4").stdout
    assert "chosen   direct" in byway(*call, "--route", "direct").stdout


def test_plan_lists_constructions(byway):
    assert "S7" in byway("plan", "--constructions").stdout


def test_plan_with_a_size_for_each_group(byway):
    byway(*("plan", "all-gather", "--groups", "0,1;2,3", "--bytes", "8M,4M"))
    line = byway(*("plan", "all-gather", "--groups", "0,1", "--bytes", "8M,4M"), status=2).stderr
    assert "2 sizes for 1 groups" in only_line(line)


def test_limits(byway, tmp_path):
    byway("limits", "allreduce", "--active", 2, "--json", "l.json")
    document = json.loads((tmp_path / "l.json").read_text())
    assert document["byway"] == "limits"
    assert document["rows"][0]["limit"] == pytest.approx(7)
    byway("limits", "--all", "--json", "l.json")
    rows = json.loads((tmp_path / "l.json").read_text())["rows"]
    assert len(rows) == 48
    found = {(r["collective"], r["active"], r["scenario"]): r["limit"] for r in rows}
    assert found["all-to-all", 4, "fused"] == pytest.approx(5 / 3)
    byway("limits", "reduce", "--all", "--json", "l.json")
    rows = json.loads((tmp_path / "l.json").read_text())["rows"]
    assert [r["collective"] for r in rows] == 6 * ["reduce"]


def test_members_without_a_link(byway, tmp_path):
    links = [[0 if i == j or {i, j} == {2, 3} else 5e10 for j in range(4)] for i in range(4)]
    topology = {"byway": "topology", "version": 1, "ranks": 4, "links_Bps": links}
    (tmp_path / "t.json").write_text(json.dumps(topology))
    call = ("allreduce", "--groups", "2,3", "--topology", "t.json", "--json", "x.json")
    assert "direct   none" in byway("plan", *call).stdout
    assert byway("limits", *call).stdout.split()[-3::2] == ["-", "-"]
    row = json.loads((tmp_path / "x.json").read_text())["rows"][0]
    assert (row["direct_s"], row["limit"]) == (None, None)
    assert row["limit_s"] > 0


def test_limits_of_unequal_groups(byway, tmp_path):
    byway(
        *("limits", "allreduce", "--groups", "0,1;2,3;4,5;6,7", "--bytes", "8M,4M,4M,4M"),
        *("--json", "l.json"),
    )
    row = json.loads((tmp_path / "l.json").read_text())["rows"][0]
    assert row["limit"] == pytest.approx(6.4, rel=1e-3)


@pytest.fixture
def schedule(byway, tmp_path):
    byway(
        *("plan", "allreduce", "--active", 2, "--topology", "mesh:4", "--route", "S3 K=2"),
        *("--schedule", "s.json"),
    )
    return json.loads((tmp_path / "s.json").read_text())


def test_verify(byway, schedule):
    text = byway("verify", "s.json").stdout
    assert "verified" in text
    assert "value     0.5" in text


def test_verify_names_violations(byway, schedule, tmp_path):
    del schedule["phases"][-1]
    (tmp_path / "bad.json").write_text(json.dumps(schedule))
    text = byway("verify", "bad.json", status=1).stdout
    assert "NOT verified" in text
    assert re.search(r"^  V\d+: ", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda s: s.pop("groups"), "groups"),
        (lambda s: s.update(colour="red"), "colour"),
        (lambda s: s.update(version=2), "version"),
        (lambda s: s.update(byway="plan"), "plan"),
        (lambda s: s["phases"][0]["transfers"][0]["from"].update(rank=99), "rank"),
    ],
)
def test_verify_refuses_malformed_files(byway, schedule, tmp_path, change, expected):
    change(schedule)
    (tmp_path / "bad.json").write_text(json.dumps(schedule))
    line = only_line(byway("verify", "bad.json", status=2).stderr)
    assert "bad.json" in line
    assert expected in line


def test_verify_refuses_what_is_no_json(byway, tmp_path):
    (tmp_path / "bad.json").write_text('{"byway": ')
    assert "bad.json" in only_line(byway("verify", "bad.json", status=2).stderr)


@pytest.mark.parametrize(
    "call",
    [("verify",), ("plan", "allreduce", "--topology"), ("limits", "allreduce", "--topology")],
)
def test_malformed_files_are_refused_with_their_place(byway, tmp_path, call):
    for text, expected in (
        ('{"byway":\n "topology",}', "bad.json:2:13: "),
        ('{"byway": 1,\n "byway": 2}', 'bad.json:2:8: an object has two fields "byway"'),
        ('{"byway": "plan",\n "version": 1}', 'bad.json: is of kind "plan"'),
    ):
        (tmp_path / "bad.json").write_text(text)
        line = only_line(byway(*call, "bad.json", status=2).stderr)
        assert expected in line


def test_table(byway, tmp_path):
    text = byway(
        *("table", "--collective", "all-gather", "--sizes", "64Ki-64Mi", "--latency", "10"),
        *("--active", "2,4", "--json", "t.json"),
    ).stdout
    assert "0 slower than direct" in text
    document = json.loads((tmp_path / "t.json").read_text())
    assert (document["byway"], document["clock"]) == ("results", "virtual")
    assert len(document["rows"]) == 4 * 6
    assert all(row.keys() >= ROW_KEYS for row in document["rows"])
    assert max(row["of_limit"] for row in document["rows"]) < 1.0001


def test_table_shows_each_size_once(byway):
    call = ("table", "--collective", "reduce", "--latency", "0", "--active", "2", "--sizes")
    for sizes, shown in (("1Mi", ["1 MiB"]), ("2Mi,1Mi,1Mi", ["1 MiB", "2 MiB"])):
        heading = byway(*call, sizes).stdout.splitlines()[1]
        assert re.findall(r"\d MiB", heading) == shown


# --- doctor


def test_doctor(byway, tmp_path):
    done = byway("doctor", "--json", "d.json", BYWAY_TOPOLOGY="mesh:8", BYWAY_PASE="1M")
    findings = {f["what"]: f for f in json.loads((tmp_path / "d.json").read_text())["findings"]}
    assert {"byway", "UCX", "process reads (CMA)", "cores", "/dev/shm", "python"} <= set(findings)
    assert findings["topology"]["found"].startswith("mesh:8")
    assert not findings["BYWAY_PASE"]["good"]
    assert "BYWAY_PASE" in done.stdout


def test_doctor_reports_a_bad_topology(byway):
    assert "mesh:x" in byway("doctor", BYWAY_TOPOLOGY="mesh:x", status=1).stdout


# --- run


def test_run_prefixes_lines(byway):
    done = byway("run", "-n", 2, "--", "sh", "-c", "echo out $BYWAY_RANK; echo err >&2")
    assert sorted(done.stdout.splitlines()) == ["[0] out 0", "[1] out 1"]
    assert sorted(done.stderr.splitlines()) == ["[0] err", "[1] err"]


def test_run_one_rank_is_not_prefixed(byway):
    assert byway("run", "-n", 1, "echo", "x").stdout == "x\n"


def test_run_passes_the_exit_code_on(byway):
    done = byway("run", "-n", 3, "sh", "-c", "test $RANK = 2 && exit 9; sleep 60", status=9)
    assert "rank 2 exited with status 9; ending the other ranks" in done.stderr


def test_run_reports_a_signal(byway):
    done = byway("run", "-n", 2, "sh", "-c", "test $RANK = 1 && kill -9 $$; sleep 60", status=137)
    assert "rank 1 was ended by signal 9 (Killed)" in done.stderr


def test_run_names_a_missing_program(byway):
    line = only_line(byway("run", "-n", 2, "no-such-program", status=127).stderr)
    assert "cannot run no-such-program: No such file or directory" in line


def test_run_leaves_nothing_when_interrupted(tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    script = "echo ready; sleep 60"
    job = subprocess.Popen(
        [BYWAY, "run", "-n", "2", "sh", "-c", script],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert {job.stdout.readline(), job.stdout.readline()} == {"[0] ready\n", "[1] ready\n"}
    assert len(list(tmp_path.iterdir())) == 1
    job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=10) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
    assert job.stdout.read() == ""  # no rank holds the pipe


def test_run_survives_a_reader_that_leaves(tmp_path):
    command = f"'{BYWAY}' run -n 2 sh -c 'while :; do echo x; done' | head -n 3"
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=60
    )
    assert len(done.stdout.splitlines()) == 3
    deadline = time.monotonic() + 10
    while list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []


def test_run_works_with_python_programs(byway):
    program = "import os; print(os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']) > 0)"
    done = byway("run", "-n", 2, "--", sys.executable, "-c", program)
    assert sorted(done.stdout.splitlines()) == ["[0] 127.0.0.1 True", "[1] 127.0.0.1 True"]


# --- demo


def check_demo(document, cells, clock):
    assert (document["byway"], document["version"], document["clock"]) == ("results", 1, clock)
    assert len(document["rows"]) == cells
    for row in document["rows"]:
        assert row.keys() >= ROW_KEYS
        assert row["verified"] is True
        assert row["limit"] == pytest.approx(7)
        assert 0 < row["chosen_s"] < row["direct_s"]
        assert not row["same_plan"]
    held = {check["name"].split(" ")[0]: check["held"] for check in document["checks"]}
    assert held["every"]
    assert held["no"]


def test_demo_quick(byway, tmp_path):
    done = byway("demo", "--quick", "--pairs", 1)
    check_demo(json.loads((tmp_path / "byway-demo.json").read_text()), 2, "real")
    assert done.stdout.count("verified") == 2
    assert "cores idle" in done.stdout
    assert (tmp_path / "byway-demo.png").exists() or "no picture" in done.stdout
    assert list(tmp_path.glob("*.part")) == []


def test_demo_virtual(byway, tmp_path):
    byway("demo", "--virtual", "--cells", "A=2 single", "--json", "v.json", "--picture", "")
    document = json.loads((tmp_path / "v.json").read_text())
    check_demo(document, 4, "virtual")
    assert all(check["held"] for check in document["checks"])
    assert all(row["speedup"] >= row["bar"] for row in document["rows"])


def test_demo_fails_when_a_rank_dies(tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    job = subprocess.Popen(
        [BYWAY, "demo", "--pairs", "5"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    ranks = []
    deadline = time.monotonic() + 60
    while len(ranks) < 8 and time.monotonic() < deadline:
        time.sleep(0.1)
        children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        ranks = [
            c for c in children if b"demo-rank" in pathlib.Path(f"/proc/{c}/cmdline").read_bytes()
        ]
    time.sleep(1)
    os.kill(int(ranks[3]), signal.SIGKILL)
    _, errors = job.communicate(timeout=60)
    assert job.returncode == 128 + signal.SIGKILL
    assert "rank 3 was ended by signal 9" in errors
    assert list(tmp_path.iterdir()) == []
