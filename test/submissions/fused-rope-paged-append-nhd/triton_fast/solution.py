"""A program some heads of one token, as two halves that are rotated against each other. Whether a head is of q, k or v says
where it goes, and a mask for each says whether."""
import triton
import triton.language as tl


@triton.jit
def heads_of_a_token(qkv, pos, cs, slot, pages, qo, Hq, Hk, BS, HALF: tl.constexpr, WIDTH: tl.constexpr, HEADS: tl.constexpr):
    n = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    i = tl.arange(0, WIDTH)
    whole = i < HALF
    is_q = h < Hq
    is_k = (h >= Hq) & (h < Hq + Hk)
    is_v = (h >= Hq + Hk) & (h < Hq + 2 * Hk)
    inside = (h < Hq + 2 * Hk)[:, None] & whole[None, :]
    at = (n * (Hq + 2 * Hk) + h)[:, None] * (2 * HALF) + i[None, :]
    low = tl.load(qkv + at, mask=inside, other=0)
    high = tl.load(qkv + at + HALF, mask=inside, other=0)
    row = tl.load(pos + n).to(tl.int64) * (2 * HALF) + i
    c = tl.load(cs + row, mask=whole, other=0)[None, :]
    s = tl.load(cs + row + HALF, mask=whole, other=0)[None, :]
    x = low.to(tl.float32)
    y = high.to(tl.float32)
    turned_low = (x * c - y * s).to(tl.bfloat16)
    turned_high = (y * c + x * s).to(tl.bfloat16)

    to = (n * Hq + h)[:, None] * (2 * HALF) + i[None, :]
    here = is_q[:, None] & whole[None, :]
    tl.store(qo + to, turned_low, mask=here)
    tl.store(qo + to + HALF, turned_high, mask=here)

    t = tl.load(slot + n).to(tl.int64)
    first = (t // BS * 2 * BS + t % BS) * Hk  # of k; v lies BS * Hk heads further
    to = (first + h - Hq)[:, None] * (2 * HALF) + i[None, :]
    here = (is_k & (t >= 0))[:, None] & whole[None, :]
    tl.store(pages + to, turned_low, mask=here)
    tl.store(pages + to + HALF, turned_high, mask=here)
    to = (first + BS * Hk + h - Hq - Hk)[:, None] * (2 * HALF) + i[None, :]
    here = (is_v & (t >= 0))[:, None] & whole[None, :]
    tl.store(pages + to, low, mask=here)
    tl.store(pages + to + HALF, high, mask=here)


def kbench_run(N, Hq, Hk, D, P, NB, BS, qkv, pos, cs, slot, pages, qo):
    half, heads = D // 2, 16
    heads_of_a_token[(N, triton.cdiv(Hq + 2 * Hk, heads))](qkv, pos, cs, slot, pages, qo, Hq, Hk, BS, HALF=half,
                                                           WIDTH=triton.next_power_of_2(half), HEADS=heads, num_warps=4)
