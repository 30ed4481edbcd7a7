"""Functions that bench/import --functions times: small pieces of programs, in sizes that no table of ops has.

cases.py says what a file of this kind has.
"""
import torch
import torch.nn.functional as F

from cases import BF16, CASES, F16, F64, ints, rand, simple

# Selection and order.
simple("topk_64x50000_k50", lambda x: torch.topk(x, 50), lambda: rand(64, 50000))
simple("topk_3x250000_k5_smallest", lambda x: torch.topk(x, 5, largest=False), lambda: rand(3, 250000))
simple("sort_300x3001", lambda x: torch.sort(x, dim=1, descending=True, stable=True), lambda: rand(300, 3001))
simple("sort_columns_3001x77", lambda x: torch.sort(x, dim=0, stable=True), lambda: rand(3001, 77))
simple("argsort_i64_200000", lambda x: torch.argsort(x, stable=True), lambda: ints(1 << 40, 200000))
simple("median_rows_500x777", lambda x: x.median(dim=1), lambda: rand(500, 777))
simple("kthvalue_100x5003", lambda x: x.kthvalue(1234, dim=1), lambda: rand(100, 5003))
simple("argmax_columns_1500x700", lambda x: x.argmax(0), lambda: rand(1500, 700))
simple("quantile_of_sorted", lambda x: torch.sort(x.flatten())[0][::1000], lambda: rand(777, 999))

# Scans and reductions.
simple("cumsum_rows_700x3000", lambda x: x.cumsum(1), lambda: rand(700, 3000))
simple("cumsum_columns_3000x700", lambda x: x.cumsum(0), lambda: rand(3000, 700))
simple("cumsum_bf16_700x3000", lambda x: x.cumsum(1), lambda: rand(700, 3000, dtype=BF16))
simple("cumprod_f64_101x5000", lambda x: (1 + x * 1e-4).cumprod(1), lambda: rand(101, 5000, dtype=F64))
simple("logcumsumexp_200x2500", lambda x: x.logcumsumexp(1), lambda: rand(200, 2500))
simple("logsumexp_columns_1111x999", lambda x: x.logsumexp(0), lambda: rand(1111, 999))
simple("var_mean_all", lambda x: torch.var_mean(x), lambda: rand(1500, 1501))
simple("var_columns_2000x501", lambda x: x.var(0), lambda: rand(2000, 501))
simple("norm_rows_3000x301", lambda x: F.normalize(x, dim=1), lambda: rand(3000, 301))
simple("amax_middle_70x80x90", lambda x: x.amax(1), lambda: rand(70, 80, 90))
simple("sum_bool_i64", lambda x: (x > 0).sum(1), lambda: rand(900, 2100))
simple("any_all_1201x1999", lambda x: ((x > 3).any(0), (x > -4).all(1)), lambda: rand(1201, 1999))
simple("mean_bf16_channels", lambda x: x.mean((2, 3)), lambda: rand(16, 130, 33, 33, dtype=BF16))

