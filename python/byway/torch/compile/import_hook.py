# SPDX-License-Identifier: BSD-3-Clause
"""Calls a function when a module has been imported, without importing it."""

import importlib.abc
import importlib.util
import sys


class _Loader(importlib.abc.Loader):
    """The module's own loader, and a call after it."""

    def __init__(self, loader, then):
        self._loader = loader
        self._then = then

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        self._then()

    def __getattr__(self, name):
        return getattr(self._loader, name)


class ImportHook(importlib.abc.MetaPathFinder):
    """Watches for the first import of one module."""

    def __init__(self, name, then):
        self._name = name
        self._then = then

    def start(self):
        sys.meta_path.insert(0, self)

    def stop(self):
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        self.stop()  # the search below must not find this hook again
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._then)
        return spec
