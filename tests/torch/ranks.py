# SPDX-License-Identifier: BSD-3-Clause
"""Processes that stay: one set per world size, in which a test runs any number of functions.

    team = ranks.team(4)
    results = team.run(function, *arguments)      # one result per rank
    outcomes = team.attempt(function, *arguments) # results or errors, per rank

`function(context, *arguments)` must be importable (a module of this folder); it gets a Context with
its rank and groups. A team of which a rank died, or did not answer in time, is ended and made anew
for the next call.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import multiprocessing
import os
import pathlib
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BYWAY_BUILD_DIR", ROOT / "build/dev"))
START_SECONDS = 120  # importing torch, with every core in use
CALL_SECONDS = 60


def extension_path() -> pathlib.Path | None:
    """The extension that the tests load: BYWAY_TORCH_EXTENSION, else the build folder's."""
    named = os.environ.get("BYWAY_TORCH_EXTENSION")
    if named:
        return pathlib.Path(named)
    found = sorted((BUILD / "src/byway/torch").glob("_C*.so"))
    return found[0] if found else None


@dataclasses.dataclass
class Outcome:
    """What a rank's function gave: `value`, or `error` with its type's name and traceback."""

    value: object = None
    error: str | None = None
    kind: str = ""
    trace: str = ""


class Context:
    """What a function in a rank sees: its place, and groups that are made once and kept."""

    def __init__(self, rank: int, size: int):
        self.rank = rank
        self.size = size
        self._groups: dict[tuple[int, ...], object] = {}

    def group(self, ranks: tuple[int, ...] | None):
        """The group of these ranks, None for the world. All ranks of the team must ask."""
        import torch.distributed as dist

        if ranks is None:
            return dist.group.WORLD
        if ranks not in self._groups:
            self._groups[ranks] = dist.new_group(list(ranks), sort_ranks=False)
        return self._groups[ranks]


def _environment(settings: dict[str, str]) -> None:
    for name in [name for name in os.environ if name.startswith("BYWAY_")]:
        del os.environ[name]
    os.environ.update(settings)
    os.environ["OMP_NUM_THREADS"] = "1"


def _serve(rank: int, size: int, store: str, settings: dict[str, str], backend: str, pipe) -> None:
    """A rank's process: runs what comes through the pipe until it is closed."""
    _environment(settings)
    import torch
    import torch.distributed as dist

    import byway.torch  # noqa: F401 (registers the backend)

    torch.set_num_threads(1)
    dist.init_process_group(backend, rank=rank, world_size=size, store=dist.FileStore(store, size))
    context = Context(rank, size)
    pipe.send("ready")
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            break
        try:
            outcome = Outcome(value=function(context, *arguments))
        except Exception as error:
            outcome = Outcome(
                error=str(error), kind=type(error).__name__, trace=traceback.format_exc()
            )
        pipe.send(outcome)
    with contextlib.suppress(Exception):
        dist.destroy_process_group()


class RankFailure(AssertionError):
    """A rank raised, died or did not answer."""


class Team:
    """The processes of one world. `settings` are their BYWAY_* variables."""

    def __init__(self, size: int, settings: dict[str, str], backend: str = "byway"):
        self.size = size
        self.settings = settings
        self.backend = backend
        self._processes: list = []
        self._pipes: list = []
        self._folder: tempfile.TemporaryDirectory | None = None

    def attempt(
        self,
        function,
        *arguments,
        seconds: float = CALL_SECONDS,
        dies: frozenset | set = frozenset(),
    ) -> list[Outcome]:
        """Runs it on every rank; never raises for what a rank raises. The ranks `dies` end."""
        if not self._processes:
            self._start()
        for pipe in self._pipes:
            pipe.send((function, arguments))
        return self._collect(seconds, f"{function.__name__}{arguments}", dies)

    def run(self, function, *arguments, seconds: float = CALL_SECONDS) -> list:
        """The results by rank. Raises RankFailure with the traces of all ranks that raised."""
        outcomes = self.attempt(function, *arguments, seconds=seconds)
        failed = [
            f"rank {rank}: {outcome.trace}"
            for rank, outcome in enumerate(outcomes)
            if outcome.error is not None
        ]
        if failed:
            self.end()  # a failed call breaks groups
            raise RankFailure("\n".join(failed))
        return [outcome.value for outcome in outcomes]

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._folder = tempfile.TemporaryDirectory(prefix="byway-ranks-")
        extension = extension_path()
        settings = dict(self.settings)
        if extension is not None:
            settings["BYWAY_TORCH_EXTENSION"] = str(extension)
        for rank in range(self.size):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(
                target=_serve,
                args=(
                    rank,
                    self.size,
                    f"{self._folder.name}/store",
                    settings,
                    self.backend,
                    theirs,
                ),
                daemon=True,
            )
            process.start()
            theirs.close()
            self._processes.append(process)
            self._pipes.append(ours)
        self._collect(START_SECONDS, "start")

    def _collect(self, seconds: float, what: str, dies: frozenset | set = frozenset()) -> list:
        until = time.monotonic() + seconds
        answers: list = []
        for rank, pipe in enumerate(self._pipes):
            if rank in dies:
                answers.append(Outcome(error="ended"))
                continue
            try:
                answered = pipe.poll(max(0.0, until - time.monotonic()))
                answers.append(pipe.recv() if answered else None)
            except (EOFError, ConnectionError):
                code = self._processes[rank].join(1) or self._processes[rank].exitcode
                self.end()
                raise RankFailure(f"{what}: rank {rank} ended with status {code}") from None
            if not answered:
                traces = [getattr(answer, "trace", "") for answer in answers]
                said = "\n".join([*filter(None, traces), self._said()])
                self.end()
                raise RankFailure(f"{what}: rank {rank} did not answer within {seconds} s\n{said}")
        return answers

    def _said(self) -> str:
        """The errors of ranks whose answers were not read, for what a silent rank waited for."""
        lines = []
        for rank, pipe in enumerate(self._pipes):
            with contextlib.suppress(EOFError, ConnectionError):
                if pipe.poll(0):
                    lines.append(f"rank {rank} said: {getattr(pipe.recv(), 'trace', '')}")
        return "\n".join(lines)

    def end(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()
        self._processes, self._pipes = [], []
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


_teams: dict[tuple, Team] = {}


def team(size: int, backend: str = "byway", **settings: str) -> Team:
    """The team of this size and settings, made at the first use and kept for the session."""
    key = (size, backend, tuple(sorted(settings.items())))
    if key not in _teams:
        _teams[key] = Team(size, settings, backend)
    return _teams[key]


def end_all() -> None:
    for each in _teams.values():
        each.end()
    _teams.clear()


atexit.register(end_all)
if str(ROOT / "python") not in sys.path:
    sys.path.insert(0, str(ROOT / "python"))
