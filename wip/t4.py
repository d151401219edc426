import sys; sys.path.insert(0,'/tmp/proto'); import warnings; warnings.filterwarnings('ignore')
from data import *; import time
from proto import ll
from gaussfold.engine.softmax.independent import *
from gaussfold.expectations.quasi_random import *
from sklearn.linear_model import LogisticRegression
from sklearn.datasets import load_digits
import gaussfold as gf, numba
from numba import njit
import scipy.sparse as sp
@njit
def diag(indptr,indices,data,y,K,d,std,nodes,form):
    M=np.zeros((d,K)); V=np.full((d,K),std*std); n=y.size
    m=np.empty(K);v=np.empty(K);pr=np.empty(K);gr=np.empty(K);work=np.empty((K+2,nodes.shape[1]));small=np.empty((8,K)); lp=np.empty(n)
    for i in range(n):
        m[:]=0;v[:]=0
        for q in range(indptr[i],indptr[i+1]):
            j=indices[q];x=data[q]
            for c in range(K): m[c]+=x*M[j,c]; v[c]+=x*x*V[j,c]
        lp[i]=independent_site(m,v,y[i],1.,nodes,work,small,pr,gr)
        for q in range(indptr[i],indptr[i+1]):
            j=indices[q];x=data[q]
            for c in range(K):
                M[j,c]+=x*V[j,c]*gr[c]
                if form==0: V[j,c]*=(1+pr[c]*(v[c]-x*x*V[j,c]))/(1+pr[c]*v[c])
                else: V[j,c]/=1+x*x*pr[c]*V[j,c]
    return M,V,lp
def texts(rng,K=8,d=5000,n=6000):
    topics=rng.dirichlet(np.full(d,.02),size=K+1)
    y=rng.integers(0,K,n); rows=[]
    for i in range(n):
        L=rng.poisson(20)+3
        w=rng.choice(d,size=L,p=.5*topics[y[i]]+.5*topics[K])
        rows.append(np.unique(w))
    ptr=np.r_[0,np.cumsum([len(r) for r in rows])]; idx=np.concatenate(rows)
    return sp.csr_matrix((np.ones(len(idx)),idx,ptr),shape=(n,d)),y
if __name__=='__main__':
    rng=np.random.default_rng(0)
    D=sets(); cases={k:(sp.csr_matrix(np.c_[(X-X.mean(0))/(X.std(0)+1e-9),np.ones(len(X))]),y) for k,(X,y) in D.items()}
    cases['text8']=texts(rng); cases['text20']=texts(rng,20,20000,8000)
    for name,(X,y) in cases.items():
        K=y.max()+1; n=len(y); per=rng.permutation(n); X=X[per];y=y[per]; h=int(n*.7)
        A,a,B,b=X[:h],y[:h],X[h:],y[h:]; out={}
        for std in (.3,1.):
            Z=normal_nodes(K,enough_nodes(K,64))
            for form in (0,1):
                t=time.process_time()
                M,V,lp=diag(A.indptr,A.indices,A.data,a,K,A.shape[1],std,Z,form); t=time.process_time()-t
                m=B@M; v=B.multiply(B)@V; P=np.empty(m.shape); zz=normal_nodes(K,enough_nodes(K,512))
                for i in range(len(b)):
                    F=m[i][:,None]+np.sqrt(v[i])[:,None]*zz; F=np.exp(F-F.max(0)); P[i]=(F/F.sum(0)).mean(1)
                out[f'{std} form{form}']=(round(ll(P,b),4),round(-lp.mean(),4))
            for coupling in ('marginal','joint'):
                c=gf.StreamingClassifier(covariance='diagonal',coupling=coupling,prior_std=std,fit_intercept=False,rule='newton' if coupling=='marginal' else 'vi').fit(A,a)
                P=np.zeros((len(b),K)); P[:,c.classes_]=c.predict_proba(B)
                out[f'{std} ovr {coupling}']=(round(ll(P,b),4),round(c.progressive_log_loss_,4))
        print(name,out,flush=True)
