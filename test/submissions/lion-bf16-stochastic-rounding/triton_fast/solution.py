"""Whole blocks without a mask, so that all accesses are of 16 bytes whatever N is, and one masked block for what is left."""
import torch
import triton
import triton.language as tl


@triton.jit
def step(P, m, G, rnd, first, N, b1, b2, lr, wd, BLOCK: tl.constexpr, TAIL: tl.constexpr):
    i = first + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if TAIL:
        inside = i < N
        p = tl.load(P + i, mask=inside, other=0)
        old = tl.load(m + i, mask=inside, other=0)
        g = tl.load(G + i, mask=inside, other=0)
        bits = tl.load(rnd + i, mask=inside, other=0)
    else:
        p = tl.load(P + i)
        old = tl.load(m + i)
        g = tl.load(G + i)
        bits = tl.load(rnd + i)
    p = (p.to(tl.int32) << 16).to(tl.float32, bitcast=True)
    old = old.to(tl.float32)
    g = g.to(tl.float32)
    c = b1 * old + (1 - b1) * g
    sign = tl.where(c > 0, 1.0, tl.where(c < 0, -1.0, 0.0))
    q = p * (1 - lr * wd) - lr * sign
    rounded = ((q.to(tl.int32, bitcast=True) + (bits.to(tl.int32) & 0xFFFF)) >> 16).to(tl.int16)
    new = (b2 * old + (1 - b2) * g).to(tl.bfloat16)
    if TAIL:
        tl.store(P + i, rounded, mask=inside)
        tl.store(m + i, new, mask=inside)
    else:
        tl.store(P + i, rounded)
        tl.store(m + i, new)


def kbench_run(N, b1, b2, lr, wd, P, m, G, rnd):
    block = 2048
    whole = N // block
    P, rnd = P.view(torch.int16), rnd.view(torch.int16)
    if whole:
        step[(whole,)](P, m, G, rnd, 0, N, b1, b2, lr, wd, BLOCK=block, TAIL=False, num_warps=4)
    if N % block:
        step[(1,)](P, m, G, rnd, whole * block, N, b1, b2, lr, wd, BLOCK=block, TAIL=True, num_warps=4)
