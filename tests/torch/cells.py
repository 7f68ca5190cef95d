# SPDX-License-Identifier: BSD-3-Clause
"""What runs in the ranks: one function per operation and entry point.

Each builds its tensors from oracle.values, makes the call, and checks every element it received. A
Cell says how; `call` makes the data of two calls differ.
"""

import dataclasses

import layouts
import oracle
import torch
import torch.distributed as dist


@dataclasses.dataclass(frozen=True)
class Cell:
    entry: str
    dtype: str = "float32"
    op: str = "sum"
    layout: str = "contiguous"
    shape: tuple[int, ...] = (6, 4)
    ranks: tuple[int, ...] | None = None  # of the group; None: the world
    root: int = 0  # position in the group
    asynchronous: bool = False
    call: int = 0


class Side:
    """A rank's view of a cell: the group, and tensors by group rank."""

    def __init__(self, context, cell: Cell):
        self.cell = cell
        self.group = context.group(cell.ranks)
        self.members = list(cell.ranks) if cell.ranks else list(range(context.size))
        self.size = len(self.members)
        self.inside = context.rank in self.members
        self.me = self.members.index(context.rank) if self.inside else -1
        self.kind = getattr(torch, cell.dtype)

    def global_root(self) -> int:
        return self.members[self.cell.root % self.size]

    @property
    def root(self) -> int:
        return self.cell.root % self.size

    def array(self, source: int, shape, part: int = 0):
        count = int(torch.Size(shape).numel())
        return oracle.values(self.cell.dtype, source, self.cell.call + 100 * part, count)

    def input(self, source: int, shape, part: int = 0) -> torch.Tensor:
        plain = oracle.tensor(self.cell.dtype, self.array(source, shape, part), shape)
        return layouts.filled(plain, self.cell.layout)

    def output(self, shape) -> torch.Tensor:
        return layouts.empty(tuple(shape), self.kind, self.cell.layout)

    def reduced(self, shape, part: int = 0):
        arrays = [self.array(r, shape, part) for r in range(self.size)]
        return oracle.reduced(self.cell.dtype, self.cell.op, arrays)

    def op(self):
        if self.cell.op == "premul_sum":
            return dist._make_nccl_premul_sum(oracle.FACTOR)
        return getattr(dist.ReduceOp, self.cell.op.upper())

    def done(self, call, *arguments, **named) -> None:
        """Makes the call, blocking or not, and waits for its end."""
        work = call(*arguments, group=self.group, async_op=self.cell.asynchronous, **named)
        if self.cell.asynchronous:
            work.wait()
            if isinstance(work, dist.Work):  # coalesced forms give a future
                assert work.is_completed()
                assert work.is_success()

    def check(self, actual, expected, what: str = "") -> None:
        oracle.check(actual, self.cell.dtype, expected, f"{self.cell} rank {self.me} {what}")


def all_reduce(side: Side) -> None:
    shape = side.cell.shape
    tensor = side.input(side.me, shape)
    side.done(dist.all_reduce, tensor, side.op())
    side.check(tensor, side.reduced(shape))


def all_reduce_coalesced(side: Side) -> None:
    shapes = [side.cell.shape, (3,), ()]
    tensors = [side.input(side.me, shape, i) for i, shape in enumerate(shapes)]
    side.done(dist.all_reduce_coalesced, tensors, op=side.op())
    for i, (tensor, shape) in enumerate(zip(tensors, shapes, strict=True)):
        side.check(tensor, side.reduced(shape, i), f"tensor {i}")


def reduce(side: Side) -> None:
    shape = side.cell.shape
    tensor = side.input(side.me, shape)
    side.done(dist.reduce, tensor, side.global_root(), side.op())
    if side.me == side.root:
        side.check(tensor, side.reduced(shape))
    else:
        side.check(tensor, side.array(side.me, shape), "changed")


def broadcast(side: Side) -> None:
    shape = side.cell.shape
    tensor = side.input(side.me, shape)
    side.done(dist.broadcast, tensor, side.global_root())
    side.check(tensor, side.array(side.root, shape))


def uneven(side: Side, rank: int) -> tuple[int, ...]:
    """A shape that differs by rank; one of them has nothing."""
    return ((rank * 3 + 2) % 5 if rank != 1 else 0, *side.cell.shape[1:])


def all_gather(side: Side, shape_of=lambda side, rank: side.cell.shape) -> None:
    outputs = [side.output(shape_of(side, r)) for r in range(side.size)]
    side.done(dist.all_gather, outputs, side.input(side.me, shape_of(side, side.me)))
    for r, output in enumerate(outputs):
        side.check(output, side.array(r, shape_of(side, r)), f"from {r}")


