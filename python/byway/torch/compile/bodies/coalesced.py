# SPDX-License-Identifier: BSD-3-Clause
"""Coalesced calls, and the window (`_coalescing_manager`) that makes one call of several."""

from torch.distributed import ReduceOp

from .. import groups, reduce_ops
from ..calls import Options, launch
from ..registry import body

# Windows that are open, innermost last. Empty outside of tracing.
_open: list = []


class IllegalWork:
    """What a call inside a window returns for async_op=True: the window has the only Work."""

    def wait(self, timeout=None):
        raise RuntimeError("Illegal to call wait on IllegalWork object")


class Window:
    """The calls between a window's start and its end, which are one call of the group."""

    def __init__(self, pg, async_ops):
        self.pg = pg
        self.async_ops = async_ops
        self.kind = ""
        self.ins = []
        self.outs = []
        self.options = None
        self.in_ends = []
        self.out_ends = []
        self.works = []

    def add(self, kind, ins, out, options):
        if self.kind not in ("", kind):
            raise RuntimeError(
                "Coalescing manager requires all collectives to be the same type, "
                f"but got mixed types: {self.kind}, {kind}"
            )
        self.kind = kind
        self.ins.extend(ins)
        self.outs.append(out)
        if self.options is None:
            self.options = options
        return IllegalWork()

    def add_transfer(self, ins, outs, peer, tag):
        if self.kind not in ("", "batch"):
            raise RuntimeError(f"Coalescing manager got point-to-point calls among {self.kind}")
        self.kind = "batch"
        self.ins.extend(ins)
        self.outs.extend(outs)
        self.in_ends.extend([(peer, tag) for _ in ins])
        self.out_ends.extend([(peer, tag) for _ in outs])
        return IllegalWork()

    def append(self, work=None):
        if work:
            self.works.append(work)

    def wait(self):
        for work in self.works:
            work.wait()

    def __enter__(self):
        _open.append(self)
        return self

    def __exit__(self, kind, error, trace):
        _open.remove(self)
        if kind is None and self.kind != "":
            self.issue()
        return False

    def issue(self):
        options = self.options
        if self.kind == "batch":
            ends = self.in_ends + self.out_ends
            options = Options(
                self.pg, peers=[peer for peer, _ in ends], tags=[tag for _, tag in ends]
            )
        self.append(launch(self.kind, self.ins, self.outs, options, self.async_ops))


def window_of(pg):
    """The open window of this group, or None."""
    for window in _open:
        if window.pg == pg:
            return window
    return None


@body("_coalescing_manager")
def coalescing_manager(group=None, device=None, async_ops=False):
    return Window(groups.member(group), async_ops)


@body("all_reduce_coalesced")
def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    pg = groups.member(group)
    if pg is None:
        return None
    tensors = [tensors] if not isinstance(tensors, (list, tuple)) else list(tensors)
    name, scale, factor = reduce_ops.describe(op)
    reduce_ops.check_complex(name, tensors, "all_reduce")
    work = launch("all_reduce_coalesced", [], tensors, Options(pg, name, scale, factor), async_op)
    return work.get_future() if async_op else None


@body("all_gather_coalesced")
def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    pg = groups.member(group)
    if pg is None:
        return None
    outs = [tensor for tensors in output_tensor_lists for tensor in tensors]
    work = launch("all_gather_coalesced", list(input_tensor_list), outs, Options(pg), async_op)
    return work.get_future() if async_op else None
