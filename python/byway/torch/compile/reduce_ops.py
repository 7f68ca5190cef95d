# SPDX-License-Identifier: BSD-3-Clause
"""Reduce operations, read while tracing: a name, and PREMUL_SUM's factor."""

import torch
import torch.distributed as dist

_COMPLEX_REFUSED = ("max", "min", "product", "band", "bor", "bxor")


class PremulSum:
    """What `_make_nccl_premul_sum` makes inside a graph."""

    def __init__(self, factor):
        self.factor = factor


def make_premul_sum(factor):
    return PremulSum(factor)


@torch.compiler.assume_constant_result
def _name(op):
    if type(op) is dist.ReduceOp:
        op = op.__getstate__()[0]
    return op.name.lower()


@torch.compiler.assume_constant_result
def _scale(op):
    if type(op) is not dist.ReduceOp:
        return None
    factor = op.__getstate__()[1]
    return factor if isinstance(factor, float) else None


@torch.compiler.assume_constant_result
def _has_factor_tensor(op):
    return type(op) is dist.ReduceOp and isinstance(op.__getstate__()[1], torch.Tensor)


@torch.compiler.assume_constant_result
def _factor_tensor(op):
    return op.__getstate__()[1]


def describe(op):
    """(name, scale, factor) of a ReduceOp; at most one of the last two is set."""
    if isinstance(op, str):
        return op.lower(), None, None
    if isinstance(op, PremulSum):
        if isinstance(op.factor, torch.Tensor):
            return "premul_sum", None, op.factor
        return "premul_sum", float(op.factor), None
    if _has_factor_tensor(op):
        return "premul_sum", None, _factor_tensor(op)
    return _name(op), _scale(op), None


def upstream_name(op):
    """The operation as upstream's functional collectives spell it."""
    name, _, _ = describe(op)
    if name == "premul_sum":
        raise ValueError(f"Unsupported all_reduce op: {op}")
    return name


def check_complex(op_name, tensors, call):
    """Refuse what torch.distributed refuses: no order and no bits on complex numbers."""
    if op_name in _COMPLEX_REFUSED and any(t.is_complex() for t in tensors):
        raise ValueError(f"{call} does not support {op_name} on complex tensors")