def all_gather_uneven(side: Side) -> None:
    all_gather(side, uneven)


def _gathered(side: Side, output: torch.Tensor, shape, part: int = 0) -> None:
    for r, piece in enumerate(output.reshape(side.size, *shape)):
        side.check(piece, side.array(r, shape, part), f"from {r}, part {part}")


def all_gather_into_tensor(side: Side) -> None:
    shape = side.cell.shape
    output = side.output((side.size * shape[0], *shape[1:]))
    side.done(dist.all_gather_into_tensor, output, side.input(side.me, shape))
    _gathered(side, output, shape)


def all_gather_stacked(side: Side) -> None:
    shape = side.cell.shape
    output = side.output((side.size, *shape))
    side.done(dist.all_gather_into_tensor, output, side.input(side.me, shape))
    _gathered(side, output, shape)


def all_gather_coalesced(side: Side) -> None:
    shapes = [side.cell.shape, (5,)]
    lists = [[side.output(shape) for shape in shapes] for _ in range(side.size)]
    inputs = [side.input(side.me, shape, i) for i, shape in enumerate(shapes)]
    side.done(dist.all_gather_coalesced, lists, inputs)
    for r, outputs in enumerate(lists):
        for i, (output, shape) in enumerate(zip(outputs, shapes, strict=True)):
            side.check(output, side.array(r, shape, i), f"from {r}, tensor {i}")


def all_gather_into_tensor_coalesced(side: Side) -> None:
    shapes = [side.cell.shape, (3,)]
    outputs = [side.output((side.size * shape[0], *shape[1:])) for shape in shapes]
    inputs = [side.input(side.me, shape, i) for i, shape in enumerate(shapes)]
    with dist._coalescing_manager(group=side.group):
        for output, source in zip(outputs, inputs, strict=True):
            dist.all_gather_into_tensor(output, source, group=side.group)
    for i, (output, shape) in enumerate(zip(outputs, shapes, strict=True)):
        _gathered(side, output, shape, i)


def reduce_scatter(side: Side, shape_of=lambda side, rank: side.cell.shape) -> None:
    inputs = [side.input(side.me, shape_of(side, r), r) for r in range(side.size)]
    shape = shape_of(side, side.me)
    output = side.output(shape)
    side.done(dist.reduce_scatter, output, inputs, side.op())
    side.check(output, side.reduced(shape, side.me))


def reduce_scatter_uneven(side: Side) -> None:
    reduce_scatter(side, uneven)


def reduce_scatter_tensor(side: Side) -> None:
    shape = side.cell.shape
    whole = (side.size * shape[0], *shape[1:])
    output = side.output(shape)
    side.done(dist.reduce_scatter_tensor, output, side.input(side.me, whole), side.op())
    expected = side.reduced(whole).reshape(side.size, -1)[side.me]
    side.check(output, expected)


def reduce_scatter_tensor_coalesced(side: Side) -> None:
    shapes = [side.cell.shape, (3,)]
    outputs = [side.output(shape) for shape in shapes]
    wholes = [(side.size * shape[0], *shape[1:]) for shape in shapes]
    with dist._coalescing_manager(group=side.group):
        for i, (output, whole) in enumerate(zip(outputs, wholes, strict=True)):
            source = side.input(side.me, whole, i)
            dist.reduce_scatter_tensor(output, source, side.op(), group=side.group)
    for i, (output, whole) in enumerate(zip(outputs, wholes, strict=True)):
        side.check(output, side.reduced(whole, i).reshape(side.size, -1)[side.me], f"tensor {i}")


def gather(side: Side, shape_of=lambda side, rank: side.cell.shape) -> None:
    outputs = None
    if side.me == side.root:
        outputs = [side.output(shape_of(side, r)) for r in range(side.size)]
    source = side.input(side.me, shape_of(side, side.me))
    side.done(dist.gather, source, outputs, side.global_root())
    for r, output in enumerate(outputs or []):
        side.check(output, side.array(r, shape_of(side, r)), f"from {r}")


def gather_uneven(side: Side) -> None:
    gather(side, uneven)


def scatter(side: Side, shape_of=lambda side, rank: side.cell.shape) -> None:
    inputs = None
    if side.me == side.root:
        inputs = [side.input(side.root, shape_of(side, r), r) for r in range(side.size)]
    output = side.output(shape_of(side, side.me))
    side.done(dist.scatter, output, inputs, side.global_root())
    side.check(output, side.array(side.root, shape_of(side, side.me), side.me))


