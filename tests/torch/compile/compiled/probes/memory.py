# SPDX-License-Identifier: BSD-3-Clause
"""What calls do with memory: none is copied by a call that is waited for at once, and a started
one's inputs may be written before its wait.
"""

import contextlib

import torch
import torch.distributed as dist
from torch._inductor.utils import run_and_get_code

from ..harness import compare


@contextlib.contextmanager
def addresses():
    """The addresses of the tensors that the compiled code's `run` gets."""
    log = []
    plain = torch._ops.OpOverload.__call__

    def call(self, /, *args, **kwargs):
        if self is torch.ops.byway.run.default:
            log.extend(t.data_ptr() for t in [*args[2], *args[3]])
        return plain(self, *args, **kwargs)

    torch._ops.OpOverload.__call__ = call
    try:
        yield log
    finally:
        torch._ops.OpOverload.__call__ = plain


def arguments_are_not_copied(c, backend):
    """The operators get the caller's own memory; aot_eager runs copies of what a graph mutates."""
    if backend == "aot_eager":
        return

    def fn(x, out, parts):
        dist.all_reduce(x)
        dist.all_gather_into_tensor(out, x)
        dist.broadcast(x, 0)
        dist.all_gather(parts, x)
        dist.reduce_scatter_tensor(x, out)

    compiled = torch.compile(fn, backend=backend, fullgraph=True)

    def args(k):
        return c.x(k), torch.empty(4 * c.n), [torch.empty(4) for _ in range(c.n)]

    compiled(*args(0))
    for k in range(1, 3):
        x, out, parts = args(k)
        given = [t.data_ptr() for t in (x, x, out, x, x, *parts, out, x)]
        with addresses() as log:
            compiled(x, out, parts)
        compare(parts[c.n - 1], c.sum(k), f"call {k}")
        compare(x, c.n * c.sum(k), f"call {k}")
        assert log == given, f"call {k}"


def temporaries_are_not_copied(c, backend):
    """One allocation for each tensor of the program, and none for its calls."""
    if backend != "inductor":
        return

    def fn(x):
        y = x * 2
        dist.all_reduce(y)
        out = torch.empty(4 * c.n)
        dist.all_gather_into_tensor(out, y)
        return out

    compiled = torch.compile(fn, fullgraph=True)
    out, codes = run_and_get_code(compiled, c.x(1))
    compare(out, torch.cat([2 * c.sum(1)] * c.n), "result")
    assert len(codes) == 1
    allocated = [line for line in codes[0].splitlines() if "= empty_strided" in line]
    assert len(allocated) == 2, codes[0]
    assert "clone" not in codes[0], codes[0]


_SIDE = 512  # too large to be sent before the receiver asks for it


def written_while_under_way(c, backend):
    """A send that cannot be over: its receiver takes it after a message which the sender sends
    when it has computed something else, for which inductor uses the memory of what is being sent.
    """
    if c.me > 1:
        return

    def sender(x):
        y = x * 2
        work = dist.isend(y, 1)
        z = x @ x
        dist.send(z, 1, tag=1)
        work.wait()
        return z

    def receiver(x):
        out, z = torch.empty_like(x), torch.empty_like(x)
        dist.recv(z, 0, tag=1)
        dist.recv(out, 0)
        return out, z

    compiled = torch.compile(receiver if c.me else sender, backend=backend, fullgraph=True)
    for k in range(2):
        x = c.x(k, 0, shape=(_SIDE, _SIDE)) / _SIDE**2
        if c.me:
            compare(compiled(torch.zeros_like(x)), (2 * x, x @ x), f"call {k}")
        elif backend == "inductor" and k == 0:
            out, codes = run_and_get_code(compiled, x)
            compare(out, x @ x, "call 0")
            # Else the program shows nothing: `y` was not written to.
            assert "# reuse" in codes[0], codes[0]
        else:
            compare(compiled(x), x @ x, f"call {k}")


PROBES = (arguments_are_not_copied, temporaries_are_not_copied, written_while_under_way)