# Pairwise distances, broadcasts and chains.
simple("distances_400x500x40", lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1), lambda: rand(400, 40), lambda: rand(500, 40))
simple("distances_l1_300x300x17", lambda a, b: (a[:, None] - b[None]).abs().sum(-1), lambda: rand(300, 17), lambda: rand(300, 17))
simple("nearest_of_1000x33", lambda a, b: torch.cdist(a, b).argmin(1), lambda: rand(1000, 33), lambda: rand(257, 33))
simple("gram_rbf_600x50", lambda a: torch.exp(-0.1 * torch.cdist(a, a) ** 2), lambda: rand(600, 50))
simple("outer_max_2000", lambda a, b: torch.maximum(a[:, None], b), lambda: rand(1999), lambda: rand(1001))
simple("chain_f64_sin_cos", lambda x: torch.sin(x) * torch.cos(2 * x) + x.exp(), lambda: rand(1000003, dtype=F64))
simple("chain_bf16_gelu", lambda x, b: F.gelu(x + b) * x, lambda: rand(800, 1500, dtype=BF16), lambda: rand(1500, dtype=BF16))
simple("chain_f16_silu", lambda x, y: F.silu(x) * y, lambda: rand(900, 1300, dtype=F16), lambda: rand(900, 1300, dtype=F16))
simple("gelu_tanh_1234567", lambda x: F.gelu(x, approximate="tanh"), lambda: rand(1234567))
simple("gelu_f32_1000x1001", lambda x: F.gelu(x), lambda: rand(1000, 1001))
simple("sin_f32_1000003", lambda x: torch.sin(x * 30), lambda: rand(1000003))
simple("mish_softplus", lambda x: F.mish(x) + F.softplus(x), lambda: rand(700, 1201))
simple("clamp_round_u8", lambda x: (x * 50 + 128).round().clamp(0, 255).to(torch.uint8), lambda: rand(3, 700, 1100))
simple("u8_to_normal", lambda x: (x.float() / 255 - 0.45) / 0.225, lambda: ints(256, 4, 3, 333, 500, dtype=torch.uint8))
simple("where_chain", lambda x, y: torch.where(x > y, x * 2, y.sqrt().nan_to_num()), lambda: rand(999, 1111), lambda: rand(999, 1111))
simple("i32_mod_xor", lambda x: (x % 7) ^ (x // 3), lambda: ints(1 << 20, 1000001, dtype=torch.int32))
simple("transposed_add", lambda x, y: x.t() + y, lambda: rand(1201, 903), lambda: rand(903, 1201))
simple("roll_difference", lambda x: x - torch.roll(x, (1, -1), (0, 1)), lambda: rand(1200, 1301))
simple("complex_magnitude", lambda a, b: torch.complex(a, b).abs(), lambda: rand(700, 1301), lambda: rand(700, 1301))
simple("lerp_pow", lambda x, y: torch.lerp(x, y, 0.3).abs().pow(1.7), lambda: rand(600, 1507), lambda: rand(600, 1507))

# Indexing.
simple("gather_1000x3000", lambda x, i: x.gather(1, i), lambda: rand(1000, 3000), lambda: ints(3000, 1000, 500))
simple("take_rows_20000x65", lambda x, i: x[i], lambda: rand(20000, 65), lambda: ints(20000, 15000))
simple("take_columns_900x4001", lambda x, i: x[:, i], lambda: rand(900, 4001), lambda: ints(4001, 1500))
simple("scatter_add_rows", lambda i, s: torch.zeros(5000, 33).index_add(0, i, s), lambda: ints(5000, 40000), lambda: rand(40000, 33))
simple("scatter_add_elements", lambda i, s: torch.zeros(300, 2000).scatter_add(1, i, s), lambda: ints(2000, 300, 3000), lambda: rand(300, 3000))
simple("scatter_amax", lambda i, s: torch.zeros(700, 900).scatter_reduce(1, i, s, "amax"), lambda: ints(900, 700, 1100), lambda: rand(700, 1100))
simple("index_put_accumulate", lambda i, j, v: torch.zeros(400, 500).index_put((i, j), v, accumulate=True), lambda: ints(400, 90000), lambda: ints(500, 90000), lambda: rand(90000))
simple("masked_fill_causal", lambda x, m: x.masked_fill(m, float("-inf")).softmax(-1), lambda: rand(24, 301, 301), lambda: torch.ones(301, 301).triu(1).bool())
simple("one_hot_product", lambda i, w: F.one_hot(i, 501).float() @ w, lambda: ints(501, 1003), lambda: rand(501, 64))
simple("embedding_sum", lambda i, w: F.embedding(i, w).sum(1), lambda: ints(30011, 700, 33), lambda: rand(30011, 48))
simple("searchsorted_300000", lambda s, x: torch.searchsorted(s, x), lambda: rand(9973).sort()[0], lambda: rand(300000))
simple("bincount_like", lambda i: torch.zeros(1000, dtype=torch.int64).scatter_add(0, i, torch.ones_like(i)), lambda: ints(1000, 500000))
simple("repeat_interleave_rows", lambda x: x.repeat_interleave(3, 0), lambda: rand(3001, 130))
simple("isin_100000", lambda x, y: torch.isin(x, y), lambda: ints(1 << 20, 100000), lambda: ints(1 << 20, 3000))

# Products.
simple("mm_100", lambda a, b: a @ b, lambda: rand(100, 100), lambda: rand(100, 100))
simple("mm_333x517x129", lambda a, b: a @ b, lambda: rand(333, 517), lambda: rand(517, 129))
simple("mm_thin_20000x16x48", lambda a, b: a @ b, lambda: rand(20000, 16), lambda: rand(16, 48))
simple("mm_transposed_700", lambda a, b: a.t() @ b.t(), lambda: rand(700, 650), lambda: rand(900, 700))
simple("mv_3001x2003", lambda a, b: a @ b, lambda: rand(3001, 2003), lambda: rand(2003))
simple("bmm_63x65x67x31", lambda a, b: a @ b, lambda: rand(63, 65, 67), lambda: rand(63, 67, 31))
simple("mm_bf16_900", lambda a, b: a @ b, lambda: rand(900, 901, dtype=BF16), lambda: rand(901, 902, dtype=BF16))
simple("linear_bf16_37x1024x3000", lambda x, w, b: F.linear(x, w, b), lambda: rand(37, 1024, dtype=BF16), lambda: rand(3000, 1024, dtype=BF16), lambda: rand(3000, dtype=BF16))
simple("mm_f64_401", lambda a, b: a @ b, lambda: rand(401, 402, dtype=F64), lambda: rand(402, 403, dtype=F64))
simple("einsum_bhqd", lambda q, k: torch.einsum("bqhd,bkhd->bhqk", q, k), lambda: rand(3, 190, 7, 48), lambda: rand(3, 190, 7, 48))
simple("einsum_outer_sum", lambda a, b: torch.einsum("ni,nj->ij", a, b), lambda: rand(5001, 65), lambda: rand(5001, 129))
simple("mlp_gelu", lambda x, a, b: F.gelu(x @ a) @ b, lambda: rand(333, 300), lambda: rand(300, 1200) / 17, lambda: rand(1200, 300))

# Attention, norms, convolutions, pooling.
simple("attention_bf16", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), *[lambda: rand(2, 8, 700, 64, dtype=BF16)] * 3)
simple("attention_causal_f32", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *[lambda: rand(3, 6, 513, 40)] * 3)
simple("attention_by_hand", lambda q, k, v: (q @ k.transpose(-1, -2) / 7).softmax(-1) @ v, *[lambda: rand(4, 5, 333, 48)] * 3)
simple("group_norm_odd", lambda x, w, b: F.group_norm(x, 7, w, b), lambda: rand(5, 35, 37, 41), lambda: rand(35), lambda: rand(35))
simple("layer_norm_residual", lambda x, y, w: F.layer_norm(x + y, (777,), w), lambda: rand(900, 777), lambda: rand(900, 777), lambda: rand(777))
simple("rms_norm_bf16", lambda x, w: F.rms_norm(x, (1025,), w), lambda: rand(600, 1025, dtype=BF16), lambda: rand(1025, dtype=BF16))
simple("instance_norm_relu", lambda x: F.instance_norm(x).relu(), lambda: rand(6, 40, 45, 47))
simple("batch_norm_training", lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), lambda: rand(16, 50, 29, 31), lambda: rand(50), lambda: rand(50))
simple("log_softmax_nll", lambda x, i: F.cross_entropy(x, i), lambda: rand(600, 10007), lambda: ints(10007, 600))
simple("softmax_columns", lambda x: x.softmax(1), lambda: rand(50, 333, 77))
simple("conv_stem_7x7", lambda x, w: F.conv2d(x, w, stride=2, padding=3), lambda: rand(2, 3, 225, 225), lambda: rand(60, 3, 7, 7))
simple("conv_depthwise_5x5", lambda x, w: F.conv2d(x, w, padding=2, groups=72), lambda: rand(4, 72, 57, 57), lambda: rand(72, 1, 5, 5))
simple("conv_pointwise", lambda x, w, b: F.relu(F.conv2d(x, w, b)), lambda: rand(4, 130, 27, 27), lambda: rand(200, 130, 1, 1), lambda: rand(200))
simple("conv_dilated", lambda x, w: F.conv2d(x, w, dilation=2, padding=2), lambda: rand(2, 48, 40, 44), lambda: rand(48, 48, 3, 3))
simple("conv1d_long", lambda x, w: F.conv1d(x, w, padding=4), lambda: rand(3, 20, 16001), lambda: rand(24, 20, 9))
simple("conv_transpose_stride2", lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), lambda: rand(3, 64, 21, 23), lambda: rand(64, 32, 4, 4))
simple("max_pool_odd", lambda x: F.max_pool2d(x, 3, 2), lambda: rand(8, 60, 61, 63))
simple("avg_pool_3x3", lambda x: F.avg_pool2d(x, 3, 1, 1), lambda: rand(6, 50, 51, 53))
simple("adaptive_pool_5", lambda x: F.adaptive_avg_pool2d(x, 5), lambda: rand(8, 100, 33, 37))
simple("bilinear_resize", lambda x: F.interpolate(x, (301, 401), mode="bilinear"), lambda: rand(2, 3, 200, 300))
simple("bicubic_resize", lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic"), lambda: rand(2, 8, 90, 110))
simple("nearest_up", lambda x: F.interpolate(x, scale_factor=2), lambda: rand(4, 64, 40, 41))
simple("pixel_shuffle_conv", lambda x, w: F.pixel_shuffle(F.conv2d(x, w, padding=1), 3), lambda: rand(2, 16, 60, 60), lambda: rand(27, 16, 3, 3))
simple("pad_reflect", lambda x: F.pad(x, (3, 5, 7, 2), mode="reflect"), lambda: rand(4, 20, 111, 99))
simple("unfold_windows", lambda x: x.unfold(1, 25, 10).mean(-1), lambda: rand(200, 8001))

# Transforms and decompositions.
simple("rfft_magnitude", lambda x: torch.fft.rfft(x).abs(), lambda: rand(300, 1500))
simple("fft2_filter", lambda x, h: torch.fft.irfft2(torch.fft.rfft2(x) * h), lambda: rand(6, 250, 256), lambda: rand(250, 129))
simple("cholesky_solve_spd", lambda a, b: torch.cholesky_solve(b, torch.linalg.cholesky(a @ a.mT + 30 * torch.eye(123))), lambda: rand(123, 123), lambda: rand(123, 7))
simple("solve_batched_small", lambda a, b: torch.linalg.solve(a + 9 * torch.eye(11), b), lambda: rand(700, 11, 11), lambda: rand(700, 11, 3))
simple("det_inverse_batched", lambda a: (torch.linalg.inv(a + 9 * torch.eye(6)), torch.linalg.det(a)), lambda: rand(3000, 6, 6))

# Broadcasting in odd shapes and of different dtypes.
U8, I8, I16, I32 = torch.uint8, torch.int8, torch.int16, torch.int32
simple("broadcast_three_ways", lambda x, y, z: (x + y) * z, lambda: rand(61, 1, 83), lambda: rand(1, 97, 1), lambda: rand(61, 97, 1))
simple("broadcast_bf16_f32", lambda x, s, b: x * s + b, lambda: rand(30, 70, 501, dtype=BF16), lambda: rand(70, 1), lambda: rand(501))
simple("i64_times_f32", lambda i, x: (i * x).floor() % 5, lambda: ints(1000, 703, 911), lambda: rand(911))
simple("horner_degree_9", lambda x: ((((((((0.1 * x + 0.2) * x - 0.3) * x + 0.4) * x - 0.5) * x + 0.6) * x - 0.7) * x + 0.8) * x - 0.9) * x + 1, lambda: rand(999, 1003))
simple("trig_mix", lambda x: torch.atan2(x.sin(), x.cos()) + x.tan().atan() * x.tanh(), lambda: rand(700, 501))
simple("erf_log_pow", lambda x: torch.erf(x) * torch.log1p(x.abs()) + x.abs() ** 0.75, lambda: rand(801, 603))
simple("exp_log_f64", lambda x: torch.log(1 + torch.exp(-x.abs())) + x.clamp(min=0), lambda: rand(501, 700, dtype=F64))
simple("complex_product", lambda a, b, c, d: torch.view_as_real(torch.complex(a, b) * torch.complex(c, d)), *[lambda: rand(401, 703)] * 4)
simple("mandelbrot_8", lambda x, y: mandelbrot(x, y), lambda: rand(601, 1), lambda: rand(1, 703))
simple("sobel_by_slices", lambda x: (x[:, 2:, 1:-1] - x[:, :-2, 1:-1]) ** 2 + (x[:, 1:-1, 2:] - x[:, 1:-1, :-2]) ** 2, lambda: rand(5, 403, 507))
simple("heat_step", lambda x: x[1:-1, 1:-1] + 0.1 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1]), lambda: rand(1003, 1101))