def scatter_uneven(side: Side) -> None:
    scatter(side, uneven)


def all_to_all_single(side: Side) -> None:
    shape = side.cell.shape
    whole = (side.size * shape[0], *shape[1:])
    output = side.output(whole)
    side.done(dist.all_to_all_single, output, side.input(side.me, whole))
    for r, piece in enumerate(output.reshape(side.size, *shape)):
        side.check(piece, side.array(r, whole).reshape(side.size, -1)[side.me], f"from {r}")


def rows(source: int, destination: int) -> int:
    """Of a pair in the uneven all-to-all; some pairs have none."""
    return (source * 2 + destination * 3 + 1) % 4


def all_to_all_single_uneven(side: Side) -> None:
    tail = side.cell.shape[1:]
    sends = [rows(side.me, r) for r in range(side.size)]
    receives = [rows(r, side.me) for r in range(side.size)]
    output = side.output((sum(receives), *tail))
    source = side.input(side.me, (sum(sends), *tail))
    side.done(dist.all_to_all_single, output, source, receives, sends)
    for r, piece in enumerate(output.split(receives)):
        theirs = [rows(r, d) for d in range(side.size)]
        all_rows = side.array(r, (sum(theirs), *tail)).reshape(sum(theirs), -1)
        first = sum(theirs[: side.me])
        side.check(piece, all_rows[first : first + theirs[side.me]].reshape(-1), f"from {r}")


def all_to_all(side: Side, shape_of=lambda side, a, b: side.cell.shape) -> None:
    inputs = [side.input(side.me, shape_of(side, side.me, r), r) for r in range(side.size)]
    outputs = [side.output(shape_of(side, r, side.me)) for r in range(side.size)]
    side.done(dist.all_to_all, outputs, inputs)
    for r, output in enumerate(outputs):
        side.check(output, side.array(r, shape_of(side, r, side.me), side.me), f"from {r}")


def all_to_all_uneven(side: Side) -> None:
    all_to_all(side, lambda side, a, b: (rows(a, b), *side.cell.shape[1:]))


def send_recv(side: Side) -> None:
    """Around the ring, with tags, and from any source."""
    shape = side.cell.shape
    if side.size == 1:
        return
    after, before = (side.me + 1) % side.size, (side.me - 1) % side.size
    work = dist.isend(
        side.input(side.me, shape), group=side.group, group_dst=after, tag=7 + side.cell.call
    )
    output = side.output(shape)
    source = None if side.cell.asynchronous else side.members[before]
    came_from = dist.recv(output, source, group=side.group, tag=7 + side.cell.call)
    work.wait()
    assert came_from == side.members[before]
    side.check(output, side.array(before, shape))


def batch_isend_irecv(side: Side) -> None:
    shape = side.cell.shape
    others = [r for r in range(side.size) if r != side.me]
    if not others:
        return
    outputs = {r: side.output(shape) for r in others}
    ops = []
    for r in others:
        source = side.input(side.me, shape, r)
        ops.append(dist.P2POp(dist.isend, source, group=side.group, group_peer=r))
        ops.append(dist.P2POp(dist.irecv, outputs[r], group=side.group, group_peer=r))
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    for r, output in outputs.items():
        side.check(output, side.array(r, shape, side.me), f"from {r}")


def barrier(side: Side) -> None:
    work = dist.barrier(group=side.group, async_op=side.cell.asynchronous)
    if side.cell.asynchronous:
        work.wait()


MOVES = [
    broadcast,
    all_gather,
    all_gather_uneven,
    all_gather_into_tensor,
    all_gather_stacked,
    all_gather_coalesced,
    all_gather_into_tensor_coalesced,
    gather,
    gather_uneven,
    scatter,
    scatter_uneven,
    all_to_all_single,
    all_to_all_single_uneven,
    all_to_all,
    all_to_all_uneven,
    send_recv,
    batch_isend_irecv,
    barrier,
]
REDUCES = [
    all_reduce,
    all_reduce_coalesced,
    reduce,
    reduce_scatter,
    reduce_scatter_uneven,
    reduce_scatter_tensor,
    reduce_scatter_tensor_coalesced,
]
ENTRIES = {function.__name__: function for function in MOVES + REDUCES}
BLOCKING_ONLY = {"all_gather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced"}


def run_cells(context, cells: list[Cell]) -> int:
    """Runs them in order; the number that this rank took part in."""
    ran = 0
    for cell in cells:
        side = Side(context, cell)
        if side.inside:
            ENTRIES[cell.entry](side)
            ran += 1
    return ran
