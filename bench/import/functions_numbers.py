"""More functions that bench/import --functions times: statistics, signals, graphs, physics, geometry, integers and
tables by hand. cases.py says what a file of this kind has.
"""
import math

import torch
import torch.nn.functional as F

from cases import CASES, F16, F64, ints, program, rand, simple, uniform

U8, I8, I16, I32 = torch.uint8, torch.int8, torch.int16, torch.int32


# Statistics and learning by hand.
simple("standardised_covariance", lambda x: ((x - x.mean(0)) / x.std(0)).t() @ ((x - x.mean(0)) / x.std(0)) / 2000, lambda: rand(2001, 90))
simple("correlation_f64", lambda x: (c := F.normalize(x - x.mean(1, keepdim=True), dim=1)) @ c.t(), lambda: rand(83, 1201, dtype=F64))
simple("principal_components", lambda x: torch.linalg.eigh((c := x - x.mean(0)).t() @ c / 700)[0].flip(0), lambda: rand(701, 57))
simple("mahalanobis", lambda x, c: ((x @ torch.linalg.inv(c @ c.t() + 20 * torch.eye(33))) * x).sum(1), lambda: rand(5003, 33), lambda: rand(33, 33))
simple("histogram_by_one_hot", lambda x: F.one_hot(((x + 4) * 4).long().clamp(0, 31), 32).sum(0), lambda: rand(30011))
simple("histogram_per_channel", lambda x: torch.zeros(12, 64).scatter_add(1, (x * 64).long(), torch.ones_like(x)), lambda: uniform(12, 20011))
simple("joint_histogram", lambda x, y: torch.zeros(1024).index_add(0, (x // 8).long() * 32 + (y // 8).long(), torch.ones(90001)), *[lambda: ints(256, 90001, dtype=U8)] * 2)
simple("quantile_normalisation", lambda x: (s := x.sort(0))[0].mean(1)[s[1].argsort(0)], lambda: rand(1501, 40))
simple("percentiles_of_columns", lambda x: torch.quantile(x, torch.tensor([0.05, 0.5, 0.95]), dim=0), lambda: rand(701, 30))
simple("spearman_ranks", lambda x: (r := F.normalize(x.argsort(dim=1, stable=True).argsort(dim=1, stable=True) - 750.0, dim=1)) @ r.t(), lambda: rand(37, 1501))
simple("robust_scale", lambda x: (x - (m := x.median(0)[0])) / (x - m).abs().median(0)[0], lambda: rand(1501, 83))
simple("winsorised_z_scores", lambda x: ((x - x.mean(0)) / x.std(0)).clamp(-3, 3), lambda: rand(4003, 130))
simple("rbf_kernel", lambda x, y: torch.exp(-(x.pow(2).sum(1)[:, None] + y.pow(2).sum(1) - 2 * x @ y.t()).clamp(min=0) / 9), lambda: rand(503, 21), lambda: rand(607, 21))
simple("cauchy_kernel_f64", lambda x, y: 1 / (1 + torch.cdist(x, y) ** 2), lambda: rand(301, 5, dtype=F64), lambda: rand(407, 5, dtype=F64))
simple("lorentz_distances", lambda x, y: torch.acosh((torch.outer(x[:, 0], y[:, 0]) - x[:, 1:] @ y[:, 1:].t()).clamp(min=1 + 1e-6)), lambda: rand(501, 17) + 9, lambda: rand(403, 17) + 9)
simple("gaussian_process", lambda x, y, z: gaussian_process(x, y, z), lambda: rand(151, 3), lambda: rand(151), lambda: rand(203, 3))
simple("log_density_of_mixture", lambda x, m, s, w: (w.log_softmax(0) - (((x[:, None] - m) / s.exp()) ** 2 / 2 + s).sum(-1)).logsumexp(1), lambda: rand(3001, 7), lambda: rand(19, 7), lambda: rand(19, 7) / 3, lambda: rand(19))
simple("factorisation_machine", lambda x, v: 0.5 * ((x @ v) ** 2 - x ** 2 @ v ** 2).sum(1), lambda: rand(1501, 203), lambda: rand(203, 20))
simple("feature_crosses_dlrm", lambda x: (x @ x.mT)[:, (i := torch.tril_indices(27, 27, -1))[0], i[1]], lambda: rand(501, 27, 16))
simple("embedding_bag_weighted", lambda w, i, s: (F.embedding(i, w) * s[..., None]).sum(1), lambda: rand(20011, 36), lambda: ints(20011, 901, 11), lambda: rand(901, 11))
simple("field_aware_lookup", lambda w, i: w[torch.arange(26), i].flatten(1), lambda: rand(26, 1001, 12), lambda: ints(1001, 1501, 26))
simple("naive_bayes_scores", lambda c, p: c.float() @ (p + 1e-3).log().t() + (1 - c.float()) @ (1 - p * 0.99).log().t(), lambda: ints(2, 901, 301, dtype=U8), lambda: uniform(40, 301))
simple("decision_stumps", lambda x, f, t, v: torch.where(x[:, f] > t, v[0], v[1]).sum(1), lambda: rand(3001, 60), lambda: ints(60, 90), lambda: rand(90), lambda: rand(2, 90))
simple("gini_of_groups", lambda i, y: 1 - ((c := torch.zeros(301, 8).index_put((i, y), torch.ones(60007), accumulate=True)) / c.sum(1, keepdim=True).clamp(min=1)).pow(2).sum(1), lambda: ints(301, 60007), lambda: ints(8, 60007))
simple("ridge_regression", lambda x, y: torch.linalg.solve(x.t() @ x + 3 * torch.eye(70), x.t() @ y), lambda: rand(1501, 70), lambda: rand(1501, 5))
simple("power_iteration", lambda a, v: power_iteration(a, v), lambda: rand(401, 401) / 20, lambda: rand(401))
simple("sinkhorn_8", lambda c: sinkhorn(c), lambda: rand(203, 301))
simple("newton_schulz", lambda x: newton_schulz(x), lambda: rand(130, 203))
simple("soft_threshold_steps", lambda a, y: soft_threshold(a, y), lambda: rand(201, 303) / 20, lambda: rand(201, 9))


def gaussian_process(x, y, z):
    k = lambda a, b: torch.exp(-torch.cdist(a, b) ** 2 / 2)
    l = torch.linalg.cholesky(k(x, x) + 0.1 * torch.eye(151))
    v = torch.linalg.solve_triangular(l, k(x, z), upper=False)
    return v.t() @ torch.linalg.solve_triangular(l, y[:, None], upper=False), 1 - v.pow(2).sum(0)


def power_iteration(a, v):
    for _ in range(12):
        v = a @ v
        v = v / v.norm()
    return v @ (a @ v)


def sinkhorn(c):
    u, v = torch.zeros(203), torch.zeros(301)
    for _ in range(8):
        u = -(c + v).logsumexp(1)
        v = -(c + u[:, None]).logsumexp(0)
    return (c + u[:, None] + v).exp()


def newton_schulz(x):
    x = x / x.norm()
    for _ in range(5):
        a = x @ x.t()
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    return x


def soft_threshold(a, y):
    z = torch.zeros(303, 9)
    for _ in range(10):
        z = z - 0.1 * a.t() @ (a @ z - y)
        z = z.sign() * (z.abs() - 0.01).relu()
    return z


# Signals and series.
simple("moving_averages_of_prices", lambda x: F.avg_pool1d(x, 20, 1) / F.avg_pool1d(x, 50, 1)[..., :1] - 1, lambda: 1 + uniform(60, 1, 1501))
simple("exponential_smoothing_by_matrix", lambda x: x @ torch.where((d := torch.arange(203) - torch.arange(203)[:, None]) >= 0, 0.1 * 0.9 ** d, 0.0), lambda: rand(701, 203))
simple("exponential_smoothing_24_steps", lambda x: smoothing(x), lambda: rand(24, 9001))
simple("maximum_drawdown", lambda r: ((w := (1 + r / 100).cumprod(1)) / w.cummax(1)[0] - 1).amin(1), lambda: rand(203, 1501))
simple("log_returns_volatility", lambda p: p.log().diff(dim=1).unfold(1, 21, 1).std(-1), lambda: 1 + uniform(90, 801))
simple("running_log_sum_exp_f64", lambda x: (x.logcumsumexp(1) - torch.arange(1, 602, dtype=F64).log()).exp(), lambda: rand(103, 601, dtype=F64))
simple("band_pass_fft", lambda x: torch.fft.irfft(torch.fft.rfft(x) * ((f := torch.fft.rfftfreq(1000)) > 0.05) * (f < 0.2), n=1000), lambda: rand(150, 1000))
simple("spectrogram_by_frames", lambda x: torch.fft.rfft(x.unfold(1, 400, 160) * torch.hann_window(400)).abs().pow(2), lambda: rand(3, 16000))
simple("log_mel", lambda x, m: (torch.fft.rfft(x.unfold(1, 512, 256) * torch.hann_window(512)).abs() ** 2 @ m).clamp(min=1e-5).log10(), lambda: rand(3, 16001), lambda: uniform(257, 80))
simple("overlap_add", lambda x: F.fold(x, (1, 4080), (1, 256), stride=(1, 64)), lambda: rand(6, 256, 60))
simple("fft_convolution", lambda x, h: torch.fft.irfft(torch.fft.rfft(x, n=1500) * torch.fft.rfft(h, n=1500), n=1500)[:, :1200], lambda: rand(201, 1200), lambda: rand(201, 300))
simple("hilbert_envelope", lambda x: torch.fft.ifft(torch.fft.fft(x) * (1 + torch.sign(300.5 - torch.arange(600)))).abs(), lambda: rand(203, 600))
simple("mu_law_u8", lambda x: ((x.sign() * torch.log1p(255 * x.abs()) / math.log(256) + 1) / 2 * 255 + 0.5).to(U8), lambda: uniform(400003) * 2 - 1)
simple("synth_of_harmonics", lambda f, a: (a[:, :, None] * (2 * math.pi * f[:, None, None] * torch.arange(1, 9)[:, None] * torch.arange(2000) / 16000).sin()).sum(1), lambda: 100 + 100 * uniform(13), lambda: uniform(13, 8))
simple("dynamic_warping_costs", lambda x, y: (c := (x[:, :, None] - y[:, None]).abs()).cummin(1)[0] + c.cumsum(2), lambda: rand(9, 151), lambda: rand(9, 163))


def smoothing(x):
    s, out = x[0], [x[0]]
    for t in range(1, 24):
        s = 0.8 * s + 0.2 * x[t]
        out.append(s)
    return torch.stack(out)


# Graphs and segments.
simple("graph_convolution", lambda x, i, j, w: torch.zeros(2001, 40).index_add(0, j, (x @ w)[i]).relu(), lambda: rand(2001, 50), lambda: ints(2001, 15013), lambda: ints(2001, 15013), lambda: rand(50, 40))
simple("scatter_mean_of_edges", lambda e, j: torch.zeros(3001, 20).index_add(0, j, e) / torch.zeros(3001).index_add(0, j, torch.ones(20011)).clamp(min=1)[:, None], lambda: rand(20011, 20), lambda: ints(3001, 20011))
simple("edge_softmax_of_heads", lambda s, i, j: edge_softmax(s, i, j), lambda: rand(2001, 4), lambda: ints(2001, 20011), lambda: ints(2001, 20011))
simple("degree_normalised_product", lambda a, x: (d := (a.sum(1) + 1).rsqrt())[:, None] * ((a + torch.eye(601)) @ (d[:, None] * x)), lambda: (uniform(601, 601) > 0.9).float(), lambda: rand(601, 45))
simple("segment_sums_by_offsets", lambda x, e: (s := F.pad(x.cumsum(0), (0, 0, 1, 0)))[e[1:]] - s[e[:-1]], lambda: rand(10007, 12, dtype=F64), lambda: ints(10008, 1501).sort()[0])
simple("neighbour_maxima", lambda x, i: x[i].amax(1) - x, lambda: rand(2003, 24), lambda: ints(2003, 2003, 9))
simple("edge_features", lambda x, i: torch.cat((x[:, None].expand(-1, 8, -1), x[i] - x[:, None]), -1), lambda: rand(1501, 16), lambda: ints(1501, 1501, 8))
simple("label_propagation", lambda a, y: label_propagation(a, y), lambda: uniform(401, 401), lambda: uniform(401, 7))
simple("pairs_closer_than", lambda x: ((d := (x[:, None] - x).norm(dim=-1)) < 0.5).sum(1), lambda: rand(501, 3))
simple("shortest_paths_by_min_plus", lambda a: (a[:, :, None] + a).amin(1), lambda: uniform(120, 120))


def edge_softmax(s, i, j):
    e = F.leaky_relu(s[i] + s[j], 0.2)
    top = torch.full((2001, 4), -1e9).scatter_reduce(0, j[:, None].expand(-1, 4), e, "amax")
    p = (e - top[j]).exp()
    return p / torch.zeros(2001, 4).index_add(0, j, p)[j]


def label_propagation(a, y):
    a, z = a / a.sum(1, keepdim=True), y
    for _ in range(6):
        z = 0.9 * a @ z + 0.1 * y
    return z.argmax(1)


# Physics and grids.
@program(lambda: uniform(2, 100003))
def lotka_volterra_rk4(s):
    f = lambda t: torch.stack((t[0] * (1.1 - 0.4 * t[1]), t[1] * (0.1 * t[0] - 0.4)))
    k1 = f(s)
    k2 = f(s + 0.05 * k1)
    k3 = f(s + 0.05 * k2)
    return s + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + f(s + 0.1 * k3))


@program(lambda: rand(301, 3), lambda: uniform(301))
def n_body_forces(x, m):
    d = x - x[:, None]
    r = (d.pow(2).sum(-1) + 0.01) ** -1.5
    return (d * (m * r)[..., None]).sum(1)


@program(lambda: rand(50003, 3))
def lorenz_4_steps(s):
    for _ in range(4):
        x, y, z = s.unbind(1)
        s = s + 0.01 * torch.stack((10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z), 1)
    return s


@program(lambda: (uniform(301, 403) > 0.7).to(U8))
def life_by_roll(x):
    n = sum(torch.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return ((n == 3) | ((n == 2) & (x == 1))).to(U8)


@program(lambda: (uniform(1, 1, 301, 303) > 0.7).float())
def life_by_conv(x):
    k = torch.ones(1, 1, 3, 3)
    n = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="circular"), k) - x
    return ((n == 3) | ((n == 2) & (x > 0))).float()


@program(lambda: rand(71, 73, 79))
def heat_3d(x):
    c = x[1:-1, 1:-1, 1:-1]
    return c + 0.1 * (x[2:, 1:-1, 1:-1] + x[:-2, 1:-1, 1:-1] + x[1:-1, 2:, 1:-1] + x[1:-1, :-2, 1:-1] + x[1:-1, 1:-1, 2:] + x[1:-1, 1:-1, :-2] - 6 * c)


@program(*[lambda: uniform(203, 207)] * 2)
def reaction_diffusion(u, v):
    around = lambda t: torch.roll(t, 1, 0) + torch.roll(t, -1, 0) + torch.roll(t, 1, 1) + torch.roll(t, -1, 1) - 4 * t
    r = u * v * v
    return u + 0.16 * around(u) - r + 0.035 * (1 - u), v + 0.08 * around(v) + r - 0.1 * v


@program(*[lambda: rand(301, 305)] * 2)
def divergence_and_curl(u, v):
    dx, dy = lambda t: (t[1:-1, 2:] - t[1:-1, :-2]) / 2, lambda t: (t[2:, 1:-1] - t[:-2, 1:-1]) / 2
    return dx(u) + dy(v), dx(v) - dy(u)


simple("wave_step_f64", lambda x, y: 2 * x - y + 0.2 * F.pad(x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1], (1, 1, 1, 1)), *[lambda: rand(301, 303, dtype=F64)] * 2)
simple("advection_upwind", lambda x, v: x - 0.1 * torch.where(v > 0, v * (x - torch.roll(x, 1, 1)), v * (torch.roll(x, -1, 1) - x)), *[lambda: rand(201, 1003)] * 2)
simple("poisson_by_fft", lambda x: torch.fft.irfft2(torch.fft.rfft2(x) / (1 + torch.arange(120)[:, None] ** 2 + torch.arange(65) ** 2)), lambda: rand(4, 120, 128))
simple("matrix_power_5", lambda a: torch.linalg.matrix_power(a, 5), lambda: rand(201, 17, 17) / 4)
simple("complex_rotations", lambda z, t: torch.view_as_real(torch.view_as_complex(z) * torch.polar(torch.ones_like(t), t)), lambda: rand(301, 1001, 2), lambda: rand(1001))
simple("lennard_jones", lambda x: ((s := 1 / ((x[:, None] - x).pow(2).sum(-1) + torch.eye(301)) ** 3) * (s - 1)).sum(1), lambda: 3 * rand(301, 3))
simple("ising_energies", lambda s: (-s * (torch.roll(s, 1, 1) + torch.roll(s, -1, 1) + torch.roll(s, 1, 2) + torch.roll(s, -1, 2))).sum((1, 2)), lambda: 2 * ints(2, 30, 64, 67, dtype=I32) - 1)
simple("black_scholes_f64", lambda s, k, t: black_scholes(s, k, t), *[lambda: 1 + uniform(50021, dtype=F64)] * 3)
simple("newton_roots", lambda c: newton_roots(c), lambda: 1 + uniform(200003))
simple("batched_tridiagonal", lambda d, b: torch.linalg.solve(torch.diag_embed(4 + d) + torch.diag_embed(d[:, 1:], 1) + torch.diag_embed(d[:, :-1], -1), b), lambda: uniform(203, 24), lambda: rand(203, 24))