def mandelbrot(x, y):
    a, b = x, y
    for _ in range(8):
        a, b = a * a - b * b + x, 2 * a * b + y
    return (a * a + b * b) < 4


# Bits and integers.
simple("hash_i64", lambda x: ((x ^ (x >> 33)) * 0x62A9D9ED799705F5) ^ (x >> 28), lambda: ints(1 << 60, 600001))
simple("bits_of_i32", lambda x: ((x[:, None] >> torch.arange(32, dtype=I32)) & 1).to(U8), lambda: ints(1 << 30, 30001, dtype=I32))
simple("pack_bits_u8", lambda x: (x << torch.arange(8, dtype=U8)).sum(-1, dtype=U8), lambda: ints(2, 100003, 8, dtype=U8))
simple("gcd_lcm_like", lambda x, y: (x // y) * y + x.remainder(y), lambda: ints(1 << 30, 300007), lambda: 1 + ints(1000, 300007))
simple("saturating_i16", lambda x, y: (x.to(I32) + y.to(I32)).clamp(-32768, 32767).to(I16), *[lambda: ints(32767, 1203, 907, dtype=I16)] * 2)
simple("quantise_rows", lambda x: quantise(x), lambda: rand(603, 1021))
simple("dequantise_groups", lambda q, s, z: ((q.float() - z) * s).reshape(500, -1), lambda: ints(16, 500, 33, 32, dtype=U8), lambda: rand(500, 33, 1), lambda: rand(500, 33, 1))
simple("image_normalise_nhwc", lambda x: ((x.float() / 255 - torch.tensor([0.48, 0.45, 0.4])) / torch.tensor([0.23, 0.22, 0.22])).permute(0, 3, 1, 2).contiguous(), lambda: ints(256, 4, 223, 225, 3, dtype=U8))
simple("grey_of_u8", lambda x: (x.float() * torch.tensor([0.299, 0.587, 0.114])).sum(-1).round().to(U8), lambda: ints(256, 601, 803, 3, dtype=U8))


def quantise(x):
    scale = x.abs().amax(1, keepdim=True) / 127
    return (x / scale).round().clamp(-128, 127).to(I8), scale


# Reductions over other dimensions.
simple("sum_outer_f32", lambda x: x.sum(0), lambda: rand(37, 501, 211))
simple("sum_first_last", lambda x: x.sum((0, 2)), lambda: rand(61, 130, 207))
simple("mean_middle_f64", lambda x: x.mean(1), lambda: rand(71, 301, 53, dtype=F64))
simple("sum_middle_bf16", lambda x: x.sum(1), lambda: rand(33, 257, 301, dtype=BF16))
simple("sum_i64_rows_and_columns", lambda x: (x.sum(0), x.sum(1)), lambda: ints(1000, 903, 1107))
simple("sum_short_last", lambda x: x.sum(-1), lambda: rand(300001, 5))
simple("max_short_last", lambda x: x.max(-1), lambda: rand(100003, 7))
simple("prod_short_middle", lambda x: x.prod(1), lambda: rand(3001, 6, 65))
simple("std_rows_bf16", lambda x: x.std(1), lambda: rand(700, 1203, dtype=BF16))
simple("l2_and_l1_of_all", lambda x: (x.norm(), x.abs().sum(), x.abs().amax()), lambda: rand(1301, 1001))
simple("transposed_sum_rows", lambda x, y: (x.t() * y).sum(1), lambda: rand(901, 703), lambda: rand(703, 901))
simple("min_max_scaled", lambda x: (x - x.amin((1, 2), True)) / (x.amax((1, 2), True) - x.amin((1, 2), True)), lambda: rand(37, 150, 201))
simple("count_in_range", lambda x: ((x > -0.5) & (x < 0.7)).sum(0), lambda: rand(2003, 409))
simple("argmin_middle", lambda x: x.argmin(1), lambda: rand(61, 203, 91))
simple("histogram_by_buckets", lambda x: torch.zeros(65).index_add(0, torch.bucketize(x, torch.linspace(-3, 3, 64)), torch.ones_like(x)), lambda: rand(250007))
simple("running_mean_window_9", lambda x: (x.cumsum(1)[:, 9:] - x.cumsum(1)[:, :-9]) / 9, lambda: rand(303, 4001))
simple("cumsum_of_mask_times", lambda x: (x > 0).cumsum(1) * x, lambda: rand(703, 1501))
simple("cummax_drawdown", lambda x: x.cummax(1)[0] - x, lambda: rand(501, 2003))
simple("softmax_middle_short", lambda x: x.softmax(1), lambda: rand(3001, 11, 37))
simple("log_softmax_f64", lambda x: x.log_softmax(1), lambda: rand(403, 901, dtype=F64))
simple("softmax_temperature_topk", lambda x: torch.topk((x / 0.7).softmax(-1), 5), lambda: rand(103, 8009))
simple("entropy_of_rows", lambda x: -(x.softmax(-1) * x.log_softmax(-1)).sum(-1), lambda: rand(1001, 777))
simple("weighted_mean_of_tokens", lambda x, m: (x * m[..., None]).sum(1) / m.sum(1, keepdim=True).clamp(min=1), lambda: rand(31, 203, 190), lambda: (rand(31, 203) > 0).float())
simple("logsumexp_pairs", lambda x, y: torch.logsumexp(x[:, :, None] + y[None], 1), lambda: rand(201, 45), lambda: rand(45, 107))

# Norms and what follows them.
simple("layer_norm_gelu_bf16", lambda x, w, b: F.gelu(F.layer_norm(x, (769,), w, b)), lambda: rand(503, 769, dtype=BF16), lambda: rand(769, dtype=BF16), lambda: rand(769, dtype=BF16))
simple("layer_norm_short", lambda x, w, b: F.layer_norm(x, (19,), w, b), lambda: rand(50001, 19), lambda: rand(19), lambda: rand(19))
simple("rms_norm_by_hand", lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w, lambda: rand(907, 1001), lambda: rand(1001))
simple("batch_norm_relu_pool", lambda x, m, v, w, b: F.relu(F.batch_norm(x, m, v, w, b)).mean((2, 3)), lambda: rand(9, 70, 41, 43), lambda: rand(70), lambda: rand(70).abs() + 1, lambda: rand(70), lambda: rand(70))
simple("group_norm_silu", lambda x, w, b: F.silu(F.group_norm(x, 6, w, b)), lambda: rand(4, 42, 53, 51), lambda: rand(42), lambda: rand(42))
simple("channel_norm_nchw", lambda x, w: (x - x.mean(1, keepdim=True)) * torch.rsqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5) * w[:, None, None], lambda: rand(5, 93, 47, 49), lambda: rand(93))

# Moving.
simple("stack_and_interleave", lambda x, y: torch.stack((x, y), -1).flatten(1), lambda: rand(703, 1001), lambda: rand(703, 1001))
simple("cat_three_scaled", lambda x, y, z: torch.cat((x * 2, y + 1, z.relu()), 1), lambda: rand(501, 300), lambda: rand(501, 411), lambda: rand(501, 97))
simple("split_gated", lambda x: x.chunk(2, -1)[0] * x.chunk(2, -1)[1].sigmoid(), lambda: rand(801, 1302))
simple("flip_both", lambda x: x.flip((0, 1)) + x, lambda: rand(903, 1101))
simple("patches_of_14", lambda x: x.reshape(4, 3, 15, 14, 16, 14).permute(0, 2, 4, 1, 3, 5).reshape(4, 240, 588), lambda: rand(4, 3, 210, 224))
simple("permute_0312_scale", lambda x: (x.permute(0, 3, 1, 2) * 1.5).contiguous(), lambda: rand(7, 61, 63, 45))
simple("pad_constant_replicate", lambda x: (F.pad(x, (1, 2, 3, 4), value=0.5), F.pad(x, (2, 2, 2, 2), mode="replicate")), lambda: rand(3, 31, 85, 79))
simple("pad_circular_difference", lambda x: F.pad(x, (1, 1), mode="circular")[..., 2:] - x, lambda: rand(4, 33, 2501))
simple("shifted_windows", lambda x: torch.roll(x, (-3, -3), (1, 2)).reshape(2, 8, 7, 8, 7, 48).transpose(2, 3).reshape(-1, 49, 48), lambda: rand(2, 56, 56, 48))
simple("upper_triangle_of_product", lambda x: torch.triu(x[:, None] * x, 1), lambda: rand(1203))
simple("diagonal_embedding", lambda x: torch.diag_embed(x) + 1, lambda: rand(203, 61))

# Indexing, one-hot and masks.
simple("masked_mean_loss", lambda x, y, m: ((x - y).abs() * m).sum() / m.sum(), lambda: rand(403, 1501), lambda: rand(403, 1501), lambda: rand(403, 1501) > 0.3)
simple("nested_where", lambda x: torch.where(x < -1, -1.0, torch.where(x < 0, x, torch.where(x < 1, x * x, x.sqrt()))), lambda: rand(901, 1107))
simple("embedding_positions_norm", lambda i, w, p, g: F.layer_norm(w[i] + p, (96,), g), lambda: ints(5003, 21, 170), lambda: rand(5003, 96), lambda: rand(170, 96), lambda: rand(96))
simple("confusion_matrix", lambda i, j: (F.one_hot(i, 31)[:, :, None] * F.one_hot(j, 31)[:, None]).sum(0), lambda: ints(31, 2001), lambda: ints(31, 2001))
simple("gather_last_tokens", lambda x, n: x[torch.arange(301), n], lambda: rand(301, 63, 130), lambda: ints(63, 301))
simple("gather_multiplied", lambda x, i, y: x.gather(1, i) * y, lambda: rand(701, 901), lambda: ints(901, 701, 603), lambda: rand(701, 603))
simple("table_of_u8", lambda x, t: t[x.long()], lambda: ints(256, 700, 901, dtype=U8), lambda: rand(256))
simple("scatter_rows_into", lambda x, i, s: x.scatter(0, i[:, None].expand(-1, 97), s), lambda: rand(9001, 97), lambda: torch.randperm(9001)[:3001], lambda: rand(3001, 97))
simple("index_add_weighted", lambda i, x, w: torch.zeros(701, 45).index_add(0, i, x * w[:, None]), lambda: ints(701, 20011), lambda: rand(20011, 45), lambda: rand(20011))
simple("experts_of_5", lambda x, r, w: experts(x, r, w), lambda: rand(403, 96), lambda: rand(96, 5), lambda: rand(5, 96, 130) / 10)
simple("router_top2", lambda x: router(x), lambda: rand(10007, 16))
simple("segment_softmax", lambda x, i: segment_softmax(x, i), lambda: rand(60013), lambda: ints(3001, 60013))
simple("bucket_embedding", lambda x, w: w[torch.bucketize(x, torch.linspace(-2, 2, 31))], lambda: rand(40009), lambda: rand(32, 24))
simple("sort_i32_rows", lambda x: torch.sort(x, dim=1)[0], lambda: ints(1 << 20, 303, 2003, dtype=I32))
simple("argsort_f64", lambda x: x.argsort(dim=1, stable=True), lambda: rand(101, 3003, dtype=F64))
simple("ranks_of_rows", lambda x: x.argsort(dim=1, stable=True).argsort(dim=1, stable=True), lambda: rand(301, 1003))


def experts(x, r, w):
    top, i = (x @ r).softmax(-1).max(-1)
    mask = F.one_hot(i, 5).float() * top[:, None]
    return torch.einsum("nd,edk,ne->nk", x, w, mask)


def router(x):
    p, i = x.softmax(-1).topk(2)
    p = p / p.sum(-1, keepdim=True)
    return torch.zeros_like(x).scatter(1, i, p), F.one_hot(i, 16).sum((0, 1))


def segment_softmax(x, i):
    top = torch.full((3001,), float("-inf")).scatter_reduce(0, i, x, "amax")
    e = (x - top[i]).exp()
    return e / torch.zeros(3001).index_add(0, i, e)[i]


# Distances and products.
simple("cosine_similarities", lambda a, b: F.normalize(a, dim=1) @ F.normalize(b, dim=1).t(), lambda: rand(503, 70), lambda: rand(607, 70))
simple("cosine_of_pairs", lambda a, b: F.cosine_similarity(a, b, dim=-1), lambda: rand(5003, 130), lambda: rand(5003, 130))
simple("distances_max_200x300x9", lambda a, b: (a[:, None] - b).abs().amax(-1), lambda: rand(200, 9), lambda: rand(300, 9))
simple("haversine_pairs", lambda a, b: ((a[:, None] - b).sin() ** 2).sum(-1).sqrt().asin(), lambda: rand(201, 2) / 9, lambda: rand(303, 2) / 9)
simple("outer_three", lambda a, b, c: torch.einsum("i,j,k->ijk", a, b, c), lambda: rand(83), lambda: rand(91), lambda: rand(101))
simple("einsum_bilinear", lambda x, w, y: torch.einsum("bi,oij,bj->bo", x, w, y), lambda: rand(61, 33), lambda: rand(29, 33, 35), lambda: rand(61, 35))
simple("einsum_trace_of_products", lambda a, b: torch.einsum("bij,bji->b", a, b), lambda: rand(201, 53, 67), lambda: rand(201, 67, 53))
simple("small_products_3x3", lambda a, b: a @ b, lambda: rand(50021, 3, 3), lambda: rand(50021, 3, 3))
simple("rotate_points", lambda r, p: (r[:, None] @ p[..., None])[..., 0], lambda: rand(101, 3, 3), lambda: rand(101, 501, 3))
simple("mm_bias_residual", lambda x, w, b, y: F.gelu(F.linear(x, w, b)) + y, lambda: rand(403, 190), lambda: rand(333, 190), lambda: rand(333), lambda: rand(403, 333))
simple("mv_relu_mv", lambda a, b, x: b @ (a @ x).relu(), lambda: rand(1203, 901), lambda: rand(701, 1203), lambda: rand(901))
simple("swiglu_bf16", lambda x, a, b, c: (F.silu(x @ a) * (x @ b)) @ c, lambda: rand(65, 384, dtype=BF16), lambda: rand(384, 1000, dtype=BF16), lambda: rand(384, 1000, dtype=BF16), lambda: rand(1000, 384, dtype=BF16))

# Attention.
simple("attention_bias", lambda q, k, v, b: F.scaled_dot_product_attention(q, k, v, attn_mask=b), *[lambda: rand(3, 4, 203, 40)] * 3, lambda: rand(4, 203, 203))
simple("attention_grouped", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), lambda: rand(2, 8, 150, 48), *[lambda: rand(2, 2, 150, 48)] * 2)
simple("attention_window", lambda q, k, v: window_attention(q, k, v, 31), *[lambda: rand(2, 5, 211, 36)] * 3)
simple("attention_one_query", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), lambda: rand(9, 8, 1, 64), *[lambda: rand(9, 8, 777, 64)] * 2)
simple("rope_halves", lambda x, p: rope(x, p), lambda: rand(3, 7, 301, 64), lambda: rand(301, 32))
simple("rope_pairs", lambda x, p: rope_pairs(x, p), lambda: rand(3, 301, 7, 64), lambda: rand(301, 1, 32))


