# SPDX-License-Identifier: BSD-3-Clause
"""Explicit schedules + verifier. A schedule is: list of stages, stage = list of (src,dst,size,key,contrib) where
 key = data block id, contrib = frozenset of contributing ranks (for reductions) ; verified with exact Fractions."""
from fractions import Fraction as F
from collections import defaultdict

def verify(n,stages,init,goal,reduce=False):
    """init: dict rank->{key:set(contrib)}; goal: dict rank->{key: contrib}. returns stage durations."""
    have={r:defaultdict(set) for r in range(n)}      # key -> set of frozenset contribs held
    for r,d in init.items():
        for k,c in d.items(): have[r][k].add(frozenset(c))
    dur=[];nops=[]
    def can(r,key,contrib):
        # r can form `contrib` as disjoint union of held partial sums
        hs=list(have[r][key]); contrib=frozenset(contrib)
        if contrib in hs: return True
        def rec(rem):
            if not rem: return True
            return any(h and h<=rem and rec(rem-h) for h in hs)
        return rec(contrib)
    for st in stages:
        load=defaultdict(F); new=[]; ops=defaultdict(set)
        for (s,d,size,key,contrib) in st:
            assert s!=d and can(s,key,contrib),('missing',s,d,key,contrib)
            load[s,d]+=size; new.append((d,key,frozenset(contrib))); ops[s].add((d,key))
        for d,k,c in new: have[d][k].add(c)
        dur.append(max(load.values()) if load else F(0)); nops.append(max((len(o) for o in ops.values()),default=0))
    for r,d in goal.items():
        for k,c in d.items(): assert can(r,k,c),('goal',r,k,c)
    return dur,nops

def report(name,direct,dur,nops): print('%-46s T=%-9s speedup=%.4f  K=%d  max sends/rank/stage=%d'%(name,sum(dur),float(direct/sum(dur)),len(dur),max(nops)))

# ---------- A=2 SINGLE exchange (AG/A2A/RS/..) and allreduce, K stages --------------------
def a2(n,K,ar):
    H=n-2; c=F(1,K+H*(K-1)); S=[[] for _ in range(K)]; init={0:{},1:{}}; goal={0:{},1:{}}
    full={0,1}
    for k in range(K):                         # direct chunk k
        for a in (0,1):
            o=1-a
            key=('d',k) if ar else ('d',a,k)
            S[k].append((a,o,c,key,{a})); init[a][key]={a}
            goal[o][key]=full if ar else {a}
            if ar: goal[a][key]=full
    for k in range(K-1):
        for h in range(2,n):
            for a in (0,1):
                o=1-a; key=('r',h,k) if ar else ('r',a,h,k)
                S[k].append((a,h,c,key,{a})); init[a][key]={a}
                S[k+1].append((h,o,c,key,full if ar else {a}))
                goal[o][key]=full if ar else {a}
    return verify(n,S,init,goal)

# ---------- A-active SINGLE allreduce, K stages: speed 1+2H/A-2H/(AK) -----------------------
def ar(n,A,K):
    H=n-A; t=F(1,1)/(H*(K-1)+F(A*K,2)); act=range(A); full=set(act)
    S=[[] for _ in range(K)]; init={a:{} for a in act}; goal={a:{} for a in act}
    for k in range(K-1):
        for h in range(A,n):
            key=('o',h,k)
            for a in act:
                S[k].append((a,h,t,key,{a})); S[k+1].append((h,a,t,key,full)); init[a][key]={a}; goal[a][key]=full
    # direct pieces p=0..K-1 of size t/2 per (owner): RS of piece 0,1 in stage 0, piece k+1 in stage k ; AG of piece k-1 in stage k, last stage two
    def rs(k): return [0,1] if k==0 else ([k+1] if k+1<K else [])
    def ag(k): return [] if k==0 else ([k-1] if k<K-1 else [K-2,K-1])
    for k in range(K):
        for p in rs(k):
            for o in act:
                key=('x',o,p)
                for a in act:
                    init[a][key]={a}; goal[a][key]=full
                    if a!=o: S[k].append((a,o,t/2,key,{a}))
        for p in ag(k):
            for o in act:
                key=('x',o,p)
                for a in act:
                    if a!=o: S[k].append((o,a,t/2,key,full))
    return verify(n,S,init,goal)

