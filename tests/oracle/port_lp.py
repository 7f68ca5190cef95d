# SPDX-License-Identifier: BSD-3-Clause
# NVSwitch-like fabric: no per-pair limit, each GPU has egress = ingress = P link-units (P=1 here). Same flows, port rows instead of link rows.
from relay_lp import *
def finish_port(net,P=1.0):
    for k in net.stages():
        for v in range(net.n):
            for side in (0,1):
                t=[x for (e,kk),l in net.load.items() if kk==k and e[side]==v for x in l]
                if t: net.lp.le(t+[(net.T[k],-P)],0.0)
    return net.lp.solve()[0]
def bound_port(coll,n,A,scen,K=None,intra=False):
    G=groups(n,A,scen); gi={r:i for i,g in enumerate(G) for r in g}
    allowed=(lambda e: e[0] in gi and e[1] in gi and gi[e[0]]==gi[e[1]]) if intra else None
    net=Net(n,K,allowed)
    for g in G:
        if coll=='A2A':
            for a in g: net.add_load(net.flow(a,{b:1.0 for b in g if b!=a},1.0))
        elif coll=='AG':
            for a in g: net.multicast(a,[b for b in g if b!=a],1.0)
        elif coll=='BC': net.multicast(g[0],g[1:],1.0)
    return finish_port(net)
def ar_port(n,A,scen,K=None,intra=False):
    # reuse ar machinery on explicit links, then port rows: full (un-symmetrised) model
    G=groups(n,A,scen); gi={r:i for i,g in enumerate(G) for r in g}
    allowed=(lambda e: e[0] in gi and e[1] in gi and gi[e[0]]==gi[e[1]]) if intra else None
    net=Net(n,K,allowed); lp=net.lp
    for g in G:
        tot=[]
        def tree(r,x,ks,rev):
            order=list(ks)[::-1] if rev else list(ks); m=len(order)
            use={(e,j):lp.var() for e in net.L if e[1]!=r for j in range(m)}
            for t in g:
                if t==r: continue
                f={key:lp.var() for key in use}; hold={(v,j):lp.var() for v in range(n) if v!=r for j in range(1,m)}
                for key in use: lp.le([(f[key],1),(use[key],-1)],0)
                for v in range(n):
                    if v==r: continue
                    for j in range(1,m+1):
                        tm=[(f[e,j-1],1.0) for e in net.L if e[1]==v and (e,j-1) in f]
                        if K is None: tm+=[(f[e,0],-1.0) for e in net.L if e[0]==v and (e,0) in f]
                        else:
                            if j>=2: tm.append((hold[v,j-1],1.0))
                            if j<m: tm.append((hold[v,j],-1.0)); tm+=[(f[e,j],-1.0) for e in net.L if e[0]==v and (e,j) in f]
                        if j==m and v==t: tm.append((x,-1.0))
                        lp.eq(tm,0.0)
                if K is not None:
                    for e in net.L:
                        if e[0]!=r and (e,0) in f: lp.le([(f[e,0],1)],0)
            for (e,j),u in use.items():
                phys=(e[1],e[0]) if rev else e
                net.load[phys,order[j] if K is not None else 0].append((u,1.0))
        for r in range(n):
            if intra and r not in g: continue
            if K is None:
                x=lp.var(); tot.append((x,1.0)); tree(r,x,[0],False); tree(r,x,[0],True)
            else:
                for k in range(1,K):
                    x=lp.var(); tot.append((x,1.0)); tree(r,x,range(k),True); tree(r,x,range(k,K),False)
        x=lp.var(); tot.append((x,1.0))
        for a in g: tree(a,x,[0] if K is None else range(K),False)
        lp.eq(tot,1.0)
    return finish_port(net)
for A,scen in [(2,'SINGLE'),(3,'SINGLE'),(4,'SINGLE'),(2,'FUSED'),(4,'FUSED')]:
    for coll in ('AR','AG','A2A','BC'):
        f=(lambda K,i=False: ar_port(8,A,scen,K,i)) if coll=='AR' else (lambda K,i=False: bound_port(coll,8,A,scen,K,i))
        i=f(None,True); r=[f(None)]
        r2=[f(2),f(4)] if not (coll=='AR' and scen=='FUSED') else [float('nan')]*2
        print('NVSwitch-like',A,scen,coll,'intra-only T=%.4f fluid T=%.4f helper gain %.3fx | K=2 T=%.4f K=4 T=%.4f'%(i,r[0],i/r[0],*r2),flush=True)