def window_attention(q, k, v, window):
    d = torch.arange(q.shape[-2])[:, None] - torch.arange(q.shape[-2])
    s = (q @ k.transpose(-1, -2) / 6).masked_fill((d < 0) | (d >= window), float("-inf"))
    return s.softmax(-1) @ v


def rope(x, p):
    a, b = x.chunk(2, -1)
    return torch.cat((a * p.cos() - b * p.sin(), b * p.cos() + a * p.sin()), -1)


def rope_pairs(x, p):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * p.cos() - b * p.sin(), a * p.sin() + b * p.cos()), -1).flatten(-2)


# Cells, losses and steps with their gradients by hand.
simple("gru_cell", lambda x, h, w, u: gru_cell(x, h, w, u), lambda: rand(203, 65), lambda: rand(203, 130), lambda: rand(390, 65) / 9, lambda: rand(390, 130) / 9)
simple("lstm_cell", lambda x, h, c, w, u: lstm_cell(x, h, c, w, u), lambda: rand(97, 100), lambda: rand(97, 150), lambda: rand(97, 150), lambda: rand(600, 100) / 9, lambda: rand(600, 150) / 9)
simple("huber_and_smooth", lambda x, y: F.huber_loss(x, y, delta=0.7) + F.smooth_l1_loss(x, y), lambda: rand(703, 901), lambda: rand(703, 901))
simple("kl_of_logits", lambda x, y: F.kl_div(x.log_softmax(-1), y.log_softmax(-1), log_target=True, reduction="batchmean"), lambda: rand(501, 1003), lambda: rand(501, 1003))
simple("bce_weighted", lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w), lambda: rand(903, 301), lambda: (rand(903, 301) > 0).float(), lambda: rand(301).abs())
simple("label_smoothing", lambda x, i: F.cross_entropy(x, i, label_smoothing=0.1), lambda: rand(301, 3001), lambda: ints(3001, 301))
simple("focal_loss", lambda x, y: ((1 - torch.exp(-F.binary_cross_entropy_with_logits(x, y, reduction="none"))) ** 2).mean(), lambda: rand(601, 803), lambda: (rand(601, 803) > 1).float())
simple("dice_of_masks", lambda x, y: 1 - 2 * (x.sigmoid() * y).sum((1, 2)) / (x.sigmoid().sum((1, 2)) + y.sum((1, 2))), lambda: rand(23, 151, 203), lambda: (rand(23, 151, 203) > 0).float())
simple("adam_step", lambda p, g, m, v: adam(p, g, m, v), *[lambda: rand(503, 1001)] * 3, lambda: rand(503, 1001).abs())
simple("logistic_step", lambda x, y, w: w - 0.1 * (x.t() @ ((x @ w).sigmoid() - y)) / 4001, lambda: rand(4001, 203), lambda: rand(4001), lambda: rand(203))
simple("mlp_gradient", lambda x, y, a, b: mlp_gradient(x, y, a, b), lambda: rand(301, 65), lambda: rand(301, 9), lambda: rand(65, 190) / 8, lambda: rand(190, 9) / 8)
simple("kmeans_step", lambda x, c: kmeans(x, c), lambda: rand(5003, 17), lambda: rand(31, 17))
simple("softmax_gradient", lambda p, g: p * (g - (p * g).sum(-1, keepdim=True)), lambda: rand(701, 1203), lambda: rand(701, 1203))
simple("layer_norm_gradient", lambda x, g: layer_norm_gradient(x, g), lambda: rand(601, 901), lambda: rand(601, 901))


