# SPDX-License-Identifier: BSD-3-Clause
"""Four ranks: two pairs that sum at once, then one pair that the two other ranks help.

byway run -n 4 -- python examples/torch/fused.py
"""

import torch
import torch.distributed as dist

import byway.torch

# The links are stated: on one host relay never pays by itself (docs/topology.md).
dist.init_process_group("byway", pg_options=byway.torch.Options(topology="mesh:4@1G,5"))
rank = dist.get_rank()

# Lists of tensors of any types; each rank gives its own, and the pairs' sizes differ.
pairs = [[0, 1], [2, 3]]
tensors = [torch.full((1000 * (1 + rank // 2),), float(rank)), torch.tensor([rank, 10 * rank])]
byway.torch.fused_all_reduce(tensors, pairs, op=dist.ReduceOp.AVG)
print(f"rank {rank}: mean {tensors[0][0]:g}, {tensors[1].tolist()}")

# One pair; ranks 2 and 3 give nothing and carry a part of its data.
alone = [[0, 1]]
mine = torch.full((1 << 20,), rank + 1.0) if rank < 2 else []
work = byway.torch.fused_all_reduce(mine, alone, counts=[1 << 20], async_op=True)
work.wait()
route = byway.torch.recorded_calls()["calls"][-1]["route"]
relayed = "direct" if route.startswith("direct") else "relayed"
print(f"rank {rank}: {'sum ' + format(mine[0], 'g') if rank < 2 else 'helped'}, {relayed}")

dist.destroy_process_group()
