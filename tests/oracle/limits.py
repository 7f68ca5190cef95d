# SPDX-License-Identifier: BSD-3-Clause
"""Fluid limits of relayed collectives: any disjoint groups, counts and directed link capacities. Nothing is symmetrised.

T = least time in (count of the largest group) / (unit link capacity); a link of capacity c carries c*T. Store-and-forward, with
copying (multicast trees) and summing (in-trees); no coding across data. Reduce-scatter, reduce and gather are the time reverses of
all-gather, broadcast and scatter, so they use the reversed capacities. Allreduce: every share is summed in-tree at some rank and
sent out-tree from there, or exchanged raw. `direct` restricts every transfer to links between members of one group.

    python limits.py            prints the table and writes limits.json beside this file (about two minutes)
"""
import json, os, sys
from relay_lp import LP, links

COLL = ('allreduce', 'all-gather', 'reduce-scatter', 'all-to-all', 'broadcast', 'reduce', 'scatter', 'gather')

def limit(coll, n, groups, cap=None, counts=None, direct=False):
    """cap: {(u, v): capacity}, missing = 1.0, 0 = no link. counts: one per group, relative. Returns T."""
    cap = cap or {}
    rev = coll in ('reduce-scatter', 'reduce', 'gather')
    c = lambda e: cap.get((e[1], e[0]) if rev else e, 1.0)
    counts = counts or [1.0] * len(groups)
    lp = LP(); T = lp.var(1.0)
    gi = {r: i for i, g in enumerate(groups) for r in g}
    L = [e for e in links(n) if c(e) > 0]
    load = {e: [] for e in L}
    for i, (g, cnt) in enumerate(zip(groups, counts)):
        if cnt == 0 or len(g) == 1: continue
        M = [e for e in L if not direct or (gi.get(e[0]) == i and gi.get(e[1]) == i)]
        nodes = [r for r in range(n) if not direct or gi.get(r) == i]

        def flow(E, src, sink):                       # sink: {rank: amount or (var, coef)}
            f = {e: lp.var() for e in E if e[1] != src}
            for v in nodes:
                if v == src: continue
                t = [(f[e], 1.0) for e in f if e[1] == v] + [(f[e], -1.0) for e in f if e[0] == v]
                want = sink.get(v, 0.0)
                if isinstance(want, tuple): lp.eq(t + [(want[0], -want[1])], 0.0)
                else: lp.eq(t, want)
            return f

        def tree(src, dests, amount, reverse=False):  # multicast; reverse: the same shape, links backwards (in-tree)
            E = [(v, u) for u, v in M] if reverse else M
            use = {e: lp.var() for e in E if e[1] != src}
            for d in dests:
                if d == src: continue
                f = flow(E, src, {d: amount})
                for e in f: lp.le([(f[e], 1.0), (use[e], -1.0)], 0.0)
            for e, u in use.items(): load[(e[1], e[0]) if reverse else e].append((u, 1.0))

        def unicast(src, sink):
            for e, x in flow(M, src, sink).items(): load[e].append((x, 1.0))

        if coll == 'all-to-all':
            for a in g: unicast(a, {b: cnt for b in g if b != a})
        elif coll in ('all-gather', 'reduce-scatter'):
            for a in g: tree(a, [b for b in g if b != a], cnt)
        elif coll in ('broadcast', 'reduce'):
            tree(g[0], g[1:], cnt)
        elif coll in ('scatter', 'gather'):
            unicast(g[0], {b: cnt for b in g[1:]})
        elif coll == 'allreduce':
            total = []
            for r in nodes:
                x = lp.var(); total.append((x, 1.0))
                tree(r, g, (x, 1.0)); tree(r, g, (x, 1.0), reverse=True)
            x = lp.var(); total.append((x, 1.0))
            for a in g: tree(a, g, (x, 1.0))
            lp.eq(total, float(cnt))
        else: raise ValueError(coll)
    for e, t in load.items():
        if t: lp.le(t + [(T, -c(e))], 0.0)
    return lp.solve()[0]

def regular(n, A, fused): return [list(range(g * A, g * A + A)) for g in range(n // A if fused else 1)]

def cells():
    for n, A in ((8, 2), (8, 3), (8, 4), (8, 8), (6, 2), (6, 3), (4, 2), (4, 3)):
        yield f'n{n} A{A} single', n, regular(n, A, False), None, None
        if A < n and n // A > 1: yield f'n{n} A{A} fused', n, regular(n, A, True), None, None
    yield 'n8 2+3 fused', 8, [[0, 1], [2, 3, 4]], None, None
    yield 'n8 2+3+3 fused', 8, [[0, 1], [2, 3, 4], [5, 6, 7]], None, None
    yield 'n7 A5 single', 7, [[0, 1, 2, 3, 4]], None, None
    for name, cnt in (('634:560:553:479', (634, 560, 553, 479)), ('1:1:1:0.5', (1, 1, 1, .5)), ('1:0.5:0.5:0.5', (1, .5, .5, .5)), ('1:1:0:0', (1, 1, 0, 0))):
        yield f'n8 A2 fused counts {name}', 8, regular(8, 2, True), None, [x / max(cnt) for x in cnt]
    yield 'n8 A4 fused counts 1:0.5', 8, regular(8, 4, True), None, [1.0, .5]
    for where, (u, v) in (('member-member', (0, 1)), ('member-helper', (0, 5))):
        for kind, cap in (('quarter', {(u, v): .25, (v, u): .25}), ('missing', {(u, v): 0.0, (v, u): 0.0}), ('slow one way', {(u, v): .25})):
            for A, fused in ((2, False), (4, False), (4, True)):
                yield f'n8 A{A} {"fused" if fused else "single"} {where} {kind}', 8, regular(8, A, fused), cap, None

if __name__ == '__main__':
    out = []
    for name, n, groups, cap, counts in cells():
        for coll in COLL:
            T = limit(coll, n, groups, cap, counts)
            try: D = limit(coll, n, groups, cap, counts, direct=True)
            except RuntimeError: D = None             # members are not joined by links of their own
            out.append(dict(cell=name, collective=coll, n=n, groups=groups, counts=counts,
                            capacities=[[u, v, c] for (u, v), c in (cap or {}).items()], limit=T, direct=D))
            print(f'{name:44s} {coll:15s} T={T:.6f} direct={D if D is None else round(D, 6)} speedup={"-" if D is None else round(D / T, 4)}', flush=True)
    json.dump(out, open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'limits.json'), 'w'), indent=0)
