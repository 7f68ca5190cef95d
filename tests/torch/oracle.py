# SPDX-License-Identifier: BSD-3-Clause
"""Expected values, by numpy in 64 bit: an independent account of what a collective gives.

Values depend on rank, call and index, and are whole numbers small enough that every sum is exact
in 64 bit; results are rounded to the tensor's type once.
"""

import math

import numpy as np
import torch

FLOATS = ["float16", "bfloat16", "float32", "float64"]
SMALL_FLOATS = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]
DTYPES = ["bool", *INTEGERS, *FLOATS, *SMALL_FLOATS, *COMPLEX]
OPS = ["sum", "avg", "product", "min", "max", "band", "bor", "bxor", "premul_sum"]
FACTOR = 0.5


def allowed(dtype: str, op: str) -> bool:
    """docs/reductions.md."""
    if op in ("band", "bor", "bxor"):
        return dtype in INTEGERS or dtype == "bool"
    if op in ("min", "max"):
        return dtype not in COMPLEX
    if op == "avg":
        return dtype != "bool"
    if op == "premul_sum":
        return dtype in FLOATS + SMALL_FLOATS + COMPLEX
    return True


def values(dtype: str, rank: int, call: int, count: int) -> np.ndarray:
    """Rank `rank`'s contribution to the call."""
    index = np.arange(count, dtype=np.int64)
    mixed = (index * 7 + rank * 13 + call * 29 + index * rank) % 251
    if dtype == "bool":
        return mixed % 3 == 0
    if dtype in COMPLEX:
        return (mixed % 5 - 2) + 1j * (mixed % 3 - 1)
    if dtype.startswith("uint"):
        return mixed % 7
    whole = mixed % 5 - 2
    return whole if dtype in INTEGERS else whole.astype(np.float64)


def reduced(dtype: str, op: str, inputs: list[np.ndarray]) -> np.ndarray:
    """In 64 bit, before the rounding to the type."""
    if dtype == "bool":
        whole = np.stack(inputs)
        if op in ("sum", "max", "bor"):
            return whole.any(axis=0)
        if op in ("product", "min", "band"):
            return whole.all(axis=0)
        return np.logical_xor.reduce(whole)
    whole = np.stack(inputs)
    if op == "sum":
        return whole.sum(axis=0)
    if op == "avg":
        total = whole.sum(axis=0)
        if dtype in INTEGERS:
            return np.array([math.trunc(t / len(inputs)) for t in total], dtype=np.int64)
        if dtype in COMPLEX:  # each part by itself, rounded once
            return total.real / len(inputs) + 1j * (total.imag / len(inputs))
        return total / len(inputs)
    if op == "product":
        return whole.prod(axis=0)
    if op in ("min", "max"):
        return whole.min(axis=0) if op == "min" else whole.max(axis=0)
    if op == "premul_sum":
        return (whole * FACTOR).sum(axis=0)
    bits = {"band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}[op]
    return bits.reduce(whole, axis=0)


def tensor(dtype: str, array: np.ndarray, shape=None) -> torch.Tensor:
    """The array as a contiguous tensor of the type; floats are rounded once, from 32 or 64 bit."""
    kind = getattr(torch, dtype)
    if kind.is_complex or dtype in ("bool", "float64", "float32"):
        made = torch.from_numpy(np.ascontiguousarray(array)).to(kind)
    elif dtype in INTEGERS:
        made = torch.from_numpy(array.astype(np.dtype(dtype)))
    else:
        made = torch.from_numpy(array.astype(np.float32)).to(kind)
    return made if shape is None else made.reshape(shape)


def check(actual: torch.Tensor, dtype: str, expected: np.ndarray, what: str) -> None:
    """Equal values, element by element (-0.0 counts as 0); NaN where NaN is expected, nowhere else:
    small floats without infinity have it for what is too large.
    """
    wanted = tensor(dtype, expected, actual.shape)
    exact = torch.complex128 if dtype in COMPLEX else torch.float64
    if dtype in INTEGERS or dtype == "bool":
        exact = torch.int64
    a, b = actual.to(exact), wanted.to(exact)
    same = (a == b) | ((a != a) & (b != b))
    if not same.all():
        wrong = same.logical_not().nonzero()[0].tolist() if a.dim() else []
        raise AssertionError(f"{what}: at {wrong} got {actual}, expected {wanted}")
