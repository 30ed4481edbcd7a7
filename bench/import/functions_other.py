"""Further functions that bench/import --functions times: audio, robotics, recommenders, graph networks, samplers of
diffusion, tables, pictures after a detector, physics, finance, sequences, tokenisers and quantised arithmetic.
cases.py says what a file of this kind has.
"""
import math

import torch
import torch.nn.functional as F

from cases import BF16, CASES, F16, F64, ints, program, rand, simple, uniform

U8, I8, I16, I32 = torch.uint8, torch.int8, torch.int16, torch.int32


# Audio.
simple("pre_emphasis", lambda x: torch.cat((x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]), 1), lambda: rand(7, 48001))
simple("stereo_to_mid_side", lambda x: torch.stack((x[..., 0] + x[..., 1], x[..., 0] - x[..., 1]), -1) * 0.5, lambda: rand(90001, 2))
simple("pcm16_to_planes", lambda x: (x.to(torch.float32) / 32768).t().contiguous(), lambda: (ints(65535, 70001, 2) - 32768).to(I16))
simple("planes_to_pcm16", lambda x: (x.clamp(-1, 1) * 32767).round().to(I16).t().contiguous(), lambda: rand(2, 70001))
simple("mu_law_of_f32", lambda x: ((torch.sign(x) * torch.log1p(255 * x.abs()) / math.log(256) + 1) * 127.5 + 0.5).to(U8), lambda: 2 * uniform(160003) - 1)
simple("framed_energy", lambda x: x.unfold(1, 400, 160).pow(2).mean(-1).clamp(min=1e-9).log(), lambda: rand(3, 32001))
simple("windowed_frames", lambda x, w: x.unfold(0, 512, 128) * w, lambda: rand(40961), lambda: uniform(512))
simple("mel_db", lambda p, m: (10 * (p @ m).clamp(min=1e-10).log10()).sub(10).clamp(min=-80), lambda: uniform(301, 257), lambda: uniform(257, 64))
simple("deltas_of_features", lambda x: (F.pad(x, (2, 2), mode="replicate").unfold(1, 5, 1) * torch.arange(-2.0, 3)).sum(-1) / 10, lambda: rand(80, 1501))
simple("cross_fade", lambda a, b: torch.cat((a[:, :-700], a[:, -700:] * torch.linspace(1, 0, 700) + b[:, :700] * torch.linspace(0, 1, 700), b[:, 700:]), 1), lambda: rand(2, 20001), lambda: rand(2, 20001))
simple("zero_crossings", lambda x: ((x[:, 1:] * x[:, :-1]) < 0).sum(1), lambda: rand(31, 8001))
simple("overlap_add", lambda x: F.fold(x[None], (1, 20096), (1, 512), stride=(1, 128)).flatten(), lambda: rand(512, 154))
simple("comb_of_delays", lambda x: x + 0.5 * F.pad(x, (441, 0))[:, :-441] + 0.25 * F.pad(x, (883, 0))[:, :-883], lambda: rand(2, 44101))
simple("dither_to_i8", lambda x, r: (x * 127 + r - 0.5).round().clamp(-128, 127).to(I8), lambda: rand(3, 40001) / 3, lambda: uniform(3, 40001))


# Robotics.
@program(lambda: rand(20011, 4))
def quaternions_to_matrices(q):
    w, x, y, z = F.normalize(q, dim=-1).unbind(-1)
    return torch.stack((1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)), -1).reshape(-1, 3, 3)


@program(lambda: rand(15013, 4), lambda: rand(15013, 4))
def quaternion_products(p, q):
    a, b, c, d = p.unbind(-1)
    e, f, g, h = q.unbind(-1)
    return torch.stack((a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g,
                        a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e), -1)


@program(lambda: rand(12007, 3), lambda: rand(12007, 4))
def vectors_turned_by_quaternions(v, q):
    w, u = q[:, :1], q[:, 1:]
    t = 2 * torch.linalg.cross(u, v)
    return v + w * t + torch.linalg.cross(u, t)


@program(lambda: rand(9001, 3))
def rodrigues(r):
    t = r.norm(dim=-1, keepdim=True)[..., None].clamp(min=1e-6)
    x, y, z = (r / t[..., 0]).unbind(-1)
    o = torch.zeros_like(x)
    k = torch.stack((o, -z, y, z, o, -x, -y, x, o), -1).reshape(-1, 3, 3)
    return torch.eye(3) + t.sin() * k + (1 - t.cos()) * (k @ k)


