# SPDX-License-Identifier: BSD-3-Clause
"""Sends and receives."""

from torch.distributed import distributed_c10d as c10d

from .. import groups
from ..calls import Options, launch
from ..ops import run, start
from ..registry import body
from ..works import TracedWork
from .coalesced import window_of

_ANY_SOURCE = -1


@body("isend")
def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    pg = groups.member(group)
    if pg is None:
        return None
    peer = groups.group_rank(pg, dst, group_dst, "dst")
    window = window_of(pg)
    if window is not None:
        return window.add_transfer([tensor], [], peer, tag)
    return launch("send", [tensor], [], Options(pg, peers=[peer], tags=[tag]), True)


@body("irecv")
def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    pg = groups.member(group)
    if pg is None:
        return None
    if src is None and group_src is None:
        peer = _ANY_SOURCE
    else:
        peer = groups.group_rank(pg, src, group_src, "src")
    window = window_of(pg)
    if window is not None:
        return window.add_transfer([], [tensor], peer, tag)
    options = Options(pg, peers=[peer], tags=[tag])
    return TracedWork(start("recv", [], [tensor], options), [tensor], peer)


@body("send")
def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    pg = groups.member(group)
    if pg is None:
        return None
    peer = groups.group_rank(pg, dst, group_dst, "dst")
    groups.refuse_self(pg, peer, "destination")
    run("send", [tensor], [], Options(pg, peers=[peer], tags=[tag]))
    return None


@body("recv")
def recv(tensor, src=None, group=None, tag=0, group_src=None):
    pg = groups.member(group)
    if pg is None:
        return -1
    if src is None and group_src is None:
        raise NotImplementedError(
            "recv without a source returns the sender's rank, which a graph cannot know: "
            "give src or group_src, or use irecv"
        )
    peer = groups.group_rank(pg, src, group_src, "src")
    run("recv", [], [tensor], Options(pg, peers=[peer], tags=[tag]))
    return c10d.get_process_group_ranks(pg)[peer]


@body("batch_isend_irecv")
def batch_isend_irecv(p2p_op_list):
    pg = groups.member(p2p_op_list[0].group)
    if pg is None:
        return []
    ins, outs, in_peers, out_peers, in_tags, out_tags = [], [], [], [], [], []
    for p2p in p2p_op_list:
        if p2p.op is c10d.isend:
            ins.append(p2p.tensor)
            in_peers.append(p2p.group_peer)
            in_tags.append(p2p.tag)
        else:
            outs.append(p2p.tensor)
            out_peers.append(p2p.group_peer)
            out_tags.append(p2p.tag)
    options = Options(pg, peers=in_peers + out_peers, tags=in_tags + out_tags)
    return [launch("batch", ins, outs, options, True)]
