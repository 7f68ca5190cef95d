# SPDX-License-Identifier: BSD-3-Clause
"""The traced operators (src/byway/torch/traceable_ops.cc), called the way the bodies need them."""

import torch

from .token import token

_UNSET = -1
_REAL = {
    torch.complex32: torch.float16,
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
}
# The operators that make a call, and those that start one.
RUNS = ("run", "fused")
STARTS = ("start", "fused_start")
# Their outputs hold the input (isInPlace in traced_call.cc).
_IN_PLACE = ("all_reduce", "all_reduce_coalesced", "broadcast", "reduce")


def register_fakes():
    """Fake kernels: nothing but the starts returns a tensor."""
    for name in (*RUNS, "wait", "join"):
        torch.library.register_fake(f"byway::{name}", lambda *args: None)
    for name in STARTS:
        torch.library.register_fake(
            f"byway::{name}", lambda *args: torch.empty(1, dtype=torch.int64)
        )
    # An exported graph keeps its calls, whether or not a result is used.
    for name in (*RUNS, *STARTS, "wait", "join"):
        packet = getattr(torch.ops.byway, name)
        torch.fx.node.has_side_effect(packet)
        torch.fx.node.has_side_effect(packet.default)


def milliseconds(timeout):
    return _UNSET if timeout is None else int(timeout.total_seconds() * 1000)


def _as_real(tensor):
    """A complex tensor's parts, in memory of their own.

    A mutated view of complex memory fails under AOTAutograd, and a mutated
    complex tensor under inductor.
    """
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj()).clone()
    return tensor


def _real_buffer(tensor):
    if tensor.is_complex():
        return torch.empty([*tensor.shape, 2], dtype=_REAL[tensor.dtype], device=tensor.device)
    return tensor


def _store(outs, buffers):
    for out, buffer in zip(outs, buffers, strict=True):
        if out.is_complex():
            out.copy_(torch.view_as_complex(buffer))


def some(values):
    """The operators take None for a list that the call has no use for."""
    return list(values) if len(values) > 0 else None


class Options:
    """The arguments that `run` and `start` share."""

    def __init__(
        self,
        group,
        op="",
        scale=None,
        factor=None,
        peers=(),
        tags=(),
        in_splits=(),
        out_splits=(),
        timeout=_UNSET,
    ):
        self.group = group.group_name
        self.op = op
        self.scale = scale
        self.factor = factor
        self.peers = peers
        self.tags = tags
        self.in_splits = in_splits
        self.out_splits = out_splits
        self.timeout = timeout

    def run(self, *args):
        torch.ops.byway.run.default(*args)

    def start(self, *args):
        return torch.ops.byway.start.default(*args)

    def in_place(self, kind):
        return kind in _IN_PLACE

    def values(self, ins, outs):
        """In the schema's order, for a call on these tensors or on their real parts."""
        is_complex = any(t.is_complex() for t in [*ins, *outs])
        return (self.group, self.op, self.scale, self.factor, some(self.peers), some(self.tags),
                some(self.in_splits), some(self.out_splits), self.timeout, is_complex)  # fmt: skip


def run(kind, ins, outs, options):
    """The whole call, on the caller's own memory but for complex tensors."""
    real_ins = [_as_real(t) for t in ins]
    real_outs = [_as_real(t) if options.in_place(kind) else _real_buffer(t) for t in outs]
    options.run(token(), kind, real_ins, real_outs, *options.values(ins, outs))
    _store(outs, real_outs)


def start(kind, ins, outs, options):
    """Starts the call on copies of its inputs; `outs` are asked for their shapes only. Returns
    the handle.
    """
    sources = outs if options.in_place(kind) else ins
    sizes, dims, dtypes = [], [], []
    for t in outs:
        shape = [*t.shape, 2] if t.is_complex() else [*t.shape]
        sizes.extend(shape)
        dims.append(len(shape))
        dtypes.append(_REAL.get(t.dtype, t.dtype))
    tensors = [*outs, *ins]
    device = tensors[0].device if len(tensors) > 0 else torch.device("cpu")
    real = [_as_real(t) for t in sources]
    return options.start(
        token(), kind, real, sizes, dims, dtypes, device, *options.values(ins, outs)
    )


def finish(handle, outs, timeout=None):
    """Waits for a started call and stores its results in `outs`."""
    buffers = [_real_buffer(t) for t in outs]
    torch.ops.byway.wait.default(token(), handle, buffers, milliseconds(timeout))
    _store(outs, buffers)


def is_done(handle):
    return torch.ops.byway.traced_done(handle)