@program(lambda: rand(3001, 6))
def planar_arm(q):
    a = q.cumsum(1)
    return torch.stack((a.cos().sum(1), a.sin().sum(1), a[:, -1]), 1)


simple("points_by_many_poses", lambda r, t, p: torch.einsum("nij,nkj->nki", r, p) + t[:, None], lambda: rand(401, 3, 3), lambda: rand(401, 3), lambda: rand(401, 57, 3))
simple("kalman_predict", lambda f, p, q: f @ p @ f.mT + q, lambda: rand(1201, 6, 6), lambda: rand(1201, 6, 6), lambda: rand(6, 6))
simple("lidar_to_cartesian", lambda d, a, e: torch.stack((d * e.cos()[:, None] * a.cos(), d * e.cos()[:, None] * a.sin(), d * e.sin()[:, None]), -1), lambda: uniform(32, 1801), lambda: uniform(1801), lambda: uniform(32))
simple("occupancy_by_voxels", lambda p: torch.zeros(32 * 32 * 8, dtype=I32).index_add(0, ((v := (p * torch.tensor([32, 32, 8])).to(I32))[:, 0] * 256 + v[:, 1] * 8 + v[:, 2]), torch.ones(40009, dtype=I32)), lambda: uniform(40009, 3))
simple("angles_wrapped_f64", lambda x: torch.remainder(x + math.pi, 2 * math.pi) - math.pi, lambda: 9 * rand(100003, dtype=F64))

# Recommender systems.
simple("two_towers", lambda u, v, i, j: (F.normalize(u[i], dim=-1) * F.normalize(v[j], dim=-1)).sum(-1), lambda: rand(9001, 24), lambda: rand(7001, 24), lambda: ints(9001, 8191), lambda: ints(7001, 8191))
simple("sequence_mean_masked", lambda w, i: ((e := w[i]) * (m := (i > 0)[..., None])).sum(1) / m.sum(1).clamp(min=1), lambda: rand(5003, 20), lambda: ints(5003, 401, 21))
simple("bpr_loss", lambda u, p, n: -F.logsigmoid((u * (p - n)).sum(-1)).mean(), *[lambda: rand(7001, 18)] * 3)
simple("pairwise_interactions", lambda x: (x[:, :, None] * x[:, None]).sum(-1), lambda: rand(901, 13, 10))
simple("hashed_features", lambda i, w: w[(i * 31 + torch.arange(9) * 7919) % 4001].sum(1), lambda: ints(1 << 30, 6007, 9), lambda: rand(4001, 6))
simple("top_items_without_seen", lambda s, m: s.masked_fill(m, -1e9).topk(10)[1], lambda: rand(101, 3001), lambda: rand(101, 3001) > 1)
simple("ndcg_gains", lambda r: ((2.0 ** r - 1) / torch.log2(torch.arange(20) + 2.0)).sum(-1), lambda: ints(5, 5003, 20))

# Graph networks.
simple("messages_of_edges", lambda x, e, i, j: torch.zeros(2003, 20).index_add(0, j, F.relu(x[i] + e)), lambda: rand(2003, 20), lambda: rand(12007, 20), lambda: ints(2003, 12007), lambda: ints(2003, 12007))
simple("edge_distances", lambda p, i, j: (p[i] - p[j]).pow(2).sum(-1).sqrt(), lambda: rand(3001, 3), lambda: ints(3001, 24001), lambda: ints(3001, 24001))
simple("radial_basis_of_edges", lambda d, c: torch.exp(-4 * (d[:, None] - c) ** 2) * (0.5 * (torch.cos(d * math.pi / 6) + 1) * (d < 6))[:, None], lambda: 7 * uniform(15013), lambda: uniform(20))
simple("laplacian", lambda a: torch.eye(503) - (d := a.sum(1).rsqrt())[:, None] * a * d, lambda: uniform(503, 503))
simple("concatenated_ends", lambda x, i, j: torch.cat((x[i], x[j], (x[i] - x[j]).abs()), -1), lambda: rand(1501, 9), lambda: ints(1501, 9001), lambda: ints(1501, 9001))
simple("gru_of_nodes", lambda x, h, w, u: (1 - (z := torch.sigmoid((g := x @ w)[:, :20] + (k := h @ u)[:, :20]))) * torch.tanh(g[:, 40:] + torch.sigmoid(g[:, 20:40] + k[:, 20:40]) * k[:, 40:]) + z * h, lambda: rand(2003, 20), lambda: rand(2003, 20), lambda: rand(20, 60) / 5, lambda: rand(20, 60) / 5)
simple("mean_of_neighbours_8", lambda x, n: x[n].mean(1), lambda: rand(2503, 14), lambda: ints(2503, 2503, 8))

