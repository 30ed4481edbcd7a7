"""Further functions that bench/import --functions times: parts of models of many kinds, in odd sizes. cases.py says what
a file of this kind has.
"""
import math

import torch
import torch.nn.functional as F

from cases import BF16, CASES, F16, F64, ints, program, rand, simple, uniform

U8, I8, I32 = torch.uint8, torch.int8, torch.int32


def w(*dims, dtype=torch.float32):
    """Weights, small enough for layers behind them."""
    return lambda: rand(*dims, dtype=dtype) / math.sqrt(dims[-1])


def x(*dims, dtype=torch.float32):
    return lambda: rand(*dims, dtype=dtype)


# Convolutional parts.
@program(x(3, 24, 29, 31), w(96, 24, 1, 1), w(96, 1, 3, 3), w(24, 96, 1, 1))
def inverted_residual(a, up, deep, down):
    h = F.relu6(F.conv2d(a, up))
    h = F.relu6(F.conv2d(h, deep, padding=1, groups=96))
    return a + F.conv2d(h, down)


@program(x(2, 48, 27, 27), w(16, 48, 1, 1), w(64, 16, 1, 1), w(64, 16, 3, 3))
def fire_module(a, squeeze, one, three):
    s = F.relu(F.conv2d(a, squeeze))
    return torch.cat((F.relu(F.conv2d(s, one)), F.relu(F.conv2d(s, three, padding=1))), 1)


@program(x(2, 20, 25, 25), w(12, 20, 3, 3), w(12, 32, 3, 3), w(12, 44, 3, 3))
def dense_block(a, *kernels):
    for k in kernels:
        a = torch.cat((a, F.conv2d(F.relu(a), k, padding=1)), 1)
    return a


@program(x(1, 32, 17, 19), x(1, 16, 34, 38), w(32, 16, 2, 2), w(16, 32, 3, 3))
def unet_up(a, skip, up, k):
    return F.relu(F.conv2d(torch.cat((skip, F.conv_transpose2d(a, up, stride=2)), 1), k, padding=1))


@program(x(2, 30, 23, 23), w(30, 5, 3, 3), w(30), w(30))
def grouped_conv_with_shuffle(a, k, g, b):
    h = F.conv2d(a, k, padding=1, groups=6).unflatten(1, (6, 5)).transpose(1, 2).flatten(1, 2)
    return F.silu(F.group_norm(h, 5, g, b))


@program(x(4, 32, 1003), w(32, 32, 3), w(32, 32, 3), w(32, 32, 1))
def gated_causal_convs(a, f, g, o):
    p = F.pad(a, (4, 0))
    return a + F.conv1d(torch.tanh(F.conv1d(p, f, dilation=2)) * torch.sigmoid(F.conv1d(p, g, dilation=2)), o)


@program(x(2, 3, 224, 224), w(96, 3, 16, 16), x(1, 196, 96))
def patches_embedded(a, k, p):
    return F.conv2d(a, k, stride=16).flatten(2).transpose(1, 2) + p


@program(x(2, 3, 61, 61), w(40, 27))
def conv_by_unfold(a, k):
    return (k @ F.unfold(a, 3)).unflatten(-1, (59, 59))


@program(x(2, 16, 33, 35), w(16, 16, 3, 3))
def reflected_conv_instance_norm(a, k):
    return F.relu(F.instance_norm(F.conv2d(F.pad(a, (1, 1, 1, 1), mode="reflect"), k)))


@program(x(2, 12, 13, 15, 11), w(12, 12, 3, 3, 3))
def residual_3d(a, k):
    return a + F.conv3d(F.elu(a), k, padding=1)


@program(x(1, 24, 31, 29), w(24, 24, 3, 3))
def upsample_and_conv(a, k):
    return F.leaky_relu(F.conv2d(F.interpolate(a, scale_factor=2, mode="bilinear", align_corners=False), k, padding=1), 0.1)


