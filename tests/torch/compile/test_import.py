# SPDX-License-Identifier: BSD-3-Clause
"""Installing imports no Dynamo; importing Dynamo later finds the support there. Failures are
kept, not raised.
"""

import os
import pathlib
import subprocess
import sys
import textwrap

import ranks

ROOT = pathlib.Path(__file__).resolve().parents[3]

_PREPARE = """
    import os, sys
    sys.path.insert(0, os.environ["BYWAY_PYTHON"])
    import torch
    from byway.torch import _extension
    from byway.torch import compile as tracing
    _extension.load()
"""


def _run(code):
    text = textwrap.dedent(_PREPARE) + textwrap.dedent(code)
    environment = {
        **os.environ,
        "BYWAY_PYTHON": str(ROOT / "python"),
        "BYWAY_TORCH_EXTENSION": str(ranks.extension_path()),
    }
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "", done.stdout
    assert "byway" not in done.stderr, done.stderr


def test_waits_for_dynamo():
    _run("""
        tracing.install()
        tracing.install()
        assert tracing.status() == ("waiting", None)
        assert "torch._dynamo" not in sys.modules
        import torch._dynamo
        assert tracing.status() == ("installed", None), tracing.status()
        assert not any(getattr(f, "_name", None) == "torch._dynamo" for f in sys.meta_path)
        tracing.uninstall()
        tracing.uninstall()
        assert tracing.status() == ("off", None)
        tracing.install()
        assert tracing.status() == ("installed", None)
    """)


def test_inductors_passes_are_given_back():
    """Whether inductor is imported before or after the support is installed."""
    _run("""
        tracing.install()
        import torch._dynamo
        import torch._inductor.fx_passes.post_grad as graphs
        import torch._inductor.memory as schedules
        def passes():
            return graphs.reorder_for_locality, schedules.reorder_for_peak_memory
        plain = tuple(each.__wrapped__ for each in passes())
        tracing.uninstall()
        assert passes() == plain
        tracing.install()
        assert tuple(each.__wrapped__ for each in passes()) == plain
        tracing.uninstall()
        assert passes() == plain
        assert not any(type(f).__name__ == "ImportHook" for f in sys.meta_path)
    """)


def test_undone_before_dynamo():
    _run("""
        tracing.install()
        tracing.uninstall()
        import torch._dynamo
        assert tracing.status() == ("off", None)
        import torch.distributed._functional_collectives as functional
        bodies = functional.traceable_collective_remaps.values()
        assert not any("byway" in f.__module__ for f in bodies)
    """)


def test_keeps_the_error():
    _run("""
        import torch._dynamo
        from torch._dynamo.variables import PolyfilledFunctionVariable
        torch.compiler.substitute_in_graph = None
        tracing.install()
        kind, error = tracing.status()
        assert kind == "failed" and isinstance(error, TypeError), (kind, error)
        assert not torch._dynamo.config.enable_p2p_compilation
        import torch.distributed._functional_collectives as functional
        bodies = functional.traceable_collective_remaps.values()
        assert not any("byway" in f.__module__ for f in bodies)
        f = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
        assert f(torch.ones(1)).item() == 2
    """)