# Samplers of diffusion.
simple("ddim_step", lambda x, e, a, b: b.sqrt() * ((x - (1 - a).sqrt() * e) / a.sqrt()).clamp(-1, 1) + (1 - b).sqrt() * e, lambda: rand(4, 4, 63, 65), lambda: rand(4, 4, 63, 65), lambda: uniform(4, 1, 1, 1), lambda: uniform(4, 1, 1, 1))
simple("guidance_f16", lambda e: (p := e.chunk(2))[0] + 7.5 * (p[1] - p[0]), lambda: rand(8, 4, 65, 65, dtype=F16))
simple("euler_ancestral_bf16", lambda x, d, n, s: x + (x - d) / s[0] * s[1] + n * s[2], *[lambda: rand(3, 4, 71, 73, dtype=BF16)] * 3, lambda: uniform(3, dtype=BF16) + 1)
simple("noised_by_steps", lambda x, n, a, t: a[t].sqrt()[:, None, None, None] * x + (1 - a[t]).sqrt()[:, None, None, None] * n, lambda: rand(9, 3, 65, 63), lambda: rand(9, 3, 65, 63), lambda: uniform(1000), lambda: ints(1000, 9))
simple("latents_to_u8_pictures", lambda x: ((x / 2 + 0.5).clamp(0, 1) * 255).round().to(U8).permute(0, 2, 3, 1).contiguous(), lambda: rand(2, 3, 255, 257))
simple("rescaled_guidance", lambda a, b: 0.7 * (c := b + 6 * (a - b)) * (a.std((1, 2, 3), keepdim=True) / c.std((1, 2, 3), keepdim=True)) + 0.3 * c, *[lambda: rand(3, 4, 65, 67)] * 2)
simple("dynamic_threshold", lambda x: x.clamp(-(s := torch.quantile(x.flatten(1).abs(), 0.95, dim=1)[:, None, None, None].clamp(min=1)), s) / s, lambda: rand(3, 3, 63, 61))
simple("latents_packed_2x2", lambda x: x.reshape(2, 16, 31, 2, 33, 2).permute(0, 2, 4, 1, 3, 5).reshape(2, 31 * 33, 64), lambda: rand(2, 16, 62, 66))

