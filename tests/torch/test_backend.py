# SPDX-License-Identifier: BSD-3-Clause
"""Works, futures, errors and the life of groups; each function below runs in the ranks."""

import os
import subprocess
import sys
import textwrap
from datetime import timedelta

import pytest
import ranks
import torch
import torch.distributed as dist


def _all_ok(size, function, *arguments):
    return ranks.team(size).run(function, *arguments)


# --- works and futures


def future_is_a_list(context):
    tensor = torch.full((3,), float(context.rank))
    future = dist.all_reduce(tensor, async_op=True).get_future()
    value = future.wait()
    assert isinstance(value, list)
    assert value[0].data_ptr() == tensor.data_ptr()
    total = sum(range(context.size))
    assert torch.equal(tensor, torch.full((3,), float(total)))
    chained = dist.all_reduce(tensor, async_op=True).get_future().then(lambda f: f.value()[0] * 2)
    assert torch.equal(chained.wait(), torch.full((3,), 2.0 * total * context.size))


def test_future_is_a_list():
    _all_ok(3, future_is_a_list)


def waits_again(context):
    """A wait that runs out may be repeated; a work may be waited for twice."""
    tensor = torch.ones(4)
    if context.rank == 0:
        work = dist.irecv(tensor, 1, tag=5)
        with pytest.raises(RuntimeError, match="may be called again"):
            work.wait(timedelta(milliseconds=20))
        assert not work.is_completed()
    dist.barrier()
    if context.rank == 1:
        dist.send(tensor * 9, 0, tag=5)
    if context.rank == 0:
        work.wait()
        work.wait()
        assert work._source_rank() == 1
        assert torch.equal(tensor, torch.full((4,), 9.0))


def test_waits_again():
    _all_ok(2, waits_again)


def dropped_work_completes(context):
    tensors = [torch.full((1000,), float(context.rank)) for _ in range(20)]
    for tensor in tensors:
        dist.all_reduce(tensor, async_op=True)
    dist.barrier()
    other = torch.zeros(1)
    dist.all_reduce(other)
    # The barrier is over everywhere, so all earlier calls are, or end by themselves.
    for tensor in tensors:
        dist.all_reduce(tensor)
        assert tensor[0] == sum(range(context.size)) * context.size


def test_dropped_work_completes():
    _all_ok(3, dropped_work_completes)


