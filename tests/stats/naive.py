"""The formulas of the tests, written as plainly as they stand."""

import numpy as np


def mmd_u(K, first):
    """MMD^2_U by double loops; `first` says which rows belong to the first sample."""
    N, total = len(K), {True: 0.0, False: 0.0, None: 0.0}
    for i in range(N):
        for j in range(N):
            if first[i] != first[j]:
                total[None] += K[i, j]
            elif i != j:
                total[bool(first[i])] += K[i, j]
    m = int(np.sum(first))
    n = N - m
    return total[True] / (m * (m - 1)) + total[False] / (n * (n - 1)) - total[None] / (m * n)


def mmd_v(K, first):
    N, value = len(K), 0.0
    m = int(np.sum(first))
    for i in range(N):
        for j in range(N):
            a = 1 / m if first[i] else -1 / (N - m)
            b = 1 / m if first[j] else -1 / (N - m)
            value += a * b * K[i, j]
    return value


def hsic_v(K, L):
    n = len(K)
    H = np.eye(n) - 1 / n
    return np.trace(K @ H @ L @ H) / n**2


def hsic_u(K, L):
    """By the definition over all pairs, triples and quadruples of different rows."""
    import itertools

    n = len(K)
    pairs = np.mean([K[i, j] * L[i, j] for i, j in itertools.permutations(range(n), 2)])
    quads = np.mean([K[i, j] * L[q, r] for i, j, q, r in itertools.permutations(range(n), 4)])
    triples = np.mean([K[i, j] * L[i, q] for i, j, q in itertools.permutations(range(n), 3)])
    return pairs + quads - 2 * triples