def gru_cell(x, h, w, u):
    (r, z, n), (rh, zh, nh) = F.linear(x, w).chunk(3, 1), F.linear(h, u).chunk(3, 1)
    z, n = (z + zh).sigmoid(), (n + (r + rh).sigmoid() * nh).tanh()
    return n + z * (h - n)


def lstm_cell(x, h, c, w, u):
    i, f, g, o = (F.linear(x, w) + F.linear(h, u)).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def adam(p, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return p - 1e-3 * m / (v.sqrt() + 1e-8), m, v


def mlp_gradient(x, y, a, b):
    z = x @ a
    h = z.relu()
    d = (h @ b - y) / 301
    return x.t() @ ((d @ b.t()) * (z > 0)), h.t() @ d


def kmeans(x, c):
    near = F.one_hot(((x[:, None] - c) ** 2).sum(-1).argmin(1), 31).float()
    return near.t() @ x / near.sum(0).clamp(min=1)[:, None]


def layer_norm_gradient(x, g):
    m, v = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
    n = (x - m) * torch.rsqrt(v + 1e-5)
    return torch.rsqrt(v + 1e-5) * (g - g.mean(-1, keepdim=True) - n * (g * n).mean(-1, keepdim=True)), (g * n).sum(0), g.sum(0)


# Signals and images.
simple("conv_norm_relu", lambda x, w, s, b: F.relu(F.conv2d(x, w, padding=1) * s[:, None, None] + b[:, None, None]), lambda: rand(3, 33, 45, 43), lambda: rand(50, 33, 3, 3), lambda: rand(50), lambda: rand(50))
simple("conv1d_depthwise_causal", lambda x, w: F.silu(F.conv1d(F.pad(x, (3, 0)), w, groups=130)), lambda: rand(4, 130, 1501), lambda: rand(130, 1, 4))
simple("fft_low_pass", lambda x: torch.fft.irfft(torch.fft.rfft(x) * (torch.arange(513) < 65), n=1024), lambda: rand(203, 1024))
simple("autocorrelation", lambda x: torch.fft.irfft(torch.fft.rfft(x, n=1200).abs() ** 2), lambda: rand(151, 600))
simple("grid_of_boxes_iou", lambda a, b: iou(a, b), lambda: rand(501, 4).abs(), lambda: rand(303, 4).abs())
simple("yuv_of_planes", lambda x: torch.einsum("nchw,dc->ndhw", x, torch.tensor([[0.3, 0.6, 0.1], [-0.2, -0.3, 0.5], [0.6, -0.5, -0.1]])), lambda: rand(5, 3, 203, 301))
simple("gaussian_rows", lambda x: sum(w * x[:, i:i + 997] for i, w in enumerate((0.06, 0.24, 0.4, 0.24, 0.06))), lambda: rand(703, 1001))
simple("small_covariances", lambda x: (x - x.mean(1, keepdim=True)).mT @ (x - x.mean(1, keepdim=True)) / 20, lambda: rand(1001, 21, 13))


def iou(a, b):
    a, b = torch.cat((a[:, :2], a[:, :2] + a[:, 2:]), 1)[:, None], torch.cat((b[:, :2], b[:, :2] + b[:, 2:]), 1)
    both = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    area = lambda x: (x[..., 2:] - x[..., :2]).prod(-1)
    return both / (area(a) + area(b) - both)
