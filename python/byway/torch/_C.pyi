# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Sequence
from datetime import timedelta

import torch
from torch import Tensor
from torch.distributed import ReduceOp, Store, Work
from torch.distributed.distributed_c10d import Backend

torch_version: str
byway_version: str

class Options(Backend.Options):
    topology: str
    pace: str
    route: str
    stage_quota: int
    exchange_counts: bool
    group_desc: str
    def __init__(self) -> None: ...

class FusedOfType:
    def __init__(
        self,
        dtype: torch.dtype,
        counts: Sequence[Sequence[int]],
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
    ) -> None: ...

class ProcessGroupByway(Backend):
    @property
    def options(self) -> Options: ...
    def fused(
        self,
        collective: str,
        groups: Sequence[Sequence[int]],
        roots: Sequence[int],
        types: Sequence[FusedOfType],
        op: ReduceOp | ReduceOp.RedOpType,
        timeout: timedelta,
    ) -> Work: ...
    def exchange_counts(self, row: Sequence[int], timeout: timedelta) -> list[int]: ...
    def refuse(self, why: str) -> None: ...
    def recorded_calls(self) -> str: ...

def create_group(
    store: Store,
    rank: int,
    size: int,
    options: Backend.Options | None,
    name: str,
    timeout: timedelta,
    group: str,
    global_ranks: Sequence[int],
    of_job: bool = False,
) -> ProcessGroupByway: ...
def flight_record() -> bytes: ...
def hold_traced(
    kind: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], work: Work
) -> Tensor: ...
def shutdown_all(seconds: float) -> None: ...
