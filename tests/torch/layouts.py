# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of every kind of strides, with guards around what they must not touch."""

import torch

LAYOUTS = ["contiguous", "strided", "transposed", "channels_last", "offset", "reversed_dims"]


def empty(shape: tuple[int, ...], dtype: torch.dtype, layout: str) -> torch.Tensor:
    """A tensor of this shape in the layout; shapes too small for it become strided."""
    if layout == "contiguous" or not shape:
        return torch.zeros(shape, dtype=dtype)
    if layout == "offset":
        count = 1
        for size in shape:
            count *= size
        return torch.zeros(count + 3, dtype=dtype)[3:].reshape(shape)
    if layout == "channels_last" and len(shape) == 4:
        return torch.zeros(shape, dtype=dtype).contiguous(memory_format=torch.channels_last)
    if layout == "transposed" and len(shape) >= 2:
        swapped = (*shape[:-2], shape[-1], shape[-2])
        return torch.zeros(swapped, dtype=dtype).transpose(-1, -2)
    if layout == "reversed_dims" and len(shape) >= 2:
        return torch.zeros(shape[::-1], dtype=dtype).permute(*reversed(range(len(shape))))
    return torch.zeros((*shape[:-1], shape[-1] * 2), dtype=dtype)[..., ::2]


def filled(source: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values in the layout."""
    made = empty(tuple(source.shape), source.dtype, layout)
    made.copy_(source)
    return made
