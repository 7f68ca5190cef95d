# SPDX-License-Identifier: BSD-3-Clause
"""Puts the names that TorchRec imports at run time where it looks for them."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
import types
from datetime import timedelta

from byway.torchrec import _comm, _relay

RELAY_MODULE = "caffe2.torch.distributed.fb.sharded_relay_process_group"
COMM_MODULE = "torchcomms"
BACKEND = "rcclx"  # the name by which TorchRec asks for a communicator
_MISSING = object()

# What was there before install(): modules by name, and an installed torchcomms' own new_comm.
_before: dict[str, object] = {}


def install(*, options=None, timeout: timedelta = timedelta(seconds=300)) -> None:
    """Serves TorchRec's sharded relay from now on. Every rank calls it before it builds the model.

    options: byway.torch.Options of the node's communicator, such as its topology; without them it
        comes from the environment (BYWAY_TOPOLOGY).
    timeout: of making the communicator and of every call.

    Twice does no harm: the last settings hold.
    """
    import torch.distributed  # noqa: F401  (it looks for torchcomms at its own import)

    _comm.settings = _comm.Settings(options, timeout)
    if _before:
        return
    _before[RELAY_MODULE] = sys.modules.get(RELAY_MODULE, _MISSING)
    sys.modules[RELAY_MODULE] = _module(
        RELAY_MODULE, FusedShardedRelayMultiGroup=_relay.FusedShardedRelayMultiGroup
    )
    if COMM_MODULE not in sys.modules and importlib.util.find_spec(COMM_MODULE) is None:
        _before[COMM_MODULE] = _MISSING
        sys.modules[COMM_MODULE] = _module(COMM_MODULE, new_comm=_new_comm(None))
        return
    installed = importlib.import_module(COMM_MODULE)
    theirs = getattr(installed, "new_comm", _MISSING)
    _before[f"{COMM_MODULE}.new_comm"] = theirs
    installed.new_comm = _new_comm(None if theirs is _MISSING else theirs)


def uninstall() -> None:
    """Takes back what install() did; communicators that were made stay."""
    for name in (RELAY_MODULE, COMM_MODULE):
        if name not in _before:
            continue
        module = _before.pop(name)
        if module is _MISSING:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module
    theirs = _before.pop(f"{COMM_MODULE}.new_comm", None)
    if theirs is _MISSING:
        del sys.modules[COMM_MODULE].new_comm
    elif theirs is not None:
        sys.modules[COMM_MODULE].new_comm = theirs


def _module(name: str, **contents) -> types.ModuleType:
    module = types.ModuleType(name, "Made by byway.torchrec.install().")
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__dict__.update(contents)
    return module


def _new_comm(others):
    """`new_comm` that leaves all backends but TorchRec's to `others`."""

    def new_comm(backend, *arguments, **options):
        if backend == BACKEND:
            return _comm.new_comm(backend, *arguments, **options)
        if others is None:
            raise ValueError(f'no communicator of backend "{backend}": byway makes "{BACKEND}"')
        return others(backend, *arguments, **options)

    return new_comm
