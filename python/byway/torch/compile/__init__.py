# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed calls of `byway` groups under torch.compile(fullgraph=True): docs/compile.md.

`install()` is called when the first `byway` group is created. It imports no Dynamo: where Dynamo
is not loaded, the rest happens when it is.
"""

import sys
import threading

from . import cache_key, fused_ops
from .import_hook import ImportHook

_DYNAMO = "torch._dynamo"
_lock = threading.RLock()
_installation = None
_hook = None
_error = None


def install(group_name=None):
    """Makes `byway` groups traceable, now or when Dynamo is imported. Never raises; `status()`
    tells.

    Called with every new group's name: graphs that are cached on disk hold for these groups only.
    """
    global _hook, _error
    with _lock:
        try:
            fused_ops.define()  # beside the extension's operators: exported programs call them
        except Exception as error:
            _error = error
            return
        if group_name is not None:
            cache_key.add(group_name)
        if _installation is not None or _hook is not None:
            return
        if _DYNAMO in sys.modules:
            _install_now()
        else:
            _hook = ImportHook(_DYNAMO, _dynamo_is_here)
            _hook.start()


def uninstall():
    """Undoes `install()`. Functions that were compiled meanwhile are compiled anew at their next
    call.
    """
    global _installation, _hook, _error
    with _lock:
        if _hook is not None:
            _hook.stop()
            _hook = None
        if _installation is not None:
            _installation.undo()
            _installation = None
        _error = None
        cache_key.remove()


def status():
    """("installed" | "waiting" | "failed" | "off", the exception of a failed installation or
    None).
    """
    if _installation is not None:
        return "installed", None
    if _hook is not None:
        return "waiting", None
    return ("failed", _error) if _error is not None else ("off", None)


def register(original, body):
    """Gives a function of Byway's own (such as a fused call) a traceable body with the same
    arguments.
    """
    from . import registry

    with _lock:
        registry.OWN_BODIES[original] = body
        if _installation is not None:
            _installation.substitutions.add_own(original, body)


def _dynamo_is_here():
    global _hook
    with _lock:
        _hook = None
        _install_now()


def _install_now():
    global _installation, _error
    try:
        from .installer import Installation

        installation = Installation()
        try:
            installation.install()
        except BaseException:
            installation.undo()
            raise
        _installation, _error = installation, None
    except Exception as error:
        _error = error
