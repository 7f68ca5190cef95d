# SPDX-License-Identifier: BSD-3-Clause
"""LP bounds for sharded-relay collectives on a fully connected n-GPU node.

Every ordered pair (u,v) is one unit-capacity directed link.  A schedule of K
serialized stages of (free) durations T_1..T_K costs sum T_k; in stage k a link
carries at most T_k.  Data received in stage k may be used from stage k+1 on.
K=None is the fluid (infinitely pipelined) limit: max link load only.
"""
import itertools, sys
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

class LP:
    def __init__(s): s.nv=0; s.c=[]; s.er=[];s.ec=[];s.ev=[];s.eb=[]; s.ur=[];s.uc=[];s.uv=[];s.ub=[]
    def var(s,cost=0.0): s.nv+=1; s.c.append(cost); return s.nv-1
    def eq(s,terms,b):
        r=len(s.eb); s.eb.append(b)
        for i,a in terms: s.er.append(r);s.ec.append(i);s.ev.append(a)
    def le(s,terms,b):
        r=len(s.ub); s.ub.append(b)
        for i,a in terms: s.ur.append(r);s.uc.append(i);s.uv.append(a)
    def solve(s):
        A=sp.csr_matrix((s.uv,(s.ur,s.uc)),shape=(len(s.ub),s.nv))
        E=sp.csr_matrix((s.ev,(s.er,s.ec)),shape=(len(s.eb),s.nv))
        r=linprog(s.c,A_ub=A,b_ub=s.ub,A_eq=E,b_eq=s.eb,bounds=(0,None),method='highs')
        if r.status!=0: raise RuntimeError(r.message)
        return r.fun,r.x

def links(n): return [(u,v) for u in range(n) for v in range(n) if u!=v]

