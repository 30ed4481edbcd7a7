"""Functions that bench/import --functions times: small pieces of programs, in sizes that no table of ops has.

A file of this kind has a dictionary CASES of names and functions without arguments, each of which returns a
function of tensors and its arguments. They are drawn after torch.manual_seed(0).
"""
import torch
import torch.nn.functional as F

CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


def rand(*dims, dtype=torch.float32):
    return torch.randn(*dims).to(dtype)


def ints(high, *dims, dtype=torch.int64):
    return torch.randint(high, dims, dtype=dtype)


def simple(name, f, *make):
    CASES[name] = lambda: (f, tuple(m() for m in make))


BF16, F16, F64 = torch.bfloat16, torch.float16, torch.float64

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