def overlapping_calls(context):
    """Many calls under way at once, ended in another order than they were made."""
    tensors = [torch.full((257,), float(context.rank + i)) for i in range(50)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in reversed(works):
        work.wait()
    base = sum(range(context.size))
    for i, tensor in enumerate(tensors):
        assert torch.equal(tensor, torch.full((257,), float(base + i * context.size)))


def test_overlapping_calls():
    _all_ok(4, overlapping_calls)


def window_of_calls(context):
    group = dist.group.WORLD
    cpu = torch.device("cpu")
    a, b = torch.ones(3), torch.full((2,), float(context.rank))
    group._start_coalescing(cpu)
    dist.all_reduce(a)
    dist.broadcast(b, 0)
    work = group._end_coalescing(cpu)
    work.wait()
    assert torch.equal(a, torch.full((3,), float(context.size)))
    assert torch.equal(b, torch.zeros(2))
    assert [t.shape for t in work.result()] == [a.shape, b.shape]


def test_window_of_calls():
    _all_ok(2, window_of_calls)


# --- errors at the call


def bad_arguments(context):
    """Each is refused on every rank before anything is sent, and the group stays usable."""
    tensor = torch.ones(4)
    expanded = torch.ones(1).expand(4)
    cases = [
        (ValueError, "several elements at one address", lambda: dist.all_reduce(expanded)),
        (ValueError, "bitwise", lambda: dist.all_reduce(tensor, dist.ReduceOp.BXOR)),
        (
            ValueError,
            "premul_sum needs",
            lambda: dist.all_reduce(
                torch.ones(2, dtype=torch.int32), dist._make_nccl_premul_sum(2.0)
            ),
        ),
        (
            ValueError,
            "same",
            lambda: dist.all_gather_into_tensor(
                torch.zeros(4 * context.size, dtype=torch.int32), tensor
            ),
        ),
        (
            ValueError,
            "elements; expected",
            lambda: dist.all_gather_into_tensor(torch.zeros(5), tensor),
        ),
        (
            ValueError,
            "in place",
            lambda: dist.all_to_all_single(t := torch.ones(2 * context.size), t),
        ),
        (ValueError, "tag", lambda: dist.send(tensor, (context.rank + 1) % 2, tag=-4)),
    ]
    for kind, words, call in cases:
        with pytest.raises(kind, match=words):
            call()
        dist.all_reduce(torch.ones(1))


def test_bad_arguments():
    _all_ok(2, bad_arguments)


def mismatch(context):
    with pytest.raises(dist.DistBackendError) as caught:
        dist.all_reduce(torch.ones(2 + context.rank))
    return str(caught.value)


def test_mismatch_names_both_calls():
    team = ranks.Team(2, {})
    try:
        for rank, text in enumerate(team.run(mismatch)):
            assert f"on rank {rank} of 2" in text
            assert "all_reduce #1" in text
            assert f"float32[{2 + rank}]" in text
    finally:
        team.end()


def late_rank(context):
    group = dist.new_group(timeout=timedelta(seconds=1))
    if context.rank == 1:
        return ""
    import byway.torch

    with pytest.raises(dist.DistBackendError) as caught:
        byway.torch.monitored_barrier(group)
    return str(caught.value)


def test_monitored_barrier_names_who_is_missing():
    team = ranks.Team(2, {})
    try:
        text = team.run(late_rank)[0]
        assert "Timeout" in text
        assert "1" in text.split("Timeout")[0].split("rank")[-1]
    finally:
        team.end()


def abort_releases(context):
    import threading

    tensor = torch.ones(1)
    if context.rank == 0:
        work = dist.irecv(tensor, 1)
        threading.Timer(0.2, dist.group.WORLD.abort).start()
        with pytest.raises(dist.DistBackendError, match="abort"):
            work.wait()
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        with pytest.raises(dist.DistBackendError):
            dist.all_reduce(tensor)
        return type(backend).__name__
    with pytest.raises(dist.DistBackendError):
        dist.all_reduce(tensor)
    return ""


def test_abort_releases_waiters():
    team = ranks.Team(2, {})
    try:
        assert team.run(abort_releases)[0] == "ProcessGroupByway"
    finally:
        team.end()


# --- tensors


def special_tensors(context):
    """Conjugate and negative views, zero-dim, values of a parameter."""
    z = torch.tensor([1 + 2j, 3 - 1j]) * (context.rank + 1)
    output = [torch.zeros(2, dtype=torch.complex64) for _ in range(context.size)]
    dist.group.WORLD.allgather([output], [z.conj()]).wait()  # dist's own functions view it as real
    for rank, got in enumerate(output):
        assert torch.equal(got, torch.tensor([1 - 2j, 3 + 1j]) * (rank + 1))
    scalar = torch.tensor(context.rank + 1.0)
    dist.all_reduce(scalar)
    assert scalar.item() == sum(range(1, context.size + 1))
    weight = torch.nn.Parameter(torch.full((2, 3), float(context.rank)))
    dist.broadcast(weight.data.t(), 0)
    assert torch.equal(weight.detach(), torch.zeros(2, 3))
    factor = dist._make_nccl_premul_sum(torch.tensor(0.25))
    scaled = torch.full((4,), 8.0)
    dist.all_reduce(scaled, factor)
    assert torch.equal(scaled, torch.full((4,), 2.0 * context.size))


def test_special_tensors():
    _all_ok(2, special_tensors)


def rarest_types(context):
    """Types without arithmetic here are moved all the same."""
    tensor = torch.arange(8, dtype=torch.uint8).view(torch.float8_e8m0fnu)
    if context.rank != 0:
        tensor = torch.zeros(8, dtype=torch.uint8).view(torch.float8_e8m0fnu)
    dist.broadcast(tensor, 0)
    assert torch.equal(tensor.view(torch.uint8), torch.arange(8, dtype=torch.uint8))


def test_rarest_types():
    _all_ok(2, rarest_types)


def object_collectives(context):
    everything = [None] * context.size
    dist.all_gather_object(everything, {"rank": context.rank, "text": "x" * context.rank})
    assert everything == [{"rank": r, "text": "x" * r} for r in range(context.size)]
    one = [f"from {context.rank}"]
    dist.broadcast_object_list(one, 1)
    assert one == ["from 1"]
    gathered = [None] * context.size if context.rank == 0 else None
    dist.gather_object(context.rank**2, gathered, 0)
    if context.rank == 0:
        assert gathered == [r**2 for r in range(context.size)]
    mine = [None]
    dist.scatter_object_list(mine, list("abc") if context.rank == 0 else None, 0)
    assert mine == ["abc"[context.rank]]


def test_object_collectives():
    _all_ok(3, object_collectives)


def functional(context):
    import torch.distributed._functional_collectives as fc

    world = dist.group.WORLD
    mine = torch.full((2, 2), float(context.rank))
    total = float(sum(range(context.size)))
    assert torch.equal(fc.all_reduce(mine, "sum", world).wait(), torch.full((2, 2), total))
    gathered = fc.all_gather_tensor(mine, 0, world).wait()
    expected = torch.arange(context.size).repeat_interleave(2).float()[:, None].expand(-1, 2)
    assert torch.equal(gathered, expected)
    scattered = fc.reduce_scatter_tensor(gathered, "avg", 0, world).wait()
    assert torch.equal(scattered, mine)
    swapped = fc.all_to_all_single(gathered, None, None, world).wait()
    assert torch.equal(swapped, mine.repeat(context.size, 1))


def test_functional():
    _all_ok(3, functional)


def counts_exchanged(context):
    """With exchange_counts the unequal forms give the same."""
    import cells

    import byway.torch

    options = byway.torch.Options(exchange_counts=True)
    group = dist.new_group(list(range(context.size)), pg_options=options)
    for entry in ("gather_uneven", "scatter_uneven", "all_to_all_single_uneven"):
        side = cells.Side(context, cells.Cell(entry=entry, root=1))
        side.group = group
        cells.ENTRIES[entry](side)
    side = cells.Side(context, cells.Cell(entry="all_to_all_uneven"))
    side.group = group
    cells.all_to_all_uneven(side)
    dist.destroy_process_group(group)


def test_counts_exchanged():
    _all_ok(3, counts_exchanged)


# --- groups


def groups(context):
    import byway.torch

    subgroup, _ = dist.new_subgroups(2)
    tensor = torch.tensor([float(context.rank)])
    dist.all_reduce(tensor, group=subgroup)
    first = context.rank // 2 * 2
    assert tensor.item() == 2 * first + 1
    if context.rank in (1, 3):
        own = dist.new_group([1, 3], use_local_synchronization=True)
        tensor = torch.tensor([float(context.rank)])
        dist.all_reduce(tensor, group=own)
        assert tensor.item() == 4
    split = byway.torch.split_group(split_ranks=[[2, 0]])
    if context.rank in (0, 2):
        assert dist.get_rank(split) == context.rank // 2
        tensor = torch.tensor([float(context.rank)])
        dist.broadcast(tensor, 2, group=split)
        assert tensor.item() == 2
    else:
        assert split is None
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    tensor = torch.tensor([float(context.rank)])
    dist.all_reduce(tensor, group=mesh.get_group("a"))
    assert tensor.item() == 2 * (context.rank % 2) + 2
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    backend.options.group_name = backend.options.group_name
    backend.options.global_ranks_in_group = list(range(context.size))
    before = byway.torch.sequence_number()
    dist.all_reduce(tensor)
    assert byway.torch.sequence_number() == before + 1


def test_groups():
    # torch makes names of groups from how many a process has, so these must be the ranks' first.
    team = ranks.Team(4, {})
    try:
        team.run(groups)
    finally:
        team.end()


def many_worlds(context):
    """Groups made and destroyed, again and again, under one name in the store."""
    for round_ in range(20):
        group = dist.new_group([0, 1])
        tensor = torch.full((10,), float(context.rank + round_))
        dist.all_reduce(tensor, group=group)
        assert tensor[0] == 2 * round_ + 1
        dist.destroy_process_group(group)


def test_many_worlds():
    _all_ok(2, many_worlds)


# --- processes of their own


def script(text: str, size: int, *, seconds: float = 90, **environment: str):
    """Runs it as `size` processes with torchrun's variables; their outputs, all of status 0."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BYWAY_")}
    kept |= {
        "PYTHONPATH": str(ranks.ROOT / "python"),
        "BYWAY_TORCH_EXTENSION": str(ranks.extension_path()),
        "OMP_NUM_THREADS": "1",
    } | environment
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={size}", "--no-python", sys.executable, "-c"]
    done = subprocess.run(
        [*command, textwrap.dedent(text)], env=kept, capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_worlds_of_one_process():
    """Made, destroyed and made again by init_process_group; the second is left to the exit."""
    said = script(
        """
        import torch, torch.distributed as dist, byway.torch
        for _ in range(3):
            dist.init_process_group("byway")
            x = torch.ones(3)
            dist.all_reduce(x)
            assert x[0] == dist.get_world_size()
            dist.destroy_process_group()
        dist.init_process_group("cpu:byway")
        work = dist.all_reduce(x, async_op=True)
        print("left at exit")
        """,
        2,
    )
    assert said.count("left at exit") == 2
    assert "Error" not in said


def test_names_from_the_environment():
    said = script(
        """
        import torch, torch.distributed as dist, byway.torch
        dist.init_process_group("gloo")
        assert dist.get_backend() == "gloo", dist.get_backend()
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        assert type(backend).__name__ == "ProcessGroupByway"
        sub = dist.new_group([0, 1], backend="gloo")
        x = torch.ones(3)
        dist.all_reduce(x, group=sub)
        dist.barrier()
        assert x[0] == 2
        dist.destroy_process_group()
        """,
        2,
        BYWAY_AS="gloo",
    )
    assert 'of backend "gloo" are made by byway' in said
    said = script(
        """
        import torch, torch.distributed as dist, byway.torch
        dist.init_process_group()
        assert dist.get_backend() == "byway", dist.get_backend()
        dist.barrier()
        dist.destroy_process_group()
        """,
        1,
        BYWAY_DEFAULT="1",
    )
    assert "BYWAY_DEFAULT=1" in said


def test_fork_is_refused():
    script(
        """
        import os, torch, torch.distributed as dist, byway.torch
        dist.init_process_group("byway")
        child = os.fork()
        if child == 0:
            try:
                dist.all_reduce(torch.ones(1))
            except RuntimeError as error:
                os._exit(0 if "forked" in str(error) else 3)
            os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        dist.all_reduce(torch.ones(1))
        dist.destroy_process_group()
        """,
        2,
    )


def test_detail_debug_mode():
    script(
        """
        import torch, torch.distributed as dist, byway.torch
        dist.init_process_group("byway")
        x = torch.ones(2)
        dist.all_reduce(x)
        assert x[0] == 2
        dist.destroy_process_group()
        """,
        2,
        TORCH_DISTRIBUTED_DEBUG="DETAIL",
    )


def test_profiler_ranges():
    script(
        """
        import torch, torch.distributed as dist, byway.torch
        dist.init_process_group("byway")
        with torch.profiler.profile(record_shapes=True) as profile:
            dist.all_reduce(torch.ones(2, 3))
            dist.broadcast(torch.ones(4), 0)
        ranges = {e.name: e for e in profile.events() if e.name.startswith("byway:")}
        assert set(ranges) == {"byway:all_reduce", "byway:broadcast"}, set(ranges)
        assert ranges["byway:all_reduce"].is_async
        assert ranges["byway:all_reduce"].input_shapes == [[2, 3]]
        assert any(e.name == "record_param_comms" for e in profile.events())
        dist.destroy_process_group()
        """,
        2,
    )


def test_import_is_light():
    """Loads neither the extension nor Dynamo, and takes at most 5 ms."""
    code = textwrap.dedent(
        """
        import sys, time, torch
        start = time.perf_counter()
        import byway.torch
        took = time.perf_counter() - start
        assert "byway.torch._C" not in sys.modules
        assert "torch._dynamo" not in sys.modules
        print(took)
        """
    )
    environment = os.environ | {"PYTHONPATH": str(ranks.ROOT / "python")}
    times = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        times.append(float(done.stdout))
    assert min(times) < 0.005, times


def test_wrong_extension_is_named(tmp_path):
    """Another torch's extension: an error at creation with both versions; torch works on."""
    (tmp_path / "_C.json").write_text('{"byway": "0.1.0", "torch": "2.11.0"}')
    (tmp_path / "_C.so").write_bytes(b"")
    code = textwrap.dedent(
        """
        import torch, torch.distributed as dist, byway.torch
        store = dist.HashStore()
        try:
            dist.init_process_group("byway", rank=0, world_size=1, store=store)
        except ImportError as error:
            assert "2.11.0" in str(error) and torch.__version__ in str(error), error
        else:
            raise SystemExit("no error")
        dist.init_process_group("gloo", rank=0, world_size=1, store=store)
        dist.all_reduce(torch.ones(1))
        """
    )
    environment = os.environ | {
        "PYTHONPATH": str(ranks.ROOT / "python"),
        "BYWAY_TORCH_EXTENSION": str(tmp_path / "_C.so"),
    }
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