# Tables.
simple("missing_by_means", lambda x: torch.where(x.isnan(), x.nanmean(0), x), lambda: torch.where(rand(6007, 23) > 1.5, float("nan"), rand(6007, 23)))
simple("min_max_of_columns", lambda x: (x - (a := x.amin(0))) / (x.amax(0) - a), lambda: rand(9001, 11))
simple("one_hot_columns", lambda i, x: torch.cat((F.one_hot(i, 7).float(), x), 1), lambda: ints(7, 11003), lambda: rand(11003, 5))
simple("bucketised_columns", lambda x: torch.bucketize(x, torch.linspace(-2, 2, 15)), lambda: rand(7001, 9))
simple("target_encoding", lambda i, y: ((s := torch.zeros(301).index_add(0, i, y)) / (torch.zeros(301).index_add(0, i, torch.ones(30011)) + 5))[i], lambda: ints(301, 30011), lambda: rand(30011))
simple("polynomial_features", lambda x: torch.cat((x, x * x, x[:, :1] * x[:, 1:]), 1), lambda: rand(12007, 6))
simple("cyclic_times", lambda t: torch.stack(((a := t % 86400 * (2 * math.pi / 86400)).sin(), a.cos(), t // 86400 % 7), -1), lambda: ints(1 << 28, 30011).float())
simple("lags_of_series", lambda x: torch.stack([x[:, 8 - k:-k or None] for k in range(1, 8)], -1), lambda: rand(13, 4001))
simple("rolling_mean_by_cumsum", lambda x: ((c := F.pad(x.cumsum(1), (1, 0)))[:, 12:] - c[:, :-12]) / 12, lambda: rand(41, 3001, dtype=F64))

# Pictures after a detector.
simple("boxes_of_distances", lambda a, d: torch.cat((a - d[..., :2], a + d[..., 2:]), -1), lambda: rand(3, 8401, 2), lambda: uniform(3, 8401, 4))
simple("dfl_expectation", lambda x: (x.reshape(2, 2101, 4, 16).softmax(-1) * torch.arange(16.0)).sum(-1), lambda: rand(2, 2101, 64))
simple("scores_of_classes", lambda x: (x.sigmoid().max(-1)[0], x.argmax(-1)), lambda: rand(8401, 80))
simple("boxes_clipped_scaled", lambda b: (b * torch.tensor([1.5, 1.4, 1.5, 1.4])).clamp(min=0).minimum(torch.tensor([640.0, 480.0, 640.0, 480.0])), lambda: 500 * uniform(20011, 4))
simple("letter_boxed_u8", lambda x: F.pad(x.permute(2, 0, 1).float() / 255, (12, 12, 40, 41), value=0.447), lambda: ints(256, 399, 457, 3, dtype=U8))
simple("masks_from_prototypes", lambda c, p: ((c @ p.reshape(32, -1)).sigmoid() > 0.5).reshape(-1, 80, 84), lambda: rand(37, 32) / 3, lambda: rand(32, 80, 84))
simple("heat_map_peaks", lambda h: torch.where(F.max_pool2d(h, 3, 1, 1) == h, h, 0), lambda: uniform(2, 17, 96, 72))
simple("key_points_expected", lambda h: ((p := h.flatten(2).softmax(-1).reshape(h.shape)).sum(2) @ torch.arange(48.0), p.sum(3) @ torch.arange(64.0)), lambda: rand(9, 17, 64, 48))
simple("colours_of_classes", lambda x, p: p[x.argmax(0)], lambda: rand(19, 161, 203), lambda: ints(256, 19, 3, dtype=U8))
simple("giou_of_pairs", lambda a, b: giou(a, b), *[lambda: torch.cat((a := uniform(9001, 2), a + uniform(9001, 2)), 1)] * 2)


def giou(a, b):
    area = lambda x: (x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1])
    wh = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])).clamp(min=0)
    hull = (torch.maximum(a[:, 2:], b[:, 2:]) - torch.minimum(a[:, :2], b[:, :2])).prod(1)
    inter = wh.prod(1)
    union = area(a) + area(b) - inter
    return inter / union - (hull - union) / hull


# Physics.
simple("gravity_of_bodies", lambda p, m: ((d := p - p[:, None]) * (m[:, None] / (d.pow(2).sum(-1, keepdim=True) + 0.01) ** 1.5)).sum(1), lambda: rand(251, 3), lambda: uniform(251))
simple("laplacian_2d_f64", lambda u: u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1] - 4 * u[1:-1, 1:-1], lambda: rand(301, 307, dtype=F64))
simple("lattice_boltzmann_moments", lambda f, c: ((r := f.sum(0)), torch.einsum("qxy,qd->dxy", f, c) / r), lambda: uniform(9, 101, 103) + 1, lambda: rand(9, 2))
simple("lorentz_force", lambda v, e, b: e + torch.linalg.cross(v, b), *[lambda: rand(10007, 3)] * 3)
simple("periodic_minimum_image", lambda x: (d := x[:, None] - x) - 5 * (d / 5).round(), lambda: 5 * uniform(203, 3))
simple("wave_packet_complex", lambda x, k: torch.view_as_real(torch.polar(torch.exp(-x * x), k * x)), lambda: rand(40009), lambda: rand(1))
simple("stress_invariants", lambda s: (s.diagonal(dim1=-2, dim2=-1).sum(-1), torch.linalg.det(s)), lambda: rand(7001, 3, 3))
simple("upwind_step", lambda u, v: u - 0.1 * torch.where(v > 0, v * (u - u.roll(1, 1)), v * (u.roll(-1, 1) - u)), lambda: rand(203, 307), lambda: rand(203, 307))