def black_scholes(s, k, t):
    n = lambda x: 0.5 * (1 + torch.erf(x / math.sqrt(2)))
    v = 0.2 * t.sqrt()
    d = ((s / k).log() + 0.05 * t) / v + v / 2
    return s * n(d) - k * torch.exp(-0.05 * t) * n(d - v)


def newton_roots(c):
    x = c
    for _ in range(6):
        x = x - (x * x * x - c) / (3 * x * x)
    return x


# Geometry.
@program(lambda: rand(30011, 4), lambda: rand(30011, 4))
def quaternion_product(p, q):
    a, b, c, d = p.unbind(-1)
    e, f, g, h = q.unbind(-1)
    return torch.stack((a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g, a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e), -1)


@program(lambda: rand(9001, 3))
def rotations_from_angles(r):
    (a, b, c), (x, y, z) = r.cos().unbind(1), r.sin().unbind(1)
    rows = (a * b, a * y * z - x * c, a * y * c + x * z, x * b, x * y * z + a * c, x * y * c - a * z, -y, b * z, b * c)
    return torch.stack(rows, -1).reshape(-1, 3, 3)


@program(lambda: rand(11, 3, 3) / 9, lambda: uniform(11, 3001, 2))
def homographies_of_points(h, p):
    q = F.pad(p, (0, 1), value=1.0) @ (h + torch.eye(3)).mT
    return q[..., :2] / q[..., 2:].clamp(min=0.1)


