# SPDX-License-Identifier: BSD-3-Clause
"""The communicator of one node's ranks, in the form in which TorchRec asks for it."""

from __future__ import annotations

import collections
import dataclasses
import os
from datetime import timedelta

import torch.distributed as dist


@dataclasses.dataclass
class Settings:
    options: object = None  # byway.torch.Options
    timeout: timedelta = timedelta(seconds=300)


settings = Settings()
_OK = b"ok"
_made: collections.Counter = collections.Counter()  # by name; all ranks make them in one order


class RelayComm:
    """A group of backend byway. It ends with finalize() or with the interpreter."""

    def __init__(self, backend, timeout: timedelta):
        self.backend = backend
        self.timeout = timeout

    def get_rank(self) -> int:
        return self.backend.rank()

    def get_size(self) -> int:
        return self.backend.size()

    def recorded_calls(self) -> dict:
        """This rank's last calls: what, by which route, when (docs/recorder.md)."""
        import json

        return json.loads(self.backend.recorded_calls())

    def finalize(self) -> None:
        self.backend.shutdown()


def new_comm(backend: str, device=None, name: str = "relay", store=None, **_) -> RelayComm:
    """Made by all ranks of a node together: by all of them, or else it raises on all of them.

    Rank and size are those of TORCHCOMM_RANK and TORCHCOMM_SIZE. `device` names a device that is
    not touched.
    """
    rank, size = _place()
    if store is None:
        raise ValueError("new_comm needs a store, by which the node's ranks meet")
    _made[name] += 1
    store = dist.PrefixStore(f"byway/{name}/{_made[name]}", store)
    timeout = settings.timeout
    extension, problem = _tried(_loaded)
    _agree(store, "ready", rank, size, problem, timeout)
    group, problem = _tried(lambda: _create(*extension, store, rank, size, name, timeout))
    # A rank whose part failed tells the others later than they need: they wait as long again.
    _agree(store, "made", rank, size, problem, timeout + timeout)
    return RelayComm(group, timeout)


def _place() -> tuple[int, int]:
    try:
        return int(os.environ["TORCHCOMM_RANK"]), int(os.environ["TORCHCOMM_SIZE"])
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"TORCHCOMM_RANK and TORCHCOMM_SIZE must be this rank's place in its node: {error!r}"
        ) from None


def _loaded():
    """The extension and the options of the group, as the extension has them."""
    from byway.torch._extension import load
    from byway.torch._options import native_options

    extension = load()
    return extension, native_options(settings.options, extension)


def _create(extension, options, store, rank: int, size: int, name: str, timeout: timedelta):
    return extension.create_group(
        store=dist.PrefixStore("group", store),
        rank=rank,
        size=size,
        options=options,
        name="byway",
        timeout=timeout,
        group=name,
        global_ranks=list(range(size)),
    )


def _tried(step):
    """What the step gives and None, or None and what it raised."""
    try:
        return step(), None
    except Exception as error:
        return None, error


def _agree(store, stage: str, rank: int, size: int, problem, timeout: timedelta) -> None:
    """Raises on every rank if one has a problem or does not come."""
    said = _OK if problem is None else f"{type(problem).__name__}: {problem}".encode()
    store.set(f"{stage}/{rank}", said)
    keys = [f"{stage}/{each}" for each in range(size)]
    try:
        store.wait(keys, timeout)
    except Exception as error:
        missing = [each for each, key in enumerate(keys) if not store.check([key])]
        raise RuntimeError(
            f"byway: ranks {missing} of the node did not come to make the relay's communicator "
            f"within {timeout.total_seconds():g} s; is byway.torchrec.install() called on all?"
        ) from (problem or error)
    bad = {each: store.get(key) for each, key in enumerate(keys)}
    bad = {each: said.decode() for each, said in bad.items() if said != _OK}
    if bad:
        raise RuntimeError(
            f"byway: the relay's communicator could not be made on ranks {[*bad]} of the node: "
            f"{next(iter(bad.values()))}"
        ) from problem