# ---------- A-active SINGLE allgather, geometric stages; reduce-scatter = time reverse ------------
def ag(n,A,K,rev=False):
    H=n-A; g=A-1
    dur=[F(g**k) for k in range(K)]; tot=sum(dur); rel=sum(dur[:-1])      # up in stages 0..K-2 ; down next stage
    unit=1/(tot+H*rel); S=[[] for _ in range(K)]
    init={a:{} for a in range(A)}; goal={a:{} for a in range(A)}
    for a in range(A):
        for k in range(K):
            key=('d',a,k); init[a][key]={a}
            for b in range(A):
                if b!=a: S[k].append((a,b,dur[k]*unit,key,{a})); goal[b][key]={a}
            if k<K-1:
                for h in range(A,n):
                    key=('r',a,h,k); init[a][key]={a}
                    S[k].append((a,h,dur[k]*unit,key,{a}))
                    for b in range(A):
                        if b!=a: S[k+1].append((h,b,dur[k]*unit,key,{a})); goal[b][key]={a}
    if not rev: return verify(n,S,init,goal)
    # reverse: block owner a; contributions of all b; helper sums A-1 then sends one
    R=[[] for _ in range(K)]; init={b:{} for b in range(A)}; goal={a:{} for a in range(A)}
    for k in range(K):
        for (s,d,size,key,c) in S[k]:
            a=key[1]
            if key[0]=='d': contrib={d}                       # d->s raw contribution
            else: contrib={d} if s>=A else {b for b in range(A) if b!=a}
            R[K-1-k].append((d,s,size,key,contrib))
            for b in range(A): init[b][key]={b}
            goal[a][key]=set(range(A))
    return verify(n,R,init,goal)

# ---------- A-active SINGLE all-to-all, K uniform stages ----------------------------------------
def a2a_single(n,A,K):
    H=n-A; t=F(1)/(K+F(H*(K-1),A-1)); S=[[] for _ in range(K)]; init={a:{} for a in range(A)}; goal={a:{} for a in range(A)}
    for a in range(A):
        for b in range(A):
            if a==b: continue
            for k in range(K):
                key=('d',a,b,k); init[a][key]={a}; goal[b][key]={a}; S[k].append((a,b,t,key,{a}))
                if k<K-1:
                    for h in range(A,n):
                        key=('r',a,b,h,k); init[a][key]={a}; goal[b][key]={a}
                        S[k].append((a,h,t/(A-1),key,{a})); S[k+1].append((h,b,t/(A-1),key,{a}))
    return verify(n,S,init,goal)

