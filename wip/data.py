import numpy as np
from sklearn import datasets as ds
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
def sets():
    out={}
    for name in ('wine','iris','digits'):
        X,y=getattr(ds,'load_'+name)(return_X_y=True)
        out[name]=(X,y)
    rng=np.random.default_rng(5)
    for K,d,n,s in ((3,5,600,1.),(5,20,2000,.5),(10,10,3000,1.),(30,20,4000,.7),(100,20,6000,.5),(3,40,400,1.)):
        W=rng.normal(size=(K,d+1))*s; X=rng.normal(size=(2*n,d)); F=np.c_[X,np.ones(2*n)]@W.T
        y=(F+rng.gumbel(size=F.shape)).argmax(1); out[f'sim{K}x{d}']=(X,y)
    return out
def split(X,y,seed):
    A,B,a,b=train_test_split(X,y,test_size=.3,random_state=seed,stratify=y if np.bincount(y).min()>1 else None)
    s=StandardScaler().fit(A); 
    one=lambda X:np.c_[s.transform(X),np.ones(len(X))]
    return one(A),a,one(B),b