@program(x(2, 32, 28, 28), w(8, 32), w(32, 8), w(1, 2, 7, 7))
def attention_of_channels_and_places(a, down, up, k):
    def gate(v):
        return F.linear(F.relu(F.linear(v, down)), up)
    a = a * torch.sigmoid(gate(a.mean((2, 3))) + gate(a.amax((2, 3))))[..., None, None]
    s = torch.stack((a.mean(1), a.amax(1)), 1)
    return a * torch.sigmoid(F.conv2d(s, k, padding=3))


@program(x(1, 64, 30, 30))
def pyramid_pooling(a):
    parts = [F.interpolate(F.adaptive_avg_pool2d(a, n), size=(30, 30), mode="bilinear", align_corners=False) for n in (1, 2, 3, 6)]
    return torch.cat((a, *parts), 1)


@program(x(2, 64, 21, 23))
def spatial_pyramid_of_maxima(a):
    p = [a]
    for _ in range(3):
        p.append(F.max_pool2d(p[-1], 5, 1, 2))
    return torch.cat(p, 1)


@program(x(2, 16, 37, 41), x(2, 18, 37, 41), lambda: 2 * uniform(2, 37, 41, 2) - 1)
def warped_features(a, b, flow):
    return torch.cat((F.grid_sample(a, flow, align_corners=False), b), 1).abs().mean(1)


@program(x(4, 8, 32, 32), w(32, 8, 3, 3), w(4, 32, 3, 3))
def super_resolution(a, k, o):
    return F.pixel_shuffle(F.conv2d(F.prelu(F.conv2d(a, k, padding=1), torch.tensor(0.2)), o, padding=1), 2)


# Attention and what takes its place.
@program(x(2, 77, 60), w(180, 60), w(60, 60), w(60), w(60))
def causal_block(a, qkv, o, g, b):
    q, k, v = F.linear(F.layer_norm(a, (60,), g, b), qkv).unflatten(-1, (3, 5, 12)).permute(2, 0, 3, 1, 4)
    return a + F.linear(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2), o)


@program(x(2, 56, 56, 24), w(72, 24), x(4, 49, 49))
def shifted_windows(a, qkv, bias):
    h = a.roll((-3, -3), (1, 2)).reshape(2, 8, 7, 8, 7, 24).transpose(2, 3).reshape(-1, 49, 24)
    q, k, v = F.linear(h, qkv).unflatten(-1, (3, 4, 6)).permute(2, 0, 3, 1, 4)
    h = ((q @ k.mT / math.sqrt(6) + bias).softmax(-1) @ v).transpose(1, 2).flatten(2)
    return h.reshape(2, 8, 8, 7, 7, 24).transpose(2, 3).reshape(2, 56, 56, 24).roll((3, 3), (1, 2))