# ---------- FUSED all-to-all, 2 stages: relay fraction over all H helpers ----------------------------
def a2a_fused(n,A,K=2):
    G=[list(range(g*A,(g+1)*A)) for g in range(n//A)]; H=n-A
    t=F(1)/(K+F(H,2*(A-1))*K) ; # per-stage duration
    r=t*K/2/(A-1)             # per (src,dst,helper) relayed amount; up total per link (A-1)*r = K t/2
    S=[[] for _ in range(K)]; init=defaultdict(dict); goal=defaultdict(dict)
    # K even: up in even stages, down in odd stages (both duties share the link, so no benefit from K>2)
    m=K//2
    for g in G:
        for a in g:
            for b in g:
                if a==b: continue
                for k in range(K):
                    key=('d',a,b,k); init[a][key]={a}; goal[b][key]={a}; S[k].append((a,b,t,key,{a}))
                for h in range(n):
                    if h in g: continue
                    for j in range(m):
                        key=('r',a,b,h,j); init[a][key]={a}; goal[b][key]={a}
                        S[2*j].append((a,h,r/m,key,{a})); S[2*j+1].append((h,b,r/m,key,{a}))
    return verify(n,S,init,goal)

def xor_a4():
    p=[0,2,3,1]; S=[[],[]]; init=defaultdict(dict); goal=defaultdict(dict); x=F(1,3)
    for g in (0,1):
        act=[4*g+i for i in range(4)]; hel=[4*(1-g)+i for i in range(4)]
        for s in range(4):
            for d in range(4):
                if s==d: continue
                a,b,h=act[s],act[d],hel[s^p[d]]
                for k in (0,1): S[k].append((a,b,x,('d',a,b,k),{a})); init[a]['d',a,b,k]={a}; goal[b]['d',a,b,k]={a}
                S[0].append((a,h,x,('r',a,b),{a})); S[1].append((h,b,x,('r',a,b),{a})); init[a]['r',a,b]={a}; goal[b]['r',a,b]={a}
    return verify(8,S,init,goal)

# ---------- broadcast, K stages ---------------------------------------------------------------------
def bc_single(n,A,K):
    t=F(1,(n-1)*(K-1)+1); S=[[] for _ in range(K)]; init={0:{}}; goal={a:{} for a in range(1,A)}
    for k in range(K-1):
        for r in range(1,n):
            key=(r,k); init[0][key]={0}; S[k].append((0,r,t,key,{0}))
            for a in range(1,A):
                goal[a][key]={0}
                if a!=r: S[k+1].append((r,a,t,key,{0}))
    key='last'; init[0][key]={0}
    for a in range(1,A): S[K-1].append((0,a,t,key,{0})); goal[a][key]={0}
    return verify(n,S,init,goal)
def bc_fused(n,A,K):
    G=[list(range(g*A,(g+1)*A)) for g in range(n//A)]; roots=[g[0] for g in G]
    t=F(1,(2*A-2)*(K-1)+2); S=[[] for _ in range(K)]; init=defaultdict(dict); goal=defaultdict(dict)
    assert len(G)==2
    for gi,g in enumerate(G):
        r=g[0]; o=G[1-gi]; rel=g[1:]+o[1:]
        def put(x,key,k):
            init[r][key]={r}; S[k].append((r,x,t,key,{r}))
            for a in g[1:]:
                goal[a][key]={r}
                if a!=x: S[k+1].append((x,a,t,key,{r}))
        for k in range(K-1):
            for x in rel: put(x,(r,x,k),k)
        put(o[0],(r,o[0],'R'),K-2)
        key=(r,'last'); init[r][key]={r}
        for a in g[1:]: S[K-1].append((r,a,t,key,{r})); goal[a][key]={r}
    return verify(n,S,init,goal)

# ---------- S0: FUSED, equal counts, groups of A that cover all ranks, two stages (up, then down) ----------------
def fused(coll,n,A):
    G=[list(range(g*A,(g+1)*A)) for g in range(n//A)]; S=[[],[]]; init=defaultdict(dict); goal=defaultdict(dict); u=F(1,n)
    for g in G:
        hs=[h for h in range(n) if h not in g]; full=set(g)
        if coll=='AR':
            for h in hs:
                k=('o',g[0],h)
                for a in g: S[0].append((a,h,u,k,{a})); S[1].append((h,a,u,k,full)); init[a][k]={a}; goal[a][k]=full
            for o in g:
                k=('x',o)
                for a in g:
                    init[a][k]={a}; goal[a][k]=full
                    if a!=o: S[0].append((a,o,u,k,{a})); S[1].append((o,a,u,k,full))
            continue
        for a in g:                                  # all-gather: a is the source; reduce-scatter: a is the owner, time reversed
            for st,size in ((0,u),(1,(A-1)*u)):
                k=('d',a,st)
                for b in g:
                    if b==a: continue
                    if coll=='AG': S[st].append((a,b,size,k,{a})); init[a][k]={a}; goal[b][k]={a}
                    else: S[1-st].append((b,a,size,k,{b})); init[b][k]={b}; init[a][k]={a}; goal[a][k]=full
            for h in hs:
                k=('r',a,h)
                if coll=='AG':
                    init[a][k]={a}; S[0].append((a,h,u,k,{a}))
                    for b in g:
                        if b!=a: S[1].append((h,b,u,k,{a})); goal[b][k]={a}
                else:
                    init[a][k]={a}; goal[a][k]=full; S[1].append((h,a,u,k,full-{a}))
                    for b in g:
                        if b!=a: init[b][k]={b}; S[0].append((b,h,u,k,{b}))
    return verify(n,S,init,goal)

if __name__=='__main__':
    for K in (2,3,4,8,16): report('A=2 SINGLE exchange (AG/RS/A2A) n=8 K=%d'%K,F(1),*a2(8,K,False))
    for K in (2,4,8): report('A=2 SINGLE allreduce n=8 K=%d'%K,F(1),*a2(8,K,True))
    for K in (2,3,4,8,16): report('A=4 SINGLE allreduce n=8 K=%d'%K,F(1,2),*ar(8,4,K))
    for K in (2,4,8): report('A=3 SINGLE allreduce n=8 K=%d'%K,F(2,3),*ar(8,3,K))
    for K in (2,3,4): report('A=4 SINGLE allgather n=8 K=%d'%K,F(1),*ag(8,4,K)); report('A=4 SINGLE reduce-scatter n=8 K=%d'%K,F(1),*ag(8,4,K,True))
    for K in (2,3): report('A=3 SINGLE allgather n=8 K=%d'%K,F(1),*ag(8,3,K))
    for K in (2,3,4,8,16): report('A=4 SINGLE all-to-all n=8 K=%d'%K,F(1),*a2a_single(8,4,K))
    report('A=4 FUSED all-to-all n=8 K=2 (4 helpers)',F(1),*a2a_fused(8,4)); report('A=4 FUSED all-to-all XOR',F(1),*xor_a4())
    report('A=2 FUSED all-to-all n=8 K=2',F(1),*a2a_fused(8,2))
    for K in (2,4,8): report('A=4 SINGLE broadcast K=%d'%K,F(1),*bc_single(8,4,K)); report('A=4 FUSED broadcast K=%d'%K,F(1),*bc_fused(8,4,K))
    for n in (4,6,8):
        for A in (2,3,4):
            if n%A==0 and A<n:
                report('S0 FUSED allreduce n=%d A=%d'%(n,A),F(2,A),*fused('AR',n,A)); report('S0 FUSED all-gather n=%d A=%d'%(n,A),F(1),*fused('AG',n,A)); report('S0 FUSED reduce-scatter n=%d A=%d'%(n,A),F(1),*fused('RS',n,A))
