"""Textbook Kalman filter and Rauch-Tung-Striebel smoother, matrices inverted where the textbook inverts them."""

import numpy as np


def smooth(A, Q, H, m0, P0, precision, shift):
    """A[n], Q[n] lead to row n (row 0 starts at m0, P0). Sites must be invertible.

    Returns log Z with unnormalised sites exp(-f'Λf/2 + λ'f), and the smoothed mean and covariance of every state.
    """
    N = len(shift)
    filtered, predicted = [], []
    log_z = 0.0
    m, P = m0, P0
    for n in range(N):
        if n > 0:
            m, P = A[n] @ m, A[n] @ P @ A[n].T + Q[n]
        predicted.append((m, P))
        R = np.linalg.inv(precision[n])
        y = R @ shift[n]
        V = H @ P @ H.T + R
        gain = P @ H.T @ np.linalg.inv(V)
        e = y - H @ m
        log_z += -0.5 * (e @ np.linalg.solve(V, e) + np.linalg.slogdet(2.0 * np.pi * V)[1])
        log_z += 0.5 * (y @ precision[n] @ y + np.linalg.slogdet(2.0 * np.pi * R)[1])  # the site's own normaliser
        m, P = m + gain @ e, P - gain @ V @ gain.T
        filtered.append((m, P))
    means, covs = [filtered[-1][0]], [filtered[-1][1]]
    for n in range(N - 2, -1, -1):
        m, P = filtered[n]
        ahead_m, ahead_P = predicted[n + 1]
        G = P @ A[n + 1].T @ np.linalg.inv(ahead_P)
        means.insert(0, m + G @ (means[0] - ahead_m))
        covs.insert(0, P + G @ (covs[0] - ahead_P) @ G.T)
    return log_z, np.array(means), np.array(covs)
