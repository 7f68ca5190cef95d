# SPDX-License-Identifier: BSD-3-Clause
"""Work and Future of calls that a graph starts. Plain classes: Dynamo traces them as it does any
user's, in and out of graphs.
"""

from .ops import finish


class TracedWork:
    """A started call. `outs` get their values at the first wait, wherever it is made."""

    def __init__(self, handle, outs, source=-1):
        self.handle = handle
        self.outs = outs
        self.source = source
        self.done = False

    def wait(self, timeout=None):
        # Decided while tracing, so a second wait adds nothing to the graph.
        if not self.done:
            self.done = True
            finish(self.handle, self.outs, timeout)
        return True

    def synchronize(self):
        self.wait()

    def block_current_stream(self):
        self.wait()

    def is_completed(self):
        """Finishes the call, which makes the answer the same in every run: a graph has no branch
        on timing.
        """
        return self.wait()

    def is_success(self):
        return self.wait()

    def exception(self):
        return None

    def result(self):
        self.wait()
        return self.outs

    def source_rank(self):
        self.wait()
        return self.source

    _source_rank = source_rank

    def get_future(self):
        return TracedFuture(self)


class TracedFuture:
    """The future of a TracedWork; its value is the list of output tensors."""

    def __init__(self, work):
        self.work = work

    def wait(self):
        self.work.wait()
        return self.work.outs

    def value(self):
        return self.wait()

    def done(self):
        return self.work.wait()

    def then(self, callback):
        """Runs the callback here, in program order."""
        self.work.wait()
        return FinishedFuture(callback(self))

    def add_done_callback(self, callback):
        self.work.wait()
        callback(self)


class FinishedFuture:
    """What `then` returns: a value that is there."""

    def __init__(self, result):
        self.result = result

    def wait(self):
        return self.result

    def value(self):
        return self.result

    def done(self):
        return True

    def then(self, callback):
        return FinishedFuture(callback(self))

    def add_done_callback(self, callback):
        callback(self)