@program(lambda: rand(5003, 3), lambda: ints(5001, 10007, 1) + torch.arange(3))
def triangle_normals(v, f):
    a, b, c = v[f].unbind(1)
    return F.normalize(torch.linalg.cross(b - a, c - a), dim=-1)


@program(lambda: rand(4003, 3), lambda: rand(4003, 3), lambda: rand(29, 3))
def rays_meet_spheres(o, d, c):
    d = F.normalize(d, dim=-1)
    to = c - o[:, None]
    b = (to * d[:, None]).sum(-1)
    e = b * b - to.pow(2).sum(-1) + 0.25
    return torch.where(e > 0, b - e.clamp(min=0).sqrt(), float("inf")).amin(1)


@program(lambda: uniform(3001, 2), lambda: uniform(23, 2))
def points_in_polygon(p, v):
    a, b = v, v.roll(-1, 0)
    x, y = p[:, :1], p[:, 1:]
    crosses = (a[:, 1] > y) != (b[:, 1] > y)
    left = x < (b[:, 0] - a[:, 0]) * (y - a[:, 1]) / (b[:, 1] - a[:, 1]) + a[:, 0]
    return (crosses & left).sum(1) % 2 == 1


simple("camera_projection", lambda k, p: (c := p @ k[:, :, :3].mT + k[:, None, :, 3])[..., :2] / c[..., 2:].clamp(min=1e-3), lambda: rand(7, 3, 4), lambda: rand(7, 4001, 3))
simple("volume_rendering", lambda s, c: ((w := (a := 1 - torch.exp(-F.softplus(s) * 0.05)) * torch.cumprod(F.pad(1 - a[:, :-1], (1, 0), value=1.0), 1))[..., None] * c).sum(1), lambda: rand(1001, 64), lambda: uniform(1001, 64, 3))
simple("positional_encoding_of_rays", lambda x: torch.cat((x, (y := (x[..., None] * 2.0 ** torch.arange(6)).flatten(1)).sin(), y.cos()), -1), lambda: rand(9001, 3))
simple("great_circle_to_all", lambda a, b: 2 * torch.asin((((a[:, None, 0] - b[:, 0]) / 2).sin() ** 2 + a[:, None, 0].cos() * b[:, 0].cos() * ((a[:, None, 1] - b[:, 1]) / 2).sin() ** 2).sqrt()), lambda: uniform(203, 2), lambda: uniform(301, 2))
simple("chamfer_distance", lambda a, b: ((d := torch.cdist(a, b)).amin(2).mean(1) + d.amin(1).mean(1)), lambda: rand(5, 203, 3), lambda: rand(5, 211, 3))


