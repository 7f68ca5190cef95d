# SPDX-License-Identifier: BSD-3-Clause
"""Rank processes that live over many tests. One set of them serves every world size: smaller worlds leave ranks idle."""

import contextlib
import importlib
import multiprocessing
import os
import tempfile
import traceback

BACKEND = os.environ.get("BYWAY_COMPILE_TEST_BACKEND", "byway")
DEADLINE_S = 120


def _init(rank, size, path):
    import torch.distributed as dist

    store = dist.FileStore(path, size)
    dist.init_process_group(BACKEND, rank=rank, world_size=size, store=store, timeout=_timeout())


def _timeout():
    import datetime

    return datetime.timedelta(seconds=60)


def _prepare():
    import torch

    torch.set_num_threads(1)
    library = os.environ.get("BYWAY_COMPILE_TEST_OPS")
    if library:
        torch.ops.load_library(library)
        from byway.torch import compile as tracing

        tracing.install()
        import torch._dynamo

        from byway.torch.compile import groups

        groups.serve(BACKEND)


def _serve(rank, pipe, cache):
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    import torch.distributed as dist

    _prepare()
    while True:
        request = pipe.recv()
        if request is None:
            break
        kind, *rest = request
        try:
            if kind == "world":
                if dist.is_initialized():
                    dist.destroy_process_group()
                size, path = rest
                if rank < size:
                    _init(rank, size, path)
                pipe.send((True, None))
            else:
                module, name, args = rest
                function = getattr(importlib.import_module(module), name)
                pipe.send((True, function(*args)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))
    with contextlib.suppress(Exception):
        if dist.is_initialized():
            dist.destroy_process_group()


class RankFailed(AssertionError):
    pass


class Pool:
    """`call` runs a module's function on every rank of the current world and returns their answers."""

    def __init__(self, ranks):
        self._ranks = ranks
        self._folder = tempfile.TemporaryDirectory(prefix="byway-compile-")
        self._worlds = 0
        self._size = 0
        self._processes = []
        self._pipes = []

    def _start(self):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["torch", "torch.distributed", "torch._dynamo"])
        for rank in range(self._ranks):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(rank, theirs, self._folder.name), daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._pipes.append(ours)

    def world(self, size):
        if not self._processes:
            self._start()
        if size == self._size:
            return
        self._worlds += 1
        path = os.path.join(self._folder.name, f"store{self._worlds}")
        self._ask(self._pipes, ("world", size, path))
        self._size = size

    def call(self, function, *args):
        return self._ask(self._pipes[: self._size], ("call", function.__module__, function.__name__, args))

    def _ask(self, pipes, request):
        for pipe in pipes:
            pipe.send(request)
        answers = []
        for rank, pipe in enumerate(pipes):
            if not pipe.poll(DEADLINE_S):
                answers.append((False, f"rank {rank} did not answer within {DEADLINE_S} s"))
                break
            try:
                answers.append(pipe.recv())
            except EOFError:
                answers.append((False, f"rank {rank} died"))
        failed = [f"rank {rank}:\n{text}" for rank, (good, text) in enumerate(answers) if not good]
        if failed:
            self.stop()  # the others may be in the middle of a call
            raise RankFailed("\n".join(failed))
        return [answer for _, answer in answers]

    def stop(self):
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        self._processes, self._pipes, self._size = [], [], 0

    def close(self):
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)
        for process in self._processes:
            process.join(10)
        self.stop()
        self._folder.cleanup()
