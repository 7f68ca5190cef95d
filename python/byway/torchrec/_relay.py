# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of several groups of a node's ranks at once, in the form that TorchRec calls."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import torch
import torch.distributed as dist
from byway.torchrec._comm import RelayComm

Tensors = Sequence[torch.Tensor]


class FusedShardedRelayMultiGroup:
    """The node's groups, with ranks of other groups and of none carrying part of each one's data.

    Made by every rank of the node, with the same groups. Each method is called by every rank of the
    node in the same order. Lists have one tensor for each group; those of groups that the rank is
    not in are placeholders, which are neither read nor written. Counts are elements for each group.
    """

    def __init__(
        self,
        rcclx_comm: RelayComm,
        world_size: int,
        rank: int,
        all_active_ranks: Sequence[Sequence[int]],
    ):
        if not isinstance(rcclx_comm, RelayComm):
            raise TypeError(
                f"rcclx_comm is a {type(rcclx_comm).__name__}; it must be made by "
                "byway.torchrec's new_comm"
            )
        self.comm = rcclx_comm
        self.groups = tuple(tuple(int(each) for each in ranks) for ranks in all_active_ranks)
        self._given = all_active_ranks
        self._agree(world_size, rank)
        mine = [number for number, ranks in enumerate(self.groups) if rank in ranks]
        self.group = mine[0] if mine else -1  # this rank's; -1: it only helps

    def _agree(self, world_size: int, rank: int) -> None:
        """Raises on every rank if the arguments are wrong on one, or not the same."""
        import hashlib

        problem = self._problem(world_size, rank)
        digest = hashlib.blake2b(repr(self.groups).encode(), digest_size=8).digest()
        row = [int.from_bytes(digest, "big") >> 1, 0 if problem is None else 1]
        flat = self.comm.backend.exchange_counts(row, self.comm.timeout)
        if problem is not None:
            raise ValueError(problem)
        digests, problems = flat[0::2], flat[1::2]
        if any(problems):
            raise ValueError(f"rank {problems.index(1)} of the node gave wrong arguments")
        other = next((each for each, got in enumerate(digests) if got != digests[0]), None)
        if other is not None:
            raise ValueError(f"ranks 0 and {other} of the node gave different all_active_ranks")

    def _problem(self, world_size: int, rank: int) -> str | None:
        size = self.comm.get_size()
        if (rank, world_size) != (self.comm.get_rank(), size):
            return (
                f"rank {rank} of {world_size} is not the communicator's {self.comm.get_rank()} "
                f"of {size}"
            )
        listed = [each for ranks in self.groups for each in ranks]
        if not listed or not all(self.groups):
            return "all_active_ranks has no group, or an empty one"
        if len(set(listed)) != len(listed) or not set(listed) <= set(range(size)):
            return f"all_active_ranks {self.groups} are not disjoint lists of ranks below {size}"
        return None

    def allreduce_multi_group(
        self,
        tensors: Tensors,
        per_group_sizes: Sequence[int],
        op=dist.ReduceOp.SUM,
        output_tensors: Tensors | None = None,
        num_groups: int | None = None,
        all_active_ranks=None,
        skip_validation: bool = False,
        async_op: bool = False,
    ):
        """The reduction of the group's tensors, in place or into `output_tensors`."""
        outputs = tensors if output_tensors is None else output_tensors
        self._check_call(num_groups, all_active_ranks, op)
        return self._call(
            "all_reduce", (tensors, 1), (outputs, 1), per_group_sizes, op, skip_validation, async_op
        )

    def reduce_scatter_multi_group(
        self,
        input_tensors: Tensors,
        output_tensors: Tensors,
        per_group_recv_counts: Sequence[int],
        op=dist.ReduceOp.SUM,
        num_groups: int | None = None,
        all_active_ranks=None,
        skip_validation: bool = False,
        async_op: bool = False,
    ):
        """The reduction of the rank's own block; the output may be that block of the input."""
        self._check_call(num_groups, all_active_ranks, op)
        return self._call(
            "reduce_scatter",
            (input_tensors, self._size),
            (output_tensors, 1),
            per_group_recv_counts,
            op,
            skip_validation,
            async_op,
        )

    def all_gather_multi_group(
        self,
        input_tensors: Tensors,
        output_tensors: Tensors,
        per_group_send_counts: Sequence[int],
        num_groups: int | None = None,
        all_active_ranks=None,
        skip_validation: bool = False,
        async_op: bool = False,
    ):
        """The group's blocks in its order; the input may be the rank's own block of the output."""
        self._check_call(num_groups, all_active_ranks)
        return self._call(
            "all_gather",
            (input_tensors, 1),
            (output_tensors, self._size),
            per_group_send_counts,
            dist.ReduceOp.SUM,
            skip_validation,
            async_op,
        )

    def all_to_all_multi_group(
        self,
        input_tensors: Tensors,
        output_tensors: Tensors,
        per_group_segment_counts: Sequence[int],
        num_groups: int | None = None,
        all_active_ranks=None,
        skip_validation: bool = False,
        async_op: bool = False,
    ):
        """Output block j is this rank's block of member j's input; never in place."""
        self._check_call(num_groups, all_active_ranks)
        return self._call(
            "all_to_all",
            (input_tensors, self._size),
            (output_tensors, self._size),
            per_group_segment_counts,
            dist.ReduceOp.SUM,
            skip_validation,
            async_op,
        )

    @property
    def _size(self) -> int:
        return len(self.groups[self.group]) if self.group >= 0 else 0

    @contextlib.contextmanager
    def _refusing(self):
        """Tells the other ranks of what is wrong with this one's arguments."""
        try:
            yield
        except (TypeError, ValueError) as error:
            with contextlib.suppress(Exception):
                self.comm.backend.refuse(str(error))
            raise

    def _check_call(self, num_groups, all_active_ranks, op=dist.ReduceOp.SUM) -> None:
        with self._refusing():
            if op != dist.ReduceOp.SUM and op != dist.ReduceOp.AVG:
                raise ValueError(f"op is {op}; relay sums or averages")
            if num_groups is not None and num_groups != len(self.groups):
                raise ValueError(f"num_groups is {num_groups}, but there are {len(self.groups)}")
            if all_active_ranks is None or all_active_ranks is self._given:
                return
            if tuple(tuple(ranks) for ranks in all_active_ranks) != self.groups:
                raise ValueError(
                    f"all_active_ranks is {all_active_ranks}; this object was made for "
                    f"{self.groups}"
                )

    def _call(self, collective, given, wanted, counts, op, skip_validation, async_op):
        """`given`, `wanted`: a list of tensors and the number of blocks in each."""
        with self._refusing():
            counts = [int(count) for count in counts]
            for tensors, what in ((given[0], "inputs"), (wanted[0], "outputs"), (counts, "counts")):
                if len(tensors) != len(self.groups):
                    raise ValueError(
                        f"{len(tensors)} {what} for {len(self.groups)} groups; one is needed for "
                        "each"
                    )
            if not skip_validation:
                self._validate(given, wanted, counts)
        types = []
        if any(counts):
            mine = self.group
            types.append(
                self._of_type(
                    given[0][max(mine, 0)].dtype,
                    [[count] for count in counts],
                    [given[0][mine]] if mine >= 0 else [],
                    [wanted[0][mine]] if mine >= 0 else [],
                )
            )
        work = self.comm.backend.fused(collective, self.groups, (), types, op, self.comm.timeout)
        if async_op:
            return work
        work.wait()
        return None

    @staticmethod
    def _of_type(*arguments):
        from byway.torch._extension import load

        return load().FusedOfType(*arguments)

    def _validate(self, given, wanted, counts) -> None:
        """What TorchRec leaves out: the sizes and types of this rank's tensors."""
        types = {tensor.dtype for tensors, _ in (given, wanted) for tensor in tensors}
        if len(types) > 1:
            raise ValueError(f"tensors of one call have types {sorted(map(str, types))}")
        if self.group < 0:
            return
        for (tensors, blocks), what in ((given, "input"), (wanted, "output")):
            tensor, expected = tensors[self.group], counts[self.group] * blocks
            if tensor.numel() != expected:
                raise ValueError(
                    f"the {what} of group {self.group} has {tensor.numel()} elements; its count "
                    f"asks for {expected}"
                )