# Bits, integers and bytes.
@program(lambda: ints(1 << 30, 200003, dtype=I32))
def population_count(x):
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    return (((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101) >> 24


@program(lambda: ints(1 << 30, 200003, dtype=I32))
def xorshift_3_rounds(x):
    for _ in range(3):
        x = x ^ (x << 13)
        x = x ^ (x >> 17)
        x = x ^ (x << 5)
    return x


@program(lambda: ints(40000, 100003))
def dates_of_days(n):
    z = n + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = torch.where(mp < 10, mp + 3, mp - 9)
    return yoe + era * 400 + (month <= 2), month, doy - (153 * mp + 2) // 5 + 1


@program(lambda: ints(256, 40013, 4, dtype=U8))
def bytes_to_i32(x):
    a = x.to(I32)
    return a[:, 0] | (a[:, 1] << 8) | (a[:, 2] << 16) | (a[:, 3] << 24)


@program(lambda: ints(16, 301, 1001, dtype=U8), lambda: ints(16, 301, 1001, dtype=U8))
def pack_and_unpack_nibbles(a, b):
    packed = a | (b << 4)
    return packed, (packed & 15).to(I8) - 8, (packed >> 4).to(I8) - 8


@program(lambda: ints(1 << 10, 60013, dtype=I32), lambda: ints(1 << 10, 60013, dtype=I32))
def morton_codes(x, y):
    def spread(v):
        for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
            v = (v | (v << shift)) & mask
        return v
    return spread(x) | (spread(y) << 1)


@program(lambda: 2 * ints(1 << 20, 50021) + 1)
def modular_power(x):
    y = torch.ones_like(x)
    for bit in (1, 0, 1, 1, 0, 1):
        y = y * y % 1000003
        if bit:
            y = y * x % 1000003
    return y


simple("one_hot_of_bytes", lambda x: F.one_hot((x - 97).long().clamp(0, 27), 28).to(torch.float32), lambda: ints(26, 41, 203, dtype=U8).add(97))
simple("lower_case_and_count", lambda x: ((y := torch.where((x >= 65) & (x <= 90), x + 32, x)), (y[:, None, :] == torch.arange(97, 123, dtype=U8)[:, None]).sum(-1)), lambda: ints(128, 101, 301, dtype=U8))
simple("edit_costs_of_strings", lambda a, b: (a[:, :, None] != b[:, None]).to(I32).cumsum(-1).amin(-1), lambda: ints(26, 101, 40, dtype=U8), lambda: ints(26, 101, 43, dtype=U8))
simple("rolling_hash_of_trigrams", lambda x: ((x[:, :-2].long() * 31 + x[:, 1:-1]) * 31 + x[:, 2:]) % 50021, lambda: ints(128, 203, 1001, dtype=U8))
simple("hash_buckets_i64", lambda x: (x * 2654435761 % (1 << 32)) % 10007, lambda: ints(1 << 40, 200003))
simple("times_of_seconds", lambda t: torch.stack((t // 3600 % 24, t // 60 % 60, t % 60), -1), lambda: ints(1 << 30, 100003, dtype=I32))
simple("grey_code_i16", lambda x: x ^ (x >> 1), lambda: ints(32767, 700001, dtype=I16))
simple("alpha_blend_u8", lambda a, b, m: ((a.to(I16) * m + b.to(I16) * (255 - m.to(I16)) + 127) // 255).to(U8), *[lambda: ints(256, 301, 1001, dtype=U8)] * 3)
simple("i8_dot_products", lambda a, b: (a.to(I32) * b.to(I32)).sum(-1), *[lambda: ints(127, 1501, 256, dtype=I8)] * 2)
simple("fixed_point_q15", lambda a, b: ((a.to(I32) * b.to(I32) + 16384) >> 15).clamp(-32768, 32767).to(I16), *[lambda: ints(32767, 401, 1001, dtype=I16)] * 2)
simple("parity_checks", lambda h, x: (h.float() @ x.float()).remainder(2).to(U8), lambda: ints(2, 203, 401, dtype=U8), lambda: ints(2, 401, 97, dtype=U8))
simple("triangular_numbers_i64", lambda x: torch.where(x % 2 == 0, x // 2 * (x + 1), (x + 1) // 2 * x), lambda: ints(1 << 30, 200003))


# What is asked of tables of numbers.
simple("masked_mean_and_std", lambda x, m: ((a := (x * m).sum(0) / (n := m.sum(0).clamp(min=2))), (((x - a) ** 2 * m).sum(0) / (n - 1)).sqrt()), lambda: rand(2003, 130), lambda: (rand(2003, 130) > 0).float())
simple("fill_missing_with_means", lambda x: torch.where(x.isnan(), x.nanmean(0), x), lambda: torch.where((x := rand(2003, 107)) > 1, float("nan"), x))
simple("forward_fill", lambda x, m: x.gather(1, torch.where(m, torch.arange(1001), 0).cummax(1)[0]), lambda: rand(201, 1001), lambda: rand(201, 1001) > 1)
simple("differences_and_signs", lambda x: (x[:, 1:] - x[:, :-1]).sign().to(I8), lambda: rand(401, 1003))
simple("run_lengths", lambda x: (i := torch.arange(1001)) - torch.where(F.pad(x[:, 1:] != x[:, :-1], (1, 0)), i, 0).cummax(1)[0], lambda: ints(3, 203, 1001))
simple("share_of_group", lambda x, g: x / torch.zeros(1001).index_add(0, g, x)[g], lambda: uniform(100003), lambda: ints(1001, 100003))
simple("compare_versions", lambda a, b: (a[:, None] * torch.tensor([1000000, 1000, 1]) > b * torch.tensor([1000000, 1000, 1])).any(-1), lambda: ints(100, 301, 3), lambda: ints(100, 401, 3))
simple("clip_by_norm_of_parts", lambda a, b, c: clip_norms(a, b, c), lambda: rand(301, 501), lambda: rand(501, 203), lambda: rand(203))
simple("cosine_schedule_blend", lambda x, e, t: t.mul(math.pi / 2).cos()[:, None] * x + t.mul(math.pi / 2).sin()[:, None] * e, *[lambda: rand(301, 1003)] * 2, lambda: uniform(301))
simple("outer_differences_f16", lambda x, y: (x[:, None] - y).abs().clamp(max=1), lambda: rand(701, dtype=F16), lambda: rand(803, dtype=F16))
simple("softmax_f16_odd", lambda x: x.softmax(-1), lambda: rand(701, 333, dtype=F16))
simple("layer_norm_f64_odd", lambda x, w: F.layer_norm(x, (211,), w), lambda: rand(1201, 211, dtype=F64), lambda: rand(211, dtype=F64))
simple("products_f16_97", lambda a, b: F.relu(a @ b), lambda: rand(97, 401, dtype=F16), lambda: rand(401, 203, dtype=F16))
simple("bmm_f64_odd", lambda a, b: a @ b, lambda: rand(41, 37, 53, dtype=F64), lambda: rand(41, 53, 29, dtype=F64))


def clip_norms(*parts):
    total = torch.stack([p.pow(2).sum() for p in parts]).sum().sqrt()
    return tuple(p * (1 / total).clamp(max=1) for p in parts)
