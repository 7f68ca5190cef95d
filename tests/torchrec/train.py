# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a job that trains replicas of embedding tables three times: with TorchRec's own sync
over Gloo, over Byway, and with relay. Run with -O: TorchRec asserts that devices are GPUs.

    python -O train.py REPLICAS FOLDER [spoil]    (RANK, WORLD_SIZE, LOCAL_WORLD_SIZE are set)

`spoil`: rank 0 makes the results of relay wrong by one bit.
"""

from __future__ import annotations

import os
import pathlib
import sys
import warnings

import checks
import model
import torch
import torch.distributed as dist
import watch

import byway.torch  # noqa: F401 (registers the backend)


def job(backend: str, folder: pathlib.Path, rank: int, world: int) -> None:
    store = dist.FileStore(str(folder / f"store-{backend}"), world)
    dist.init_process_group(backend, rank=rank, world_size=world, store=store)


def gloos(before: model.Values, members: list[list[int]], rank: int) -> list[model.Values]:
    """What Gloo makes of the replicas' terms, and by how much another average may differ from it:
    each has one rounding for each term, half a unit of the sum of the terms' sizes at most."""
    groups = [dist.new_group(ranks, backend="gloo") for ranks in members]
    mine = next(g for g, ranks in zip(groups, members, strict=True) if rank in ranks)
    averages, bounds = {}, {}
    for name, value in before.items():
        averages[name], sizes = value.clone(), value.double().abs()
        dist.all_reduce_coalesced([averages[name]], dist.ReduceOp.AVG, group=mine)
        dist.all_reduce(sizes, group=mine)
        bounds[name] = sizes * torch.finfo(value.dtype).eps
    return [averages, bounds]


def compare(check: checks.Checks, ours: model.Values, theirs: model.Values, bounds, what) -> None:
    check.equal(sorted(ours), sorted(theirs), f"{what}: tensors")
    for name, value in ours.items():
        if bounds is None:
            wrong = int((value != theirs[name]).sum())
            check.equal(wrong, 0, f"{what}: {name}, wrong values")
            continue
        over = (value.double() - theirs[name].double()).abs() - bounds[name]
        check.that(bool((over <= 0).all()), f"{what}: {name}", f"{float(over.max())} too far")


def check_replicas(check: checks.Checks, values: model.Values, rank: int, replicas: int) -> None:
    own = {name: value.double().sum().item() for name, value in values.items()}
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, list(own.values()))
    first = rank // replicas * replicas
    for other in range(first, first + replicas):
        check.equal(every[other], list(own.values()), f"replica of rank {other}")


def check_calls(check: checks.Checks, seen: watch.Watch, steps: int) -> None:
    """Each sync is one call for each type of weights and one of states; all use helpers."""
    check.equal(len(seen.comms), 1, "communicators")
    kinds = [str(call.dtype) for call in seen.calls]
    check.equal(kinds, ["torch.float32", "torch.float16", "torch.float32"] * steps, "calls")
    direct = seen.direct_plans()
    for call in seen.calls:
        check.equal(call.record["state"], "completed", call.key)
        check.that(call.untouched, f"{call.key}: placeholders untouched")
        check.that(call.record["plan"] != direct[call.key], f"{call.key}: helpers", call.record)
    check.facts["calls"] = [[call.key, call.record["route"]] for call in seen.calls]
    check.facts["plans"] = sorted({call.record["plan"] for call in seen.calls})


def program(check: checks.Checks) -> None:
    replicas, folder, spoil = int(sys.argv[1]), pathlib.Path(sys.argv[2]), "spoil" in sys.argv[3:]
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    members = [list(range(first, first + replicas)) for first in range(0, world, replicas)]

    job("gloo", folder, rank, world)
    gloo = model.trained(rank, world, replicas, relay=False, steps=1)
    dist.destroy_process_group()

    job("byway", folder, rank, world)
    plain = model.trained(rank, world, replicas, relay=False, steps=model.STEPS)
    seen = watch.Watch(spoils=spoil and rank == 0)
    relayed = model.trained(rank, world, replicas, relay=True, steps=model.STEPS)

    types = sorted({str(value.dtype) for value in relayed[0].values()})
    check.equal(types, ["torch.float16", "torch.float32"], "types")
    changed = sum(int((relayed[0][name] != value).any()) for name, value in relayed[1].items())
    check.that(changed > len(relayed[0]) // 2, "syncs change tensors", changed)
    averages, bounds = gloos(relayed[0], members, rank)
    compare(check, relayed[1], averages, bounds, "after the first sync, Gloo's averages")
    # Sums of the shared table's parts of the output come from Gloo in another order.
    alike = [name for name in gloo[0] if "shared" not in name]
    for step, allowed in enumerate((None, bounds)):
        ours, theirs = ({name: each[step][name] for name in alike} for each in (relayed, gloo))
        compare(check, ours, theirs, allowed, f"after {step} syncs, TorchRec's own over Gloo")
    for step in range(model.STEPS + 1):
        compare(check, relayed[step], plain[step], None, f"after {step} syncs, Byway")
    check_replicas(check, relayed[-1], rank, replicas)
    check_calls(check, seen, model.STEPS)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    checks.run(program, pathlib.Path(sys.argv[2]), int(os.environ["RANK"]))
