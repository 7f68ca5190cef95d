# SPDX-License-Identifier: BSD-3-Clause
"""What ``pg_options`` may say."""

from __future__ import annotations

from datetime import timedelta


class Options:
    """Settings of one group, for ``init_process_group`` and ``new_group``.

    All ranks of the group must give the same. What is left out comes from the environment
    (docs/environment.md).

    topology: the links between ranks: "host", "mesh:8", ... or a file (docs/topology.md).
    pace: slows every link of the process: "RATE[,LATENCY_US]".
    route: "direct", or a construction that `byway plan` prints; "" chooses.
    stage_quota: bytes of the library's own memory on each rank.
    exchange_counts: ranks tell each other sizes that each knows a part of only (gather, scatter,
        all_to_all with unequal sizes), which costs a message and lets helpers carry part of them.
    timeout: of the group; the argument `timeout` of the function that makes it goes before it.
    """

    __slots__ = (
        "exchange_counts",
        "global_ranks_in_group",
        "group_name",
        "pace",
        "route",
        "stage_quota",
        "timeout",
        "topology",
    )

    def __init__(
        self,
        *,
        topology: str = "",
        pace: str = "",
        route: str = "",
        stage_quota: int = 64 << 20,
        exchange_counts: bool = False,
        timeout: timedelta | None = None,
    ):
        self.topology = topology
        self.pace = pace
        self.route = route
        self.stage_quota = stage_quota
        self.exchange_counts = exchange_counts
        self.timeout = timeout
        self.global_ranks_in_group: list[int] = []
        self.group_name = ""

    def __repr__(self) -> str:
        texts = [f"{name}={getattr(self, name)!r}" for name in self.__slots__]
        return f"Options({', '.join(texts)})"

    def _native(self, extension):
        """The same as the extension's options."""
        native = extension.Options()
        native.topology = self.topology
        native.pace = self.pace
        native.route = self.route
        native.stage_quota = self.stage_quota
        native.exchange_counts = self.exchange_counts
        native.global_ranks_in_group = self.global_ranks_in_group
        native.group_name = self.group_name
        if self.timeout is not None:
            native._timeout = self.timeout
        return native


def native_options(options, extension):
    """`pg_options` of any kind for the extension: ours, its own, another backend's, None."""
    if options is None or isinstance(options, extension.Options):
        return options
    if isinstance(options, Options):
        return options._native(extension)
    raise TypeError(
        f"pg_options of a byway group must be byway.torch.Options, not {type(options).__name__}"
    )
