# SPDX-License-Identifier: BSD-3-Clause
"""One rank of Gloo: makes the process group and leaves the rest to the extension.

gloo_peer.py FLAGS OUT        writes the compiler's arguments for an extension of this torch
gloo_peer.py FILE STORE R N   rank R of N with the extension FILE, meeting in the file STORE
"""

import sys


def write_flags(out: str) -> None:
    import pathlib
    import sysconfig

    import torch
    from torch.utils import cpp_extension

    flags = [f"-I{path}" for path in cpp_extension.include_paths()]
    flags += [f"-I{sysconfig.get_path('include')}"]
    for path in cpp_extension.library_paths():
        flags += [f"-L{path}", f"-Wl,-rpath,{path}"]
    flags += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    flags += ["-ltorch_python", "-ltorch", "-ltorch_cpu", "-lc10"]
    pathlib.Path(out).write_text("\n".join(flags) + "\n")


def serve(extension: str, store: str, rank: int, size: int) -> None:
    import importlib.util

    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    spec = importlib.util.spec_from_file_location("byway_gloo_peer", extension)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.serve(dist.group.WORLD)
    dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1] == "FLAGS":
        write_flags(sys.argv[2])
    else:
        serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
