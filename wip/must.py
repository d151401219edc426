import sys; sys.path.insert(0,'/tmp/proto'); import warnings; warnings.filterwarnings('ignore')
import numpy as np, time, gaussfold as gf
print(gf.__file__)
from data import sets, split
from t4 import texts
from gaussfold.expectations.quasi_random import normal_nodes, enough_nodes
from gaussfold.likelihoods import Softmax
from sklearn.linear_model import LogisticRegression
from scipy.special import log_softmax
import scipy.sparse as sp
def ll(p,y): return float(-np.log(np.maximum(p[np.arange(len(y)),y],1e-300)).mean())
def proba(m,s):
    K=m.shape[1]; z=normal_nodes(K,enough_nodes(K,1024)); out=np.empty(m.shape)
    for i in range(len(m)):
        f=m[i][:,None]+(np.sqrt(s[i])[:,None]*z if s.ndim==2 else np.linalg.cholesky(s[i]+1e-12*np.eye(K))@z)
        out[i]=np.exp(log_softmax(f,axis=0)).mean(1)
    return out
def start(kind,K,std):
    if kind=='joint': return gf.DenseGaussian.independent(np.zeros(K*len(std)),np.tile(std,K))
    if kind=='block': return gf.BlockGaussian([gf.DenseGaussian.independent(np.zeros(len(std)),std) for _ in range(K)])
    return gf.DiagonalBlocks(np.zeros((K,len(std))),np.tile(std**2,(K,1)))
def run(kind,A,a,B,b,K,std):
    q=start(kind,K,std); gf.fold(q,Softmax(K),A,a.astype(float)); return ll(proba(*q.class_marginals(B,K)),b)
def ovr(A,a,B,b,K,cov,ist):
    c=gf.StreamingClassifier(scale=False,prior_std=1.,intercept_std=ist,covariance=cov).fit(A[:,:-1],a,refine=0)
    P=np.zeros((len(b),K)); P[:,c.classes_]=c.predict_proba(B[:,:-1]); return ll(P,b)
which=sys.argv[1]
if which=='loss':
    D=sets()
    for name,(X,y) in D.items():
        K=y.max()+1; R={}
        for seed in range(10 if name=='digits' else 5 if K<30 else 2):
            A,a,B,b=split(X,y,seed+100); std=np.ones(A.shape[1]); std[-1]=10
            put=lambda k,v:R.setdefault(k,[]).append(v)
            lr=LogisticRegression(max_iter=2000).fit(A[:,:-1],a); P=np.zeros((len(b),K)); P[:,lr.classes_]=lr.predict_proba(B[:,:-1]); put('LR',ll(P,b))
            put('ovr full',ovr(A,a,B,b,K,'full',10.)); put('block',run('block',A,a,B,b,K,std))
            if K*len(std)<=210: put('joint',run('joint',A,a,B,b,K,std))
            put('ovr diag',ovr(A,a,B,b,K,'diagonal',10.)); put('diag',run('diagonal',A,a,B,b,K,std))
        print(name,X.shape,{k:round(float(np.mean(v)),4) for k,v in R.items()},'block worse than ovr in',sum(x>z for x,z in zip(R['block'],R['ovr full'])),'of',len(R['block']),'; diag worse in',sum(x>z for x,z in zip(R['diag'],R['ovr diag'])),flush=True)
    rng=np.random.default_rng(77)
    for K,d,n in ((8,5000,6000),(20,20000,8000)):
        X,y=texts(rng,K,d,n); h=int(.7*n); q=gf.DiagonalBlocks.isotropic(K,d,1.); gf.fold(q,Softmax(K),X[:h],y[:h].astype(float))
        c=gf.StreamingClassifier(covariance='diagonal',prior_std=1.,fit_intercept=False,scale=False).fit(X[:h],y[:h],refine=0)
        print('simulated text',K,'diag softmax',round(ll(proba(*q.class_marginals(X[h:],K)),y[h:]),4),'ovr',round(ll(c.predict_proba(X[h:]),y[h:]),4),flush=True)
if which=='speed':
    rng=np.random.default_rng(0); n=20000; X=rng.normal(size=(n,64)); W=rng.normal(size=(10,64))*.3; y=(X@W.T+rng.gumbel(size=(n,10))).argmax(1).astype(float)
    gf.fold(gf.BlockGaussian.isotropic(10,64),Softmax(10),X[:10],y[:10])
    best=min((lambda t:(gf.fold(gf.BlockGaussian.isotropic(10,64),Softmax(10),X,y),time.process_time()-t)[1])(time.process_time()) for _ in range(3))
    print('block 10x64 rows per second of processor time',round(n/best))
if which=='cover':
    for K,d,n,kind in ((3,5,500,'joint'),(5,8,1000,'joint'),(10,10,2000,'joint'),(3,5,500,'block'),(5,8,1000,'block'),(10,10,2000,'block'),(10,10,2000,'diag')):
        raw=[];cen=[];pc=[]
        for seed in range(10):
            rng=np.random.default_rng(1000+seed); W=rng.normal(size=(K,d)); X=rng.normal(size=(n+50,d)); y=(X@W.T+rng.gumbel(size=(n+50,K))).argmax(1).astype(float)
            q=start('diagonal' if kind=='diag' else kind,K,np.ones(d)); gf.fold(q,Softmax(K),X[:n],y[:n])
            m=q.mean.reshape(K,d); s=np.sqrt(q.variance()).reshape(K,d); raw.append(np.mean(np.abs(m-W)<1.645*s))
            S=q.sample(4000,rng).reshape(4000,K,d); C=S-S.mean(1,keepdims=True); lo,hi=np.quantile(C,[.05,.95],axis=0); T=W-W.mean(0); cen.append(np.mean((T>lo)&(T<hi)))
            P=np.exp(log_softmax(np.einsum('skd,nd->snk',S[:1500],X[n:]),axis=2)); lo,hi=np.quantile(P,[.05,.95],axis=0); t=np.exp(log_softmax(X[n:]@W.T,axis=1)); pc.append(np.mean((t>lo)&(t<hi)))
        print(kind,K,d,n,'weights',round(np.mean(raw),3),'centred weights',round(np.mean(cen),3),'probabilities',round(np.mean(pc),3),flush=True)
