"""All-reduce by MLX's ring."""

import mlx.core as mx

from measure import SIZES, measure, runs

mx.set_default_device(mx.cpu)
group = mx.distributed.init(strict=True, backend="ring")
for size in SIZES:
    x = mx.zeros((size // 4,))
    mx.eval(x)
    measure(f"all_reduce/{size}", "-", *runs(size), lambda: mx.eval(mx.distributed.all_sum(x, stream=mx.cpu)))
