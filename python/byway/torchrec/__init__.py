# SPDX-License-Identifier: BSD-3-Clause
"""TorchRec's sharded relay on Byway (docs/torchrec.md).

import byway.torchrec
byway.torchrec.install()     # before DMPCollection(..., use_sharded_relay=True) is built
"""

from byway.torchrec._comm import RelayComm
from byway.torchrec._install import install, uninstall
from byway.torchrec._relay import FusedShardedRelayMultiGroup

__all__ = ["FusedShardedRelayMultiGroup", "RelayComm", "install", "uninstall"]
