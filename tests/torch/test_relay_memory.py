# SPDX-License-Identifier: BSD-3-Clause
"""What the relay's calls touch and what they allocate; groups without data."""

import ctypes
import mmap
import resource

import byway.torchrec
import pytest
import ranks
import relay_client
import torch
import torch.distributed as dist

COUNTS = (40_000, 1003)
PAGE = mmap.PAGESIZE


def _client(context, group_size, name):
    byway.torchrec.install()
    return relay_client.Client(context.rank, context.size, group_size, name)


def _team(size=4, **settings):
    return ranks.team(size, BYWAY_TOPOLOGY=f"mesh:{size}@1G,5", **settings)


class Forbidden:
    """A page that may not be read or written, as a tensor of one element."""

    def __init__(self, dtype):
        self._memory = mmap.mmap(-1, PAGE)
        self.tensor = torch.frombuffer(self._memory, dtype=dtype, count=1)
        if self._libc().mprotect(self._address(), PAGE, 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")

    def allow(self):
        self._libc().mprotect(self._address(), PAGE, mmap.PROT_READ | mmap.PROT_WRITE)

    def _address(self):
        return ctypes.c_void_p(self.tensor.data_ptr())

    @staticmethod
    def _libc():
        return ctypes.CDLL(None, use_errno=True)


def four_calls(client, slots_of, dtype, counts):
    """Each method, in place where that is allowed and out of place; what the outputs are."""
    n, mine = client.group_size, max(client.group, 0)
    count = counts[mine]
    flat = torch.arange(n * count).to(dtype) + client.comm.get_rank()
    small, large = torch.zeros(count, dtype=dtype), torch.zeros(n * count, dtype=dtype)
    own = slice(client.index * count, (client.index + 1) * count)
    call = client.call
    call("allreduce_multi_group", tensors=slots_of(flat[:count]), per_group_sizes=counts)
    call(
        "allreduce_multi_group",
        tensors=slots_of(flat[:count]),
        output_tensors=slots_of(small),
        per_group_sizes=counts,
        op=dist.ReduceOp.AVG,
    )
    for output in (small, flat[own]):
        call(
            "reduce_scatter_multi_group",
            input_tensors=slots_of(flat),
            output_tensors=slots_of(output),
            per_group_recv_counts=counts,
        )
    for given in (small, large[own]):
        call(
            "all_gather_multi_group",
            input_tensors=slots_of(given),
            output_tensors=slots_of(large),
            per_group_send_counts=counts,
        )
    call(
        "all_to_all_multi_group",
        input_tensors=slots_of(flat),
        output_tensors=slots_of(large),
        per_group_segment_counts=counts,
    )


def placeholders(context, group_size, dtype):
    """Reading one would end the process. Their sizes are not looked at either."""
    client = _client(context, group_size, f"placeholders{group_size}{dtype}")
    counts = [COUNTS[g % 2] for g in range(len(client.groups))]
    forbidden = Forbidden(dtype)

    def slots(mine):
        made = [forbidden.tensor] * len(client.groups)
        if client.group >= 0:
            made[client.group] = mine
        return made

    four_calls(client, slots, dtype, counts)
    forbidden.allow()
    client.comm.finalize()
    return int(forbidden.tensor.view(torch.uint8).sum())


@pytest.mark.parametrize("group_size", [2, 3])
def test_placeholders_are_not_touched(group_size):
    for dtype in (torch.float32, torch.bfloat16):
        assert _team().run(placeholders, group_size, dtype) == [0] * 4


@pytest.mark.full
@pytest.mark.parametrize("group_size", [2, 4])
def test_placeholders_of_eight_ranks(group_size):
    assert _team(8).run(placeholders, group_size, torch.float32, seconds=300) == [0] * 8


def groups_without_data(context):
    """A group whose count is zero: its ranks help the other one."""
    client = _client(context, 2, "empty")
    for counts in ([1 << 18, 0], [0, 1 << 18], [0, 0]):
        count = counts[client.group]
        flat = torch.full((2 * count,), float(context.rank))
        out = torch.zeros(2 * count)
        client.call(
            "allreduce_multi_group",
            tensors=client.slots(flat[:count], torch.float32),
            per_group_sizes=counts,
        )
        assert torch.equal(
            flat[:count], torch.full((count,), float(sum(client.groups[client.group])))
        )
        blocks = [torch.full((count,), 10.0 * context.rank + block) for block in range(2)]
        client.call(
            "all_to_all_multi_group",
            input_tensors=client.slots(torch.cat(blocks), torch.float32),
            output_tensors=client.slots(out, torch.float32),
            per_group_segment_counts=counts,
        )
        wanted = [10.0 * rank + client.index for rank in client.groups[client.group]]
        assert torch.equal(out, torch.tensor(wanted).repeat_interleave(count))


def test_groups_without_data():
    _team().run(groups_without_data)


def _faults(call, times):
    call()
    call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def every_allocation_is_fresh():
    """Large memory that is freed goes back to the system, and what comes from there comes by small
    pages, each of which is counted when it is touched."""
    libc = ctypes.CDLL(None)
    trim_threshold, mmap_threshold, disable_huge_pages = -1, -3, 41
    libc.mallopt(trim_threshold, 1 << 16)
    libc.mallopt(mmap_threshold, 1 << 16)
    libc.prctl(disable_huge_pages, 1, 0, 0, 0)


MEGABYTES = 16  # of a rank's data in one call


def pages_of_later_calls(context):
    """Pages that ten calls touch for the first time, of the relay and of fused calls of lists; the
    last with a fresh tensor of as many bytes in each, which shows that such pages are seen."""
    import byway.torch

    every_allocation_is_fresh()
    client = _client(context, 2, "pages")
    count = MEGABYTES << 18
    slots = client.slots(torch.ones(count), torch.float32)

    def relayed():
        client.call("allreduce_multi_group", tensors=slots, per_group_sizes=[count] * 2)

    # So many that the transport packs them.
    tables = [torch.ones(count // 300 + 100 * number) for number in range(200)]
    numbers = [torch.ones(7000 + number, dtype=torch.int32) for number in range(20)]

    def listed():
        byway.torch.fused_all_reduce([*tables, *numbers], [[0, 1], [2, 3]], key="pages")

    def wasteful():
        listed()
        torch.ones(count)

    return [_faults(call, 10) for call in (relayed, listed, wasteful)]


def test_later_calls_allocate_nothing():
    team = _team(BYWAY_LATE_AFTER="30")  # a team of its own
    pages = 10 * (MEGABYTES << 20) // PAGE
    for found in team.run(pages_of_later_calls, seconds=120):
        relayed, listed, wasteful = found
        assert wasteful > pages, found
        assert relayed < pages // 50, found  # small things: the call's own records
        assert listed < pages // 50, found
    team.end()
