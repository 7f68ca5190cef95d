# SPDX-License-Identifier: BSD-3-Clause
"""byway.torch.flight_record() is read by torch's own tool, and leads it to a missing rank."""

import pickle

import pytest
from test_backend import script
from torch.distributed.flight_recorder.components import builder, config_manager, loader

# Every kind of call, twice, in two groups; messages at the end, which the tool lists last.
CALLS = """
    import os, pathlib, torch, torch.distributed as dist, byway.torch
    from datetime import timedelta
    dist.init_process_group("byway", timeout=timedelta(seconds=20))
    rank, size = dist.get_rank(), dist.get_world_size()
    pair = dist.new_group([2, 0])
    for _ in range(2):
        x = torch.ones(size, 2)
        parts = [torch.ones(2) for _ in range(size)]
        dist.all_reduce(x)
        dist.reduce(x, 1)
        dist.broadcast(x, 2)
        dist.all_gather([torch.empty(2) for _ in range(size)], parts[0])
        dist.all_gather_into_tensor(torch.empty(2 * size), parts[0])
        dist.reduce_scatter(torch.empty(2), parts)
        dist.reduce_scatter_tensor(torch.empty(2), torch.ones(2 * size))
        dist.gather(parts[0], [torch.empty(2) for _ in range(size)] if rank == 0 else None, dst=0)
        dist.scatter(torch.empty(2), parts if rank == 1 else None, src=1)
        dist.all_to_all_single(torch.empty(size, 2), x)
        dist.all_to_all([torch.empty(rank + 1) for _ in range(size)],
                        [torch.ones(i + 1) for i in range(size)])
        dist.barrier()
        if rank != 1:
            dist.all_reduce(torch.ones(4), group=pair)
    folder = pathlib.Path(os.environ["FOLDER"])
"""


def analyse(folder):
    """The collectives that torchfrtrace finds, those that it could not match too."""
    config = config_manager.JobConfig().parse_args([str(folder), "--allow-incomplete-ranks"])
    details, version = loader.read_dir(config)
    return builder.build_db(details, config, version).collectives


def test_all_calls_match(tmp_path):
    script(
        CALLS
        + """
    (folder / f"flight-{rank}").write_bytes(byway.torch.flight_record())
    dist.destroy_process_group()
    """,
        3,
        FOLDER=str(tmp_path),
    )
    collectives = analyse(tmp_path)
    assert len(collectives) == 2 * 13
    assert all(collective.pass_check for collective in collectives), collectives
    record = pickle.loads((tmp_path / "flight-1").read_bytes())
    assert {entry["state"] for entry in record["entries"]} == {"completed"}
    assert all(entry["duration_ms"] > 0 for entry in record["entries"])
    assert record["pg_config"]["0"]["ranks"] == "[0, 1, 2]"


def test_messages(tmp_path):
    script(
        """
        import os, pathlib, torch, torch.distributed as dist, byway.torch
        dist.init_process_group("byway")
        rank, x = dist.get_rank(), torch.ones(5)
        dist.send(x, 1) if rank == 0 else dist.recv(x)
        path = pathlib.Path(os.environ["FOLDER"]) / f"flight-{rank}"
        path.write_bytes(byway.torch.flight_record())
        dist.destroy_process_group()
        """,
        2,
        FOLDER=str(tmp_path),
    )
    names = [
        pickle.loads((tmp_path / f"flight-{rank}").read_bytes())["entries"][0]["profiling_name"]
        for rank in (0, 1)
    ]
    assert names == ["gloo:send 0->1", "gloo:recv 1<-0"]


@pytest.mark.parametrize("missing", [0, 2])
def test_missing_rank_is_found(tmp_path, caplog, missing):
    """The failing ranks write by themselves; the one that never came, when it is asked."""
    script(
        CALLS
        + f"""
    if rank == {missing}:
        path = folder / f"byway-flight-rank-{{rank}}"
        path.write_bytes(byway.torch.flight_record())
        dist.destroy_process_group()
    else:
        try:
            dist.all_reduce(torch.ones(9))
        except dist.DistBackendError:
            pass
        else:
            raise SystemExit("no error")
    """,
        3,
        FOLDER=str(tmp_path),
        BYWAY_RECORDER_DIR=str(tmp_path),
    )
    caplog.set_level("INFO")
    analyse(tmp_path)  # its findings are lines of its log
    assert f"missing ranks: {{{missing}}}" in caplog.text
    assert "collective: gloo:all_reduce" in caplog.text
    assert "input sizes: [[9]]" in caplog.text