def groups(n,A,scen):
    if scen=='SINGLE': return [list(range(A))]
    return [list(range(g*A,(g+1)*A)) for g in range(n//A)]

class Net:
    """time-expanded (K stages) or fluid (K=None) network with capacity vars."""
    def __init__(s,n,K,allowed=None):
        s.n=n; s.K=K; s.lp=LP(); s.L=[e for e in links(n) if allowed is None or allowed(e)]
        S=1 if K is None else K
        s.T=[s.lp.var(1.0) for _ in range(S)]
        s.load={(e,k):[] for e in s.L for k in range(S)}
    def stages(s): return range(1 if s.K is None else s.K)
    def flow(s,src,snk,amt):
        """flow leaving src; snk: dict node->amount (numbers or (var,coef)). returns {(e,k):var}"""
        lp=s.lp; f={}
        for e in s.L:
            for k in s.stages():
                if e[1]==src: continue
                f[e,k]=lp.var()
        if s.K is None:
            for v in range(s.n):
                if v==src: continue
                t=[(x,1.0) for (e,k),x in f.items() if e[1]==v]+[(x,-1.0) for (e,k),x in f.items() if e[0]==v]
                lp.eq(t,snk.get(v,0.0))
        else:
            hold={(v,k):lp.var() for v in range(s.n) if v!=src for k in range(1,s.K)}  # v keeps from stage k-1 end into stage k end
            # node (v,k) = state at start of stage k (k=1..K ; K = end)
            for v in range(s.n):
                if v==src: continue
                for k in range(1,s.K+1):
                    t=[(f[e,k-1],1.0) for e in s.L if e[1]==v and (e,k-1) in f]
                    if k>=2: t.append((hold[v,k-1],1.0))
                    if k<s.K:
                        t.append((hold[v,k],-1.0))
                        t+=[(f[e,k],-1.0) for e in s.L if e[0]==v and (e,k) in f]
                    lp.eq(t,snk.get(v,0.0) if k==s.K else 0.0)
            for e in s.L:      # stage 0: only the source holds data
                if e[0]!=src and (e,0) in f: lp.le([(f[e,0],1.0)],0.0)
        return f
    def add_load(s,f):
        for (e,k),x in f.items(): s.load[e,k].append((x,1.0))
    def multicast(s,src,dests,amt):
        g={(e,k):s.lp.var() for e in s.L for k in s.stages() if e[1]!=src}
        for d in dests:
            f=s.flow(src,{d:amt},amt)
            for key,x in f.items(): s.lp.le([(x,1.0),(g[key],-1.0)],0.0)
        s.add_load(g); return g
    def finish(s):
        for (e,k),t in s.load.items():
            if t: s.lp.le(t+[(s.T[k],-1.0)],0.0)
        return s.lp.solve()

def bound(coll,n,A,scen,K=None,intra=False,counts=None):
    G=groups(n,A,scen)
    counts=counts or [1.0]*len(G)
    gi={r:i for i,g in enumerate(G) for r in g}
    allowed=(lambda e: e[0] in gi and e[1] in gi and gi[e[0]]==gi[e[1]]) if intra else None
    if coll in('AR',): return ar_bound(n,A,scen,K,intra)
    net=Net(n,K,allowed)
    for g,c in zip(G,counts):
        if c==0: continue
        if coll=='A2A':
            for a in g: net.add_load(net.flow(a,{b:c for b in g if b!=a},c))
        elif coll in('AG','RS'):          # RS = time reverse of AG (links are symmetric)
            for a in g: net.multicast(a,[b for b in g if b!=a],c)
        elif coll in('BC','RED'):
            net.multicast(g[0],g[1:],c)
        elif coll in('SC','GA'):
            net.add_load(net.flow(g[0],{b:c for b in g[1:]},c))
    return net.finish()[0]

# ---------------- allreduce: reduce in-tree to a root (r,k), broadcast out-tree ------------
def ar_classes(n,A,scen,intra):
    """link -> class ; class -> capacity available to ONE group (symmetrised)."""
    G=groups(n,A,scen); g0=set(G[0]); NG=len(G)
    gi={r:i for i,g in enumerate(G) for r in g}
    def cls(e):
        u,v=e
        if scen=='SINGLE':
            return ('i' if u in g0 and v in g0 else 'u' if u in g0 else 'd' if v in g0 else 'h')
        return 'i' if gi.get(u,-1)==gi.get(v,-2) else 'x'
    cap={}
    for e in links(n):
        c=cls(e); cap[c]=cap.get(c,0)+1.0/NG
    return cls,cap

def ar_bound(n,A,scen,K=None,intra=False,ret=False):
    """Symmetric reduction: one group, one root per orbit, class-averaged capacities (exact for
    vertex-transitive groups, by averaging)."""
    cls,cap=ar_classes(n,A,scen,intra)
    act=list(range(A)); L=links(n)
    if intra: L=[e for e in L if e[0]<A and e[1]<A]
    lp=LP(); S=1 if K is None else K
    T=[lp.var(1.0) for _ in range(S)]
    load={(c,k):[] for c in cap for k in range(S)}
    tot=[]
    roots=[0]+([A] if (n>A and not intra) else [])
    def tree(root,x,ks,reverse):
        """out-tree from root to all actives over stages ks (list) ; reverse -> in-tree."""
        ks=list(ks)
        if reverse: order=ks[::-1]
        else: order=ks
        m=len(order)
        E=[(v,u) for (u,v) in L] if reverse else L     # physical link for logical out-arc e is E^-1
        g={}
        for e in L:
            if e[1]==root: continue
            for j in range(m): g[e,j]=lp.var()
        for t in act:
            if t==root: continue
            f={key:lp.var() for key in g}
            hold={(v,j):lp.var() for v in range(n) if v!=root for j in range(1,m)}
            for key in g: lp.le([(f[key],1.0),(g[key],-1.0)],0.0)
            for v in range(n):
                if v==root: continue
                for j in range(1,m+1):
                    tm=[(f[e,j-1],1.0) for e in L if e[1]==v and (e,j-1) in f]
                    if K is None:
                        tm+=[(f[e,0],-1.0) for e in L if e[0]==v and (e,0) in f]
                    else:
                        if j>=2: tm.append((hold[v,j-1],1.0))
                        if j<m:
                            tm.append((hold[v,j],-1.0))
                            tm+=[(f[e,j],-1.0) for e in L if e[0]==v and (e,j) in f]
                    if j==m and v==t: tm.append((x,-1.0))
                    lp.eq(tm,0.0)
            if K is not None:
                for e in L:
                    if e[0]!=root and (e,0) in f: lp.le([(f[e,0],1.0)],0.0)
        for (e,j),xx in g.items():
            phys=(e[1],e[0]) if reverse else e
            load[cls(phys),(order[j] if K is not None else 0)].append((xx,1.0))
    for r in roots:
        if K is None:
            x=lp.var(); tot.append((x,1.0)); tree(r,x,[0],False); tree(r,x,[0],True)
        else:
            for k in range(1,K):
                x=lp.var(); tot.append((x,1.0))
                tree(r,x,range(0,k),True); tree(r,x,range(k,K),False)
    # raw exchange: every active multicasts its own raw data (all-gather), local reduce
    x=lp.var(); tot.append((x,1.0))
    # by symmetry one representative source, load times A
    sub={(c,k):[] for c in cap for k in range(S)}
    old=load; load=sub
    tree(0,x,[0] if K is None else range(K),False)
    load=old
    for key,t in sub.items(): load[key]+=[(i,a*A) for i,a in t]
    lp.eq(tot,1.0)
    for (c,k),t in load.items():
        if t: lp.le(t+[(T[k],-cap[c])],0.0)
    f,xs=lp.solve()
    return (f,xs,T) if ret else f

def direct(coll,A):
    return 2.0/A if coll=='AR' else 1.0
