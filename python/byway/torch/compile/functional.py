# SPDX-License-Identifier: BSD-3-Clause
"""Functional collectives of Byway's groups, tied into the token's order.

DTensor, tensor parallelism and users emit `_c10d_functional` operators, which compilers may
reorder: nothing but their own tensors orders them. While AOTAutograd functionalizes a graph, those
of Byway's groups become `byway.run` on the token that the graph's other calls mutate. Autograd has
recorded upstream's formulas by then, for it acts earlier.
"""

import torch
from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.distributed import distributed_c10d as c10d

from . import groups, ops
from .ops import some

_OPS = torch.ops._c10d_functional
_PLAIN = torch._C.DispatchKey.Python


def _is_backward():
    return torch._C._current_autograd_node() is not None


def _chains(mode):
    """The token last used in the graph that this mode functionalizes: one for the forward part,
    one for the backward.
    """
    if not hasattr(mode, "_byway_tokens"):
        mode._byway_tokens = {}
    return mode._byway_tokens


def _token_for_functional(mode):
    chains = _chains(mode)
    key = _is_backward()
    if key not in chains:
        # Nothing mutates the graph's own token so far, or ever: a token of the graph is
        # enough, since graphs run whole.
        chains[key] = torch.zeros(1)
    return chains[key]


def _follow(mode, token):
    """A call on `token` comes next: it must not overtake those on the token used until now."""
    chains = _chains(mode)
    key = _is_backward()
    earlier = chains.get(key)
    if earlier is token:
        return
    chains[key] = token
    if earlier is not None:
        torch.ops.byway.join.default(token, earlier)


def _plain(mode, op, args, kwargs):
    with mode:
        return op._op_dk(_PLAIN, *args, **kwargs)


def _tie_byway_op(op):
    def handler(mode, token, *args, **kwargs):
        if not torch.compiler.is_exporting():
            with mode:
                _follow(mode, token)
        return _plain(mode, op, (token, *args), kwargs)

    return handler


def _run(token, kind, ins, outs, group, op="", peers=(), in_splits=(), out_splits=()):
    torch.ops.byway.run.default(token, kind, ins, outs, group, op, None, None, some(peers), None,
                                some(in_splits), some(out_splits), -1, False)  # fmt: skip


# Each takes the token and the operator's own arguments, and returns what the operator returns.


def _all_reduce(token, tensor, op, group):
    out = tensor.clone(memory_format=torch.contiguous_format)
    _run(token, "all_reduce", [], [out], group, op)
    return out


def _all_reduce_coalesced(token, tensors, op, group):
    outs = [t.clone(memory_format=torch.contiguous_format) for t in tensors]
    _run(token, "all_reduce_coalesced", [], outs, group, op)
    return outs


def _gathered(tensor, size):
    return tensor.new_empty([tensor.size(0) * size, *tensor.shape[1:]] if tensor.dim() else [size])


def _all_gather(token, tensor, size, group):
    out = _gathered(tensor, size)
    _run(token, "all_gather_single", [tensor], [out], group)
    return out


def _all_gather_coalesced(token, tensors, size, group):
    outs = [_gathered(t, size) for t in tensors]
    _run(token, "all_gather_single_coalesced", list(tensors), outs, group)
    return outs


def _scattered(tensor, size):
    return tensor.new_empty([tensor.size(0) // size, *tensor.shape[1:]])


def _reduce_scatter(token, tensor, op, size, group):
    out = _scattered(tensor, size)
    _run(token, "reduce_scatter_single", [tensor], [out], group, op)
    return out


def _reduce_scatter_coalesced(token, tensors, op, size, group):
    outs = [_scattered(t, size) for t in tensors]
    _run(token, "reduce_scatter_single_coalesced", list(tensors), outs, group, op)
    return outs


def _all_to_all(token, tensor, out_splits, in_splits, group):
    out = tensor.new_empty([sum(out_splits), *tensor.shape[1:]])
    _run(
        token,
        "all_to_all_single",
        [tensor],
        [out],
        group,
        in_splits=in_splits,
        out_splits=out_splits,
    )
    return out


def _broadcast(token, tensor, src, group):
    out = tensor.clone(memory_format=torch.contiguous_format)
    _run(token, "broadcast", [], [out], group, peers=[src])
    return out


# Operator, its translation, the place of the group among its arguments.
_TABLE = (
    ("all_reduce", _all_reduce, 2),
    ("all_reduce_coalesced", _all_reduce_coalesced, 2),
    ("all_gather_into_tensor", _all_gather, 2),
    ("all_gather_into_tensor_coalesced", _all_gather_coalesced, 2),
    ("reduce_scatter_tensor", _reduce_scatter, 3),
    ("reduce_scatter_tensor_coalesced", _reduce_scatter_coalesced, 3),
    ("all_to_all_single", _all_to_all, 3),
    ("broadcast", _broadcast, 2),
)


def _is_ours(group):
    if not isinstance(group, str):
        return False
    try:
        return groups.is_served(c10d._resolve_process_group(group))
    except RuntimeError:  # a name without a group: upstream's message is the right one
        return False


def _has_complex(value):
    tensors = value if isinstance(value, (list, tuple)) else [value]
    return any(t.is_complex() for t in tensors)


def _is_tied(args, kwargs, place):
    """Products of complex numbers are not products of their parts: upstream's operator."""
    return (
        not kwargs
        and len(args) > place
        and not torch.compiler.is_exporting()
        and not ("product" in args[1:] and _has_complex(args[0]))
        and _is_ours(args[place])
    )


def _as_real(tensor):
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _on_parts(translate, token, given, *args):
    """The call on the real and imaginary parts of complex tensors."""
    several = isinstance(given, (list, tuple))
    tensors = given if several else [given]
    parts = [_as_real(t) for t in tensors]
    outs = translate(token, parts if several else parts[0], *args)
    whole = [
        torch.view_as_complex(out) if t.is_complex() else out
        for t, out in zip(tensors, outs if several else [outs], strict=True)
    ]
    return whole if several else whole[0]


def _tie_functional_op(op, translate, place):
    def handler(mode, *args, **kwargs):
        if not _is_tied(args, kwargs, place):
            return _plain(mode, op, args, kwargs)
        with mode:
            token = _token_for_functional(mode)
            if _has_complex(args[0]):
                return _on_parts(translate, token, *args)
            return translate(token, *args)

    return handler


def install():
    """Returns the operators that got a handler."""
    tied = []
    for name in (*ops.RUNS, *ops.STARTS, "wait"):
        op = getattr(torch.ops.byway, name).default
        op.py_impl(FunctionalTensorMode)(_tie_byway_op(op))
        tied.append(op)
    for name, translate, place in _TABLE:
        packet = getattr(_OPS, name, None)
        if packet is None or FunctionalTensorMode in packet.default.python_key_table:
            continue
        packet.default.py_impl(FunctionalTensorMode)(
            _tie_functional_op(packet.default, translate, place)
        )
        tied.append(packet.default)
    return tied


def uninstall(tied):
    for op in tied:
        op.python_key_table.pop(FunctionalTensorMode, None)
        op._dispatch_cache.clear()
