"""A program some rows of all partials, unrolled so that their loads are under way together. What an empty partial holds is
not read at all: its v is masked."""
import triton
import triton.language as tl


@triton.jit
def merge(v, lse, o, out_lse, heads, D: tl.constexpr, S: tl.constexpr, STATES: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    state = tl.arange(0, STATES)
    inside = row < heads
    at = state[:, None] * heads + row[None, :]
    scores = tl.load(lse + at, mask=(state < S)[:, None] & inside[None, :], other=float("-inf"))
    top = tl.max(scores, axis=0)
    base = tl.where(top == float("-inf"), 0.0, top)  # of rows without any partial: exp(-inf - 0) is 0
    total = tl.sum(tl.exp(scores - base[None, :]), axis=0)
    tl.store(out_lse + row, tl.where(total > 0, base + tl.log(total), float("-inf")), mask=inside)

    d = tl.arange(0, WIDTH)
    wide = row.to(tl.int64)
    whole = d < D
    sums = tl.zeros((ROWS, WIDTH), dtype=tl.float32)
    for s in tl.static_range(S):
        score = tl.load(lse + s * heads + row, mask=inside, other=float("-inf"))
        values = tl.load(v + (wide + s * heads)[:, None] * D + d[None, :], mask=(score != float("-inf"))[:, None] & whole[None, :], other=0)
        sums += tl.exp(score - base)[:, None] * values.to(tl.float32)
    total = tl.where(total > 0, total, 1.0)
    tl.store(o + wide[:, None] * D + d[None, :], (sums / total[:, None]).to(tl.bfloat16), mask=inside[:, None] & whole[None, :])


def kbench_run(S, NT, H, D, v, lse, o, out_lse):
    rows = 16
    merge[(triton.cdiv(NT * H, rows),)](v, lse, o, out_lse, NT * H, D=D, S=S, STATES=triton.next_power_of_2(S), ROWS=rows,
                                        WIDTH=triton.next_power_of_2(D), num_warps=4)
