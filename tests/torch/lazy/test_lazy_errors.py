# SPDX-License-Identifier: BSD-3-Clause
"""Lazy mode's errors, at the call and at the step; ends of processes."""

import os
import pathlib
import subprocess
import sys

import lazy_errors
import lazy_exits
import pytest
import ranks

SCRIPT = pathlib.Path(__file__).with_name("lazy_exits.py")


def test_argument_errors_are_eagers_at_the_call():
    for pairs, mixed in ranks.team(2).run(lazy_errors.argument_errors):
        for eager, recorded in pairs:
            assert eager[0], eager
            assert recorded == eager
        assert mixed[0] == "ValueError"
        assert "beside lazy ones" in mixed[1]


def test_an_error_of_the_step_keeps_its_type_until_reset():
    team = ranks.team(2)
    seen = team.run(lazy_errors.late_peer, seconds=90)[0]
    team.end()  # a group of it is broken
    kinds = [seen[call][0] for call in ("flush", "next")]
    assert kinds == ["DistBackendError"] * 2, seen
    assert "rank" in seen["flush"][1], seen
    assert "byway.lazy.reset()" in seen["next"][1], seen


def test_lazy_tensors_without_lazy_mode_are_an_error():
    team = ranks.team(2, BYWAY_LAZY="record")  # a team that nobody else turns lazy mode on in
    for told in team.run(lazy_errors.without_init):
        for kind, text in told:
            assert kind == "NotImplementedError", told
            assert "byway.lazy.init()" in text, told
    team.end()


def test_cut_does_not_wait_for_a_step_mark():
    ranks.team(2).run(lazy_errors.liveness)


def ended(name, size, folder, **variables):
    """Outputs and exit statuses of the ranks, each a program."""
    settings = dict(os.environ, BYWAY_TORCH_EXTENSION=str(ranks.extension_path()), **variables)
    settings["PYTHONPATH"] = f"{ranks.ROOT / 'python'}:{settings.get('PYTHONPATH', '')}"
    programs = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), name, str(rank), str(size), str(folder / "store")],
            env=settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    outputs = [program.communicate(timeout=150) for program in programs]
    return outputs, [program.returncode for program in programs]


def test_exit_with_work_pending_completes_it(tmp_path):
    outputs, statuses = ended("exit_with_work_pending", 2, tmp_path)
    assert statuses == [0, 0], outputs
    assert outputs[0][0].strip() == "[3.0, 3.0, 3.0, 3.0]", outputs


@pytest.mark.full
def test_destroy_with_work_pending_completes_it(tmp_path):
    outputs, statuses = ended("destroy_with_work_pending", 2, tmp_path)
    assert statuses == [0, 0], outputs
    assert all(out.strip() == "[3.0, 3.0, 3.0, 3.0]" for out, _ in outputs), outputs


@pytest.mark.full
@pytest.mark.parametrize(
    "name", ["killed_before", "killed_with_work_recorded", "killed_with_work_under_way"]
)
def test_a_killed_peer_is_named(name, tmp_path):
    outputs, statuses = ended(name, 3, tmp_path)
    assert statuses == [0, 0, -9], outputs
    for out, err in outputs[:2]:
        kind, seconds, text = out.split(" ", 2)
        assert kind == "DistBackendError", (out, err)
        assert "rank 2" in text, (out, err)
        assert float(seconds) < 10, out


@pytest.mark.full
@pytest.mark.parametrize("mode", ["record", "cut"])
@pytest.mark.parametrize("point", range(lazy_exits.POINTS))
def test_a_peer_killed_at_any_point_is_named(point, mode, tmp_path):
    """An error of lazy mode's own, a read's or a step mark's, which torch makes RuntimeErrors."""
    outputs, statuses = ended("killed_at", 3, tmp_path, TEST_POINT=str(point), BYWAY_LAZY=mode)
    assert statuses == [0, 0, -9], outputs
    for out, err in outputs[:2]:
        kind, seconds, text = out.split(" ", 2)
        assert kind in ("DistBackendError", "RuntimeError"), (out, err)
        assert "rank 2" in text, (out, err)
        assert float(seconds) < 15, out
