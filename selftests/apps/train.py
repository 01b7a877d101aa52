#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Data-parallel training of a small classifier: numpy computes, MPI adds the gradients of the ranks.

    mpirun -np N [options] python3 train.py      N processes, each with 1/N of every batch
    python3 train.py --shards N                  one process that computes the same N parts one after the other

Prints one line a step: its number, the loss, and the loss bit by bit (float.hex). Data and start values come from a fixed
seed, so two runs can be compared by cmp. With N = 2 the lines are equal: both runs add the same two gradients, and a + b
and b + a round to the same bits. With more parts MPI may group the additions otherwise, which changes the last digits.
"""
import argparse
import numpy as np

FEATURES, HIDDEN, CLASSES, BATCH, RATE = 128, 512, 10, 32, 0.1


def data(steps, seed=1):
    """Points around one random centre for each class."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(CLASSES, FEATURES))
    labels = rng.integers(CLASSES, size=(steps, BATCH))
    return centres[labels] + 2 * rng.normal(size=(steps, BATCH, FEATURES)), labels


class Model:
    """Two layers, ReLU between them, softmax at the end. All weights are views of one flat array, as is the gradient."""
    SHAPES = [(FEATURES, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,)]
    SIZE = sum(int(np.prod(s)) for s in SHAPES)

    def __init__(self, seed=2):
        self.flat = np.random.default_rng(seed).normal(size=self.SIZE) * 0.05

    @classmethod
    def views(cls, flat):
        at = 0
        for shape in cls.SHAPES:
            n = int(np.prod(shape))
            yield flat[at:at + n].reshape(shape)
            at += n

    def gradient(self, x, y):
        """Sums over the points, not means, so that parts of a batch can be added: the loss is the last element."""
        w1, b1, w2, b2 = self.views(self.flat)
        out = np.zeros(self.SIZE + 1)
        g1, h1, g2, h2 = self.views(out[:-1])
        pre = x @ w1 + b1
        act = np.maximum(pre, 0)
        scores = act @ w2 + b2
        scores -= scores.max(axis=1, keepdims=True)
        p = np.exp(scores)
        p /= p.sum(axis=1, keepdims=True)
        rows = np.arange(len(y))
        out[-1] = -np.log(p[rows, y]).sum()
        p[rows, y] -= 1
        g2[:] = act.T @ p
        h2[:] = p.sum(axis=0)
        back = (p @ w2.T) * (pre > 0)
        g1[:] = x.T @ back
        h1[:] = back.sum(axis=0)
        return out


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--shards", type=int, default=0, help="one process, no MPI: compute so many parts of each batch")
    options.add_argument("--steps", type=int, default=40)
    a = options.parse_args()
    comm = None
    if not a.shards:
        from mpi4py import MPI
        comm = MPI.COMM_WORLD
    parts = a.shards or comm.size
    if BATCH % parts:
        raise SystemExit(f"{BATCH} points a batch cannot be divided by {parts}")
    each = BATCH // parts
    model = Model()
    xs, ys = data(a.steps)
    for step in range(a.steps):
        def part(n):
            points = slice(n * each, (n + 1) * each)
            return model.gradient(xs[step, points], ys[step, points])
        if comm:
            total = part(comm.rank)
            comm.Allreduce(MPI.IN_PLACE, total)
        else:
            total = part(0)
            for n in range(1, parts):
                total += part(n)
        total /= BATCH
        model.flat -= RATE * total[:-1]
        if not comm or comm.rank == 0:
            print(step, f"{total[-1]:.6f}", float(total[-1]).hex(), flush=True)
    # Every rank must have the same weights, to the last bit: each received the same sums.
    if comm and len(set(comm.allgather(model.flat.tobytes()))) != 1:
        raise SystemExit("the ranks ended with different weights")


if __name__ == "__main__":
    main()