@program(x(3, 401, 4, 20), x(3, 401, 4, 20), x(3, 401, 4, 20))
def linear_attention(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    kv = torch.einsum("nshd,nshm->nhmd", k, v)
    return torch.einsum("nlhd,nhmd,nlh->nlhm", q, kv, 1 / (torch.einsum("nlhd,nhd->nlh", q, k.sum(1)) + 1e-6))


@program(x(2, 33, 3, 16), x(2, 33, 3, 16), x(2, 33, 3, 16))
def causal_linear_attention(q, k, v):
    s = torch.einsum("nlhd,nlhm->nlhdm", F.relu(k), v).cumsum(1)
    return torch.einsum("nlhd,nlhdm->nlhm", F.relu(q), s)


@program(x(8, 100, 48), w(64, 100), w(100, 64), w(96, 48), w(48, 96))
def mixer_block(a, down, up, wide, narrow):
    a = a + (up @ F.gelu(down @ F.layer_norm(a, (48,))))
    return a + F.linear(F.gelu(F.linear(F.layer_norm(a, (48,)), wide)), narrow)


simple("fourier_mixing", lambda a: torch.fft.fft2(a).real, x(7, 120, 48))


@program(x(2, 16, 64, 64), x(16, 16, 12, 12), x(16, 16, 12, 12))
def spectral_conv(a, re, im):
    f = torch.fft.rfft2(a)
    low = f[:, :, :12, :12]
    out = torch.zeros_like(f)
    return torch.fft.irfft2(torch.cat((torch.cat((torch.einsum("bixy,ioxy->boxy", low, torch.complex(re, im)), out[:, :, :12, 12:]), 3), out[:, :, 12:]), 2), s=(64, 64))


@program(x(3, 12, 40), x(3, 901, 40), w(40, 40), w(80, 40))
def latents_read_inputs(z, a, q, kv):
    k, v = F.linear(a, kv).chunk(2, -1)
    return z + (F.linear(z, q) @ k.mT / math.sqrt(40)).softmax(-1) @ v


@program(x(5, 50, 64), x(5, 50, 64), lambda: uniform(64), x(5, 64))
def time_mixing(k, v, decay, state):
    d = torch.exp(-decay)
    out = []
    for i in range(8):
        state = state * d + k[:, i] * v[:, i]
        out.append(state)
    return torch.stack(out, 1)


@program(x(2, 12, 24), lambda: uniform(2, 12, 24), x(24, 8), x(2, 12, 8), x(2, 12, 8))
def selective_scan(u, dt, a, b, c):
    s = torch.zeros(2, 24, 8)
    da = torch.exp(dt[..., None] * -a.exp())
    db = dt[..., None] * b[:, :, None] * u[..., None]
    y = []
    for i in range(12):
        s = da[:, i] * s + db[:, i]
        y.append((s * c[:, i, None]).sum(-1))
    return torch.stack(y, 1)


@program(x(6, 61, 32), w(32, 32), w(32))
def attention_pooling(a, k, q):
    s = torch.tanh(F.linear(a, k)) @ q
    return (s.softmax(-1)[..., None] * a).sum(1)


@program(x(2, 5, 120, 16), x(2, 5, 120, 16), x(2, 5, 120, 16), x(239, 16))
def relative_positions(q, k, v, e):
    i = torch.arange(120)
    r = e[i[:, None] - i + 119]
    s = q @ k.mT + torch.einsum("bhqd,qkd->bhqk", q, r)
    return (s / 4).softmax(-1) @ v


@program(x(1, 8, 1, 64, dtype=BF16), x(1, 2, 700, 64, dtype=BF16), x(1, 2, 700, 64, dtype=BF16))
def decode_of_grouped_heads(q, k, v):
    return F.scaled_dot_product_attention(q, k.repeat_interleave(4, 1), v.repeat_interleave(4, 1))


# Graphs, sets and points.
@program(x(2003, 32), lambda: ints(2003, 12007), lambda: ints(2003, 12007), w(32, 32))
def graph_conv(h, src, dst, k):
    deg = torch.zeros(2003).index_add(0, dst, torch.ones(12007)).clamp(min=1).rsqrt()
    m = F.linear(h, k)[src] * (deg[src] * deg[dst])[:, None]
    return F.relu(torch.zeros(2003, 32).index_add(0, dst, m))


@program(x(1201, 24), lambda: ints(1201, 7001), lambda: ints(1201, 7001), w(24), w(24))
def graph_attention(h, src, dst, a, b):
    e = F.leaky_relu((h @ a)[src] + (h @ b)[dst], 0.2).exp()
    total = torch.zeros(1201).index_add(0, dst, e)
    return torch.zeros(1201, 24).index_add(0, dst, h[src] * (e / total[dst])[:, None])


@program(x(16, 301, 3), w(32, 3), w(64, 32), w(10, 64))
def point_net(p, a, b, c):
    return F.linear(F.relu(F.linear(F.relu(F.linear(p, a)), b)).amax(1), c)


@program(x(4, 200, 3))
def nearest_of_points(p):
    d = (p[:, :, None] - p[:, None]).pow(2).sum(-1)
    v, i = d.topk(9, largest=False)
    return v.sqrt(), i


@program(x(4, 150, 3), lambda: ints(150, 4, 150, 8), w(16, 6))
def edge_conv(p, i, k):
    n = torch.gather(p[:, None].expand(4, 150, 150, 3), 2, i[..., None].expand(4, 150, 8, 3))
    c = p[:, :, None].expand_as(n)
    return F.relu(F.linear(torch.cat((c, n - c), -1), k)).amax(2)


simple("deep_sets", lambda a, m, k, o: F.linear(((F.relu(F.linear(a, k)) * m[..., None]).sum(1) / m.sum(1, keepdim=True)), o), x(64, 41, 12), lambda: (uniform(64, 41) > 0.2).float() + 1e-3, w(48, 12), w(12, 48))

# Tables and recommenders.
@program(lambda: ints(4001, 300, 12), x(4001, 16), x(300, 16))
def feature_interaction(i, table, dense):
    e = torch.cat((dense[:, None], table[i]), 1)
    z = e @ e.mT
    r, c = torch.tril_indices(13, 13, -1)
    return torch.cat((dense, z[:, r, c]), 1)


simple("factorisation_machine", lambda v, a: 0.5 * ((a @ v).pow(2) - a.pow(2) @ v.pow(2)).sum(1), w(60, 10), x(1501, 60))
simple("cross_layer", lambda a, k, b: a * (a @ k)[:, None] + b + a, x(1801, 45), w(45), w(45))
simple("soft_tree", lambda a, k, leaf: (torch.stack(((s := torch.sigmoid(a @ k)), 1 - s), -1)[:, :4].prod(-1) @ leaf), x(2001, 30), w(30, 4), w(4, 3))
simple("piecewise_encoding", lambda a, b: ((a[..., None] - b[:-1]) / (b[1:] - b[:-1])).clamp(0, 1).flatten(1), x(901, 14), lambda: torch.linspace(-2, 2, 17))

# Generative parts.
@program(x(301, 40), x(301, 20), w(40, 20), w(40, 20))
def coupling_layer(a, c, s, t):
    l, r = a.chunk(2, -1)
    scale = torch.tanh(F.linear(l + c, s))[:, :20]
    return torch.cat((l, r * scale.exp() + F.linear(l, t)[:, :20]), -1), scale.sum(-1)


simple("latent_sample_and_divergence", lambda m, v, e: (m + (0.5 * v).exp() * e, -0.5 * (1 + v - m * m - v.exp()).sum(-1)), x(401, 64), x(401, 64), x(401, 64))
simple("codes_nearest", lambda z, c: ((i := (z.pow(2).sum(1, keepdim=True) - 2 * z @ c.T + c.pow(2).sum(1)).argmin(1)), z + (c[i] - z)), x(1003, 32), x(257, 32))


@program(lambda: uniform(2001, 3), w(64, 63), w(4, 64))
def radiance_field(p, a, b):
    f = 2.0 ** torch.arange(10) * math.pi
    h = (p[..., None] * f).flatten(1)
    return torch.sigmoid(F.linear(F.relu(F.linear(torch.cat((p, h.sin(), h.cos()), -1), a)), b))


@program(lambda: uniform(501, 64, 4))
def volume_rendering(s):
    alpha = 1 - torch.exp(-F.relu(s[..., 3]) * 0.1)
    t = torch.cumprod(torch.cat((torch.ones(501, 1), 1 - alpha[:, :-1] + 1e-10), 1), 1)
    return ((alpha * t)[..., None] * torch.sigmoid(s[..., :3])).sum(1)


simple("sine_layers", lambda a, k, o: torch.sin(30 * F.linear(torch.sin(30 * F.linear(a, k)), o)), lambda: 2 * uniform(4001, 2) - 1, w(48, 2), w(48, 48))


@program(x(2, 4, 32, 32), x(2, 4, 32, 32), lambda: torch.tensor([0.3, 0.7]))
def guided_denoising_step(c, u, a):
    e = u + 7.5 * (c - u)
    a = a[:, None, None, None]
    z = ((c - (1 - a).sqrt() * e) / a.sqrt()).clamp(-1, 1)
    return a.sqrt() * z + (1 - a).sqrt() * e


simple("modulated_norm", lambda a, s: F.layer_norm(a, (72,)) * (1 + s[:, None, :72]) + s[:, None, 72:], x(4, 257, 72), x(4, 144))
simple("timestep_embedding", lambda t: torch.cat(((p := t[:, None] * torch.exp(-math.log(10000) * torch.arange(64) / 64)).cos(), p.sin()), -1), lambda: 1000 * uniform(129))
simple("weight_demodulation", lambda k, s: (m := k * s[:, None, :, None, None]) * m.pow(2).sum((2, 3, 4), keepdim=True).add(1e-8).rsqrt(), w(32, 24, 3, 3), x(4, 24))

# Sequences.
@program(x(7, 30, 11), x(11, 11), lambda: ints(11, 7, 30))
def crf_partition(e, t, y):
    a = e[:, 0]
    for i in range(1, 12):
        a = torch.logsumexp(a[:, :, None] + t + e[:, i, None], 1)
    return torch.logsumexp(a, 1) - e.gather(2, y[..., None]).sum((1, 2))


@program(x(5, 12, 9), x(9, 9))
def viterbi(e, t):
    s, back = e[:, 0], []
    for i in range(1, 12):
        s, j = (s[:, :, None] + t).max(1)
        s = s + e[:, i]
        back.append(j)
    return s.max(1)[0], torch.stack(back)


@program(x(3, 10, 20), w(80, 20), w(80, 20), w(80))
def lstm_of_ten(a, wi, wh, b):
    h = c = torch.zeros(3, 20)
    for t in range(10):
        i, f, g, o = (F.linear(a[:, t], wi, b) + F.linear(h, wh)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h, c


simple("label_smoothing", lambda a, y: (-(0.9 * (p := a.log_softmax(-1)).gather(1, y[:, None]).squeeze(1) + 0.1 * p.mean(-1))).mean(), x(601, 103), lambda: ints(103, 601))
simple("distillation", lambda a, b: F.kl_div((a / 4).log_softmax(-1), (b / 4).softmax(-1), reduction="batchmean") * 16, x(401, 207), x(401, 207))
simple("minimum_p_sampling", lambda a: torch.where((p := a.softmax(-1)) < 0.1 * p.amax(-1, keepdim=True), -float("inf"), a).log_softmax(-1), x(9, 8003))
simple("stick_breaking", lambda a: (s := torch.sigmoid(a)) * F.pad((1 - s[:, :-1]).cumprod(1), (1, 0), value=1.0), x(503, 61))

# Weights in other forms.
simple("adapter_of_low_rank", lambda a, k, u, v: F.linear(a, k) + 2 * F.linear(F.linear(a, u), v), x(129, 200), w(200, 200), w(8, 200), w(200, 8))
simple("weight_norm_linear", lambda a, v, g: F.linear(a, v * (g / v.norm(dim=1))[:, None]), x(129, 200), w(150, 200), lambda: uniform(150))
simple("i8_rows_dequantised", lambda a, q, s: F.linear(a, q.to(torch.float32) * s[:, None]), x(33, 256), lambda: ints(255, 300, 256).sub(127).to(I8), lambda: uniform(300) / 100)
simple("i8_activations", lambda a, q: ((a / (s := a.abs().amax(-1, keepdim=True) / 127)).round().clamp(-127, 127).to(I8).to(torch.float32) @ q.to(torch.float32)) * s, x(65, 256), lambda: ints(255, 256, 100).sub(127).to(I8))
simple("ternary_weights", lambda a, k: F.linear(a, (k / (s := k.abs().mean())).round().clamp(-1, 1) * s), x(65, 300), w(200, 300))
simple("kronecker_layer", lambda a, p, q: (p @ a.unflatten(-1, (20, 15)) @ q.T).flatten(-2), x(257, 300), w(16, 20), w(12, 15))
simple("circulant_layer", lambda a, k: torch.fft.irfft(torch.fft.rfft(a) * torch.fft.rfft(k), n=256), x(301, 256), x(256))
simple("householder_rows", lambda a, v: a - 2 * (a @ v)[:, None] * v / v.dot(v), x(1201, 96), x(96))
simple("moe_dense_mixture", lambda a, g, k: torch.einsum("ne,nef->nf", F.linear(a, g).softmax(-1), torch.einsum("nd,efd->nef", a, k)), x(301, 40), w(6, 40), w(6, 30, 40))