# Finance.
simple("returns_of_prices", lambda p: p[:, 1:] / p[:, :-1] - 1, lambda: uniform(101, 1261) + 1)
simple("drawdowns", lambda p: (p / p.cummax(1)[0] - 1).amin(1), lambda: uniform(203, 1261) + 1)
simple("asian_option_f64", lambda z: (torch.exp((0.02 * z + 0.0001).cumsum(1)).mean(1) - 1).clamp(min=0).mean(), lambda: rand(4001, 63, dtype=F64))
simple("bollinger_bands", lambda p: ((w := p.unfold(1, 20, 1)).mean(-1), w.mean(-1) + 2 * w.std(-1)), lambda: uniform(23, 1261))
simple("portfolio_variances", lambda w, c: torch.einsum("ni,ij,nj->n", w, c, w), lambda: uniform(2003, 33), lambda: rand(33, 33))
simple("bond_prices_f64", lambda y, c: (c * (1 + y[:, None]) ** -torch.arange(1, 31, dtype=F64)).sum(1), lambda: 0.1 * uniform(3001, dtype=F64), lambda: uniform(30, dtype=F64))

# Sequences of letters and tokens.
simple("k_mers", lambda x: (x.unfold(1, 6, 1) * 4 ** torch.arange(6)).sum(-1), lambda: ints(4, 31, 1501))
simple("reverse_complement_u8", lambda x: 3 - x.flip(1), lambda: ints(4, 203, 1001, dtype=U8))
simple("hamming_distances_u8", lambda a, b: (a[:, None] != b).sum(-1), lambda: ints(4, 151, 48, dtype=U8), lambda: ints(4, 97, 48, dtype=U8))
simple("profile_of_alignment", lambda x: F.one_hot(x, 5).float().mean(0), lambda: ints(5, 301, 203))
simple("gc_content", lambda x: ((x == 1) | (x == 2)).unfold(1, 50, 10).float().mean(-1), lambda: ints(4, 37, 3001, dtype=U8))
simple("byte_classes_by_table", lambda x, t: t[x.long()], lambda: ints(256, 100003, dtype=U8), lambda: ints(9, 256, dtype=U8))
simple("bigrams_of_tokens", lambda x: torch.zeros(4096, dtype=I32).index_add(0, x[:-1] * 64 + x[1:], torch.ones(60006, dtype=I32)), lambda: ints(64, 60007))
simple("word_starts", lambda x: (F.pad((x[:, :-1] == 32), (1, 0), value=True) & (x != 32)).cumsum(1), lambda: ints(64, 53, 2003, dtype=U8))
simple("repetition_penalty", lambda s, i: s.scatter(1, i, torch.where((g := s.gather(1, i)) > 0, g / 1.2, g * 1.2)), lambda: rand(9, 16001), lambda: torch.stack([torch.randperm(16001)[:300] for _ in range(9)]))

# Quantised arithmetic.
simple("int4_pairs_to_f16", lambda q, s: ((torch.stack((q & 15, q >> 4), -1).to(F16) - 8).reshape(300, 8, 64) * s).reshape(300, 512), lambda: ints(256, 300, 256, dtype=U8), lambda: uniform(300, 8, 1, dtype=F16))
simple("rows_to_int4_pairs", lambda x: ((q := ((x / x.abs().amax(1, keepdim=True) * 7).round() + 8).to(U8))[:, ::2] | (q[:, 1::2] << 4)), lambda: rand(301, 514))
simple("i8_product_requantised", lambda a, b, s: ((a.float() @ b.float()) * s).round().clamp(-128, 127).to(I8), lambda: ints(127, 101, 203, dtype=I8), lambda: ints(127, 203, 305, dtype=I8), lambda: uniform(305) / 1000)
simple("fake_quantised_channels", lambda x, s: (x / s).round().clamp(-128, 127) * s, lambda: rand(33, 27, 31, 5), lambda: uniform(33, 1, 1, 1) + 0.01)
simple("bits_of_weights_1", lambda x: ((x > 0).reshape(-1, 8).to(U8) << torch.arange(8, dtype=U8)).sum(-1, dtype=U8), lambda: rand(301, 800))
simple("nf4_by_table", lambda q, t, s: (t[torch.stack((q >> 4, q & 15), -1).long()].reshape(-1, 64) * s).reshape(203, 256), lambda: ints(256, 203, 128, dtype=U8), lambda: rand(16), lambda: uniform(812, 1))
simple("rounding_shift_i32", lambda x: (x + (1 << 11)) >> 12, lambda: ints(1 << 30, 401, 701, dtype=I32))
simple("group_absmax_bf16", lambda x: (x.reshape(-1, 32) / x.reshape(-1, 32).abs().amax(1, keepdim=True) * 127).round().to(I8), lambda: rand(203, 512, dtype=BF16))
