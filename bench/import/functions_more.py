"""More functions that bench/import --functions times: parts of models for language, pictures and sound, and what is
computed before and after them. cases.py says what a file of this kind has.
"""
import math

import torch
import torch.nn.functional as F

from cases import BF16, CASES, F16, F64, ints, program, rand, simple, uniform

U8, I8, I32 = torch.uint8, torch.int8, torch.int32


# Parts of language models.
@program(lambda: rand(2, 211, 6, 72), lambda: rand(2, 211, 2, 72))
def rotary_from_positions(q, k):
    angle = torch.arange(211)[:, None] * 10000 ** (-torch.arange(36) / 36)
    c, s = angle.cos()[:, None], angle.sin()[:, None]
    turn = lambda x: torch.cat((x[..., :36] * c - x[..., 36:] * s, x[..., 36:] * c + x[..., :36] * s), -1)
    return turn(q), turn(k)


@program(lambda: rand(3, 201, 5, 48, dtype=BF16), lambda: rand(201, 24), lambda: rand(201, 24))
def rotate_half_bf16(x, c, s):
    c, s = (torch.cat((t, t), -1)[:, None].to(BF16) for t in (c, s))
    return x * c + torch.cat((-x[..., 24:], x[..., :24]), -1) * s


@program(*[lambda: rand(503, 771)] * 2, lambda: rand(771))
def rms_norm_with_residual(x, y, w):
    x = x + y
    return F.rms_norm(x, (771,), w), x


@program(*[lambda: rand(301, 1027, dtype=BF16)] * 2, lambda: rand(1027, dtype=BF16))
def rms_norm_with_residual_bf16(x, y, w):
    x = x + y
    f = x.float()
    return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6)).to(BF16) * w, x


@program(lambda: rand(67, 300), lambda: rand(300), lambda: rand(1602, 300) / 17, lambda: rand(300, 801) / 28)
def swiglu_block(x, g, w, v):
    a, b = F.linear(F.rms_norm(x, (300,), g), w).chunk(2, -1)
    return x + F.linear(F.silu(a) * b, v)


@program(lambda: rand(2, 6, 131, 40), *[lambda: rand(2, 2, 131, 40)] * 2, lambda: ints(131, 2))
def grouped_queries_with_padding(q, k, v, n):
    k, v = k.repeat_interleave(3, 1), v.repeat_interleave(3, 1)
    hidden = torch.arange(131) >= n[:, None].clamp(min=1)
    return (q @ k.mT / math.sqrt(40)).masked_fill(hidden[:, None, None], -1e9).softmax(-1) @ v


@program(*[lambda: rand(2, 5, 167, 36)] * 3)
def attention_alibi(q, k, v):
    slope = 2 ** (-torch.arange(1, 6) * 8 / 5)
    d = torch.arange(167) - torch.arange(167)[:, None]
    scores = q @ k.mT / 6 + slope[:, None, None] * d
    return scores.masked_fill(d > 0, float("-inf")).softmax(-1) @ v


@program(*[lambda: rand(3, 4, 192, 32)] * 3)
def attention_in_blocks(q, k, v):
    q, k, v = (t.reshape(3, 4, 8, 24, 32) for t in (q, k, v))
    before = lambda t: torch.cat((F.pad(t, (0, 0, 0, 0, 1, 0))[:, :, :-1], t), -2)
    scores = q @ before(k).mT / math.sqrt(32)
    return (scores.softmax(-1) @ before(v)).reshape(3, 4, 192, 32)


@program(lambda: rand(2, 150, 96), lambda: rand(288, 96) / 10, lambda: rand(288), lambda: rand(96, 96) / 10)
def self_attention_with_projections(x, w, b, o):
    q, k, v = F.linear(x, w, b).reshape(2, 150, 3, 4, 24).permute(2, 0, 3, 1, 4)
    return x + F.linear(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 150, 96), o)


@program(lambda: rand(1, 9, 1, 64, dtype=F16), *[lambda: rand(1, 9, 1001, 64, dtype=F16)] * 2, *[lambda: rand(1, 9, 1, 64, dtype=F16)] * 2)
def one_token_with_cache_f16(q, k, v, a, b):
    k, v = torch.cat((k, a), 2), torch.cat((v, b), 2)
    return F.scaled_dot_product_attention(q, k, v), k, v


@program(lambda: rand(1501, 48), lambda: rand(48, 12))
def routes_to_experts_with_capacity(x, w):
    p, e = (x @ w).softmax(-1).topk(2, -1)
    chosen = F.one_hot(e, 12)
    place = (chosen.flatten(0, 1).cumsum(0) - 1).reshape(1501, 2, 12)
    kept = ((place < 260) * chosen).sum(-1) > 0
    p = p * kept
    return p / p.sum(-1, keepdim=True).clamp(min=1e-9), (place * chosen).sum(-1), chosen.float().mean((0, 1))


@program(lambda: rand(3001, 60), lambda: ints(9, 3001), lambda: ints(400, 3001))
def tokens_to_expert_slots(x, e, place):
    return torch.zeros(3600, 60).index_add(0, e * 400 + place, x)


@program(lambda: rand(17, 5, 3001), lambda: rand(17, 5))
def beam_search_step(logits, score):
    total = (score[..., None] + logits.log_softmax(-1)).flatten(1)
    best, i = total.topk(5)
    return best, i // 3001, i % 3001


@program(lambda: rand(19, 5003))
def top_p_filter(logits):
    value, i = logits.sort(-1, descending=True)
    p = value.softmax(-1)
    gone = p.cumsum(-1) - p > 0.9
    return logits.masked_fill(gone.scatter(-1, i, gone), float("-inf"))


@program(lambda: rand(61, 8001), lambda: ints(8001, 61, 90))
def repetition_penalty(logits, seen):
    s = logits.gather(1, seen)
    return logits.scatter(1, seen, torch.where(s < 0, s * 1.2, s / 1.2)).div(0.8)


@program(lambda: rand(53, 7001), lambda: uniform(53, 7001))
def gumbel_draw(logits, u):
    return (logits - (-u.clamp(1e-9, 1 - 1e-6).log()).log()).argmax(-1)


@program(lambda: rand(8, 101, 1501, dtype=BF16), lambda: ints(1501, 8, 101))
def token_log_probabilities_bf16(logits, i):
    return logits.float().log_softmax(-1).gather(-1, i[..., None])[..., 0].sum(-1)


@program(lambda: rand(7, 1001, 30), lambda: ints(1001, 7))
def gather_last_states(h, n):
    i = n[:, None, None].expand(-1, 1, 30)
    return h.gather(1, i)[:, 0], (h * (torch.arange(1001)[:, None] < n[:, None, None])).sum(1)


@program(lambda: ints(5001, 40001), lambda: ints(37, 901).add(1).cumsum(0))
def pad_ragged_batch(tokens, ends):
    starts = F.pad(ends, (1, 0))[:-1]
    at = starts[:, None] + torch.arange(37)
    return torch.where(at < ends[:, None], tokens[at.clamp(max=40000)], -1)


simple("position_buckets", lambda b: b[(torch.arange(211)[:, None] - torch.arange(211)).clamp(-16, 16) + 16].permute(2, 0, 1), lambda: rand(33, 12))
simple("sinusoidal_positions", lambda t: torch.cat(((a := t[:, None] * torch.exp(-torch.arange(80) * 0.1)).sin(), a.cos()), -1), lambda: 1000 * uniform(701))
simple("softcap_logits", lambda x: 30 * torch.tanh(x / 30), lambda: 40 * rand(101, 5003, dtype=BF16))
simple("low_rank_update", lambda x, w, a, b: F.linear(x, w) + 0.5 * F.linear(F.linear(x, a), b), lambda: rand(130, 500), lambda: rand(501, 500) / 22, lambda: rand(9, 500) / 22, lambda: rand(501, 9))
simple("linear_of_i8_weights", lambda x, w, s: F.linear(x, w.to(torch.float32)) * s, lambda: rand(33, 700), lambda: ints(255, 900, 700, dtype=U8).sub(128).to(I8), lambda: uniform(900))


# Losses.
@program(lambda: rand(190, 130), lambda: rand(190, 130))
def info_nce(a, b):
    s = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).t() / 0.07
    i = torch.arange(190)
    return (F.cross_entropy(s, i) + F.cross_entropy(s.t(), i)) / 2


@program(lambda: rand(401, 90), lambda: ints(30, 401))
def supervised_contrastive(z, y):
    z = F.normalize(z, dim=1)
    same = (y[:, None] == y).float() * (1 - torch.eye(401))
    s = (z @ z.t() / 0.1).masked_fill(torch.eye(401).bool(), -1e9)
    return -((s.log_softmax(1) * same).sum(1) / same.sum(1).clamp(min=1)).mean()


@program(lambda: rand(303, 50), lambda: ints(20, 303))
def hardest_triplets(x, y):
    d = torch.cdist(x, x)
    same = y[:, None] == y
    return (torch.where(same, d, 0).amax(1) - torch.where(same, 1e9, d).amin(1) + 0.3).relu().mean()


@program(lambda: rand(1501, 91), lambda: ints(91, 1501))
def focal_of_classes(x, y):
    logp = x.log_softmax(-1).gather(1, y[:, None])[:, 0]
    return (-(1 - logp.exp()) ** 2 * logp).mean()


@program(lambda: rand(9, 5, 101, 103), lambda: ints(5, 9, 101, 103))
def dice_of_classes(x, y):
    p, t = x.softmax(1), F.one_hot(y, 5).permute(0, 3, 1, 2)
    return 1 - (2 * (p * t).sum((0, 2, 3)) / (p + t).sum((0, 2, 3))).mean()


@program(lambda: rand(2003, 120), lambda: rand(2003))
def pinball_and_quantile_crossing(q, y):
    tau = torch.linspace(0.01, 0.99, 120)
    e = y[:, None] - q
    return torch.maximum(tau * e, (tau - 1) * e).mean(), (q[:, :-1] - q[:, 1:]).relu().sum()


simple("gaussian_nll_and_kl", lambda x, m, v: (0.5 * (v + (x - m) ** 2 / v.exp()).mean(), -0.5 * (1 + v - m ** 2 - v.exp()).sum(1).mean()), *[lambda: rand(701, 500)] * 3)
simple("ssim_of_means", lambda x, y: ssim(x, y), *[lambda: uniform(4, 3, 97, 101)] * 2)
simple("temporal_difference", lambda r, v: generalised_advantages(r, v), lambda: rand(12003, 16), lambda: rand(12003, 17))
simple("clipped_policy_loss", lambda new, old, a: -torch.minimum((new - old).exp() * a, (new - old).exp().clamp(0.8, 1.2) * a).mean(), *[lambda: rand(400001) / 5] * 3)
simple("cross_entropy_of_soft_targets", lambda x, y: -(y.softmax(-1) * x.log_softmax(-1)).sum(-1).mean(), *[lambda: rand(701, 601)] * 2)
simple("charbonnier_f64", lambda x, y: ((x - y) ** 2 + 1e-6).sqrt().mean(), *[lambda: rand(601, 703, dtype=F64)] * 2)


def ssim(x, y):
    mean = lambda t: F.avg_pool2d(t, 7, 1)
    a, b = mean(x), mean(y)
    va, vb, ab = mean(x * x) - a * a, mean(y * y) - b * b, mean(x * y) - a * b
    return ((2 * a * b + 1e-4) * (2 * ab + 9e-4) / ((a * a + b * b + 1e-4) * (va + vb + 9e-4))).mean()


def generalised_advantages(r, v):
    d = r + 0.99 * v[:, 1:] - v[:, :-1]
    decay = 0.95 ** torch.arange(16)
    weights = torch.where((k := torch.arange(16) - torch.arange(16)[:, None]) >= 0, 0.95 ** k, 0.0)
    return d @ weights.t(), d * decay


# Detection.
@program(lambda: uniform(1, 9), lambda: uniform(1, 2))
def anchors_of_grid(sizes, offset):
    y, x = torch.meshgrid(torch.arange(61) * 8.0, torch.arange(83) * 8.0, indexing="ij")
    centre = torch.stack((x, y), -1)[:, :, None] + offset
    half = 50 * torch.stack((sizes[0], sizes[0].flip(0)), -1)
    return torch.cat((centre - half, centre + half), -1).reshape(-1, 4)


@program(lambda: 100 * uniform(20011, 4), lambda: rand(20011, 4))
def decode_boxes(box, d):
    w, h = box[:, 2] - box[:, 0], box[:, 3] - box[:, 1]
    x, y = box[:, 0] + w / 2 + d[:, 0] * w, box[:, 1] + h / 2 + d[:, 1] * h
    w, h = w * d[:, 2].clamp(max=4.1).exp(), h * d[:, 3].clamp(max=4.1).exp()
    return torch.stack((x - w / 2, y - h / 2, x + w / 2, y + h / 2), 1).clamp(0, 640)


@program(lambda: 100 * uniform(4001, 4), lambda: 100 * uniform(4001, 4))
def generalised_iou_of_pairs(a, b):
    (ax, ay, au, av), (bx, by, bu, bv) = a.unbind(1), b.unbind(1)
    inter = (torch.minimum(au, bu) - torch.maximum(ax, bx)).clamp(min=0) * (torch.minimum(av, bv) - torch.maximum(ay, by)).clamp(min=0)
    union = (au - ax) * (av - ay) + (bu - bx) * (bv - by) - inter
    hull = (torch.maximum(au, bu) - torch.minimum(ax, bx)) * (torch.maximum(av, bv) - torch.minimum(ay, by))
    return inter / union - (hull - union) / hull


@program(lambda: 100 * uniform(401, 2), lambda: 30 * uniform(401, 2), lambda: uniform(401))
def matrix_nms(corner, size, score):
    score, i = score.sort(descending=True)
    a, b = corner[i], (corner + size)[i]
    side = (torch.minimum(b[:, None], b) - torch.maximum(a[:, None], a)).clamp(min=0)
    both, area = side[..., 0] * side[..., 1], (b - a).prod(1)
    iou = (both / (area[:, None] + area - both)).triu(1)
    return score * ((1 - iou) / (1 - iou.amax(0)[:, None])).amin(0)


simple("peaks_of_heatmap", lambda x: (x.sigmoid() * (F.max_pool2d(x, 3, 1, 1) == x)).flatten(1).topk(40), lambda: rand(2, 11, 97, 89))
simple("yolo_head", lambda x, g: torch.cat(((x[..., :2].sigmoid() * 2 - 0.5 + g) * 16, (x[..., 2:4].sigmoid() * 2) ** 2, x[..., 4:].sigmoid()), -1), lambda: rand(2, 3, 41, 43, 85), lambda: rand(41, 43, 2))
simple("mask_paste_threshold", lambda m: (F.interpolate(m, (120, 161), mode="bilinear").sigmoid() > 0.5).to(U8), lambda: rand(17, 1, 28, 28))


# Pictures.
simple("normalise_u8_to_chw_f16", lambda x: ((x.permute(2, 0, 1).to(F16) / 255 - 0.5) * 2), lambda: ints(256, 601, 403, 3, dtype=U8))
simple("normalise_u8_to_chw_f32", lambda x, m, s: (x.permute(2, 0, 1).float() - m[:, None, None]) * s[:, None, None], lambda: ints(256, 501, 703, 3, dtype=U8), lambda: rand(3), lambda: rand(3))
simple("planes_to_rgba_u8", lambda x: torch.cat((x.clamp(0, 1).mul(255).to(U8), torch.full((1, 401, 603), 255, dtype=U8))).permute(1, 2, 0).contiguous(), lambda: uniform(3, 401, 603))
simple("rgb_to_hsv", lambda x: hsv(x), lambda: uniform(3, 401, 407))
simple("hsv_to_rgb", lambda x: rgb_of_hsv(x), lambda: uniform(3, 401, 407))
simple("srgb_to_linear", lambda x: torch.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4), lambda: uniform(3, 301, 401))
simple("gamma_of_u8_by_table", lambda x, t: t[x.to(I32)], lambda: ints(256, 3, 101, 203, dtype=U8), lambda: ints(256, 256, dtype=U8))
simple("sobel_by_conv", lambda x: sobel(x), lambda: rand(3, 3, 201, 203))
simple("gaussian_blur_separable", lambda x: gaussian_blur(x), lambda: rand(2, 5, 203, 207))
simple("unsharp_of_box", lambda x: x + 0.7 * (x - F.avg_pool2d(x, 5, 1, 2, count_include_pad=False)), lambda: rand(3, 3, 207, 211))
simple("dilate_and_erode", lambda x: F.max_pool2d(x, 5, 1, 2) + F.max_pool2d(-x, 5, 1, 2), lambda: rand(3, 1, 201, 203))
simple("integral_image_boxes", lambda x: (s := x.cumsum(1).cumsum(2))[:, 9:, 9:] - s[:, :-9, 9:] - s[:, 9:, :-9] + s[:, :-9, :-9], lambda: rand(4, 203, 211))
simple("median_of_nine", lambda x: torch.stack([x[:, i:i + 149, j:j + 151] for i in range(3) for j in range(3)]).sort(0)[0][4], lambda: rand(2, 151, 153))
simple("local_binary_pattern", lambda x: sum((x[1 + i:201 + i, 1 + j:251 + j] >= x[1:201, 1:251]).to(I32) << n for n, (i, j) in enumerate(((-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)))), lambda: ints(256, 202, 252, dtype=U8))
simple("bilinear_sampling_by_hand", lambda x, p: bilinear(x, p), lambda: rand(3, 101, 133), lambda: uniform(20003, 2))
simple("grid_sample_affine", lambda x, t: F.grid_sample(x, F.affine_grid(t, (3, 4, 91, 93), align_corners=False), align_corners=False), lambda: rand(3, 4, 101, 103), lambda: rand(3, 2, 3))
simple("mixup_and_cutmix", lambda x, m: torch.where(m, x, x.flip(0)) * 0.7 + 0.3 * x.roll(1, 0), lambda: rand(8, 3, 97, 99), lambda: rand(1, 1, 97, 99) > 0)
simple("equalise_histogram_u8", lambda x: equalise(x), lambda: ints(256, 301, 407, dtype=U8))
simple("chroma_subsampling", lambda x: F.avg_pool2d(x, 2).repeat_interleave(2, 1).repeat_interleave(2, 2), lambda: rand(6, 202, 210))
simple("blocks_8x8_cosine_transform", lambda x, d: d @ x.reshape(26, 8, 30, 8).transpose(1, 2) @ d.t(), lambda: rand(208, 240), lambda: rand(8, 8))
simple("otsu_statistics", lambda p: (p * torch.arange(256)).cumsum(1) / p.cumsum(1).clamp(min=1e-9) + p.flip(1).cumsum(1).flip(1), lambda: uniform(901, 256))


def hsv(x):
    r, g, b = x
    top, least = x.amax(0), x.amin(0)
    d = top - least
    e = torch.where(d == 0, 1, d)
    h = torch.where(top == r, (g - b) / e % 6, torch.where(top == g, (b - r) / e + 2, (r - g) / e + 4)) / 6
    return torch.stack((h, d / top.clamp(min=1e-9), top))


def rgb_of_hsv(x):
    h, s, v = x
    k = torch.stack([(n + h * 6) % 6 for n in (5, 3, 1)])
    return v - v * s * torch.minimum(k, 4 - k).clamp(0, 1)


def sobel(x):
    k = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    w = torch.stack((k, k.t())).repeat(3, 1, 1)[:, None]
    return F.conv2d(x, w, padding=1, groups=3).unflatten(1, (3, 2)).pow(2).sum(2).sqrt()


def gaussian_blur(x):
    k = torch.exp(-(torch.arange(9) - 4.0) ** 2 / 8)
    k = (k / k.sum()).expand(5, 1, 1, 9)
    return F.conv2d(F.conv2d(x, k, padding=(0, 4), groups=5), k.mT, padding=(4, 0), groups=5)


def bilinear(x, p):
    y, u = p[:, 0] * 99, p[:, 1] * 131
    i, j = y.floor().long(), u.floor().long()
    a, b = y - i, u - j
    top = x[:, i, j] * (1 - b) + x[:, i, j + 1] * b
    return top * (1 - a) + (x[:, i + 1, j] * (1 - b) + x[:, i + 1, j + 1] * b) * a


def equalise(x):
    n = torch.zeros(256).index_add(0, x.flatten().long(), torch.ones(301 * 407))
    c = n.cumsum(0)
    return (c / c[-1] * 255).to(U8)[x.long()]


# Parts of nets for pictures and sound.
simple("squeeze_and_excite", lambda x, a, b: x * F.linear(F.relu(F.linear(x.mean((2, 3)), a)), b).sigmoid()[:, :, None, None], lambda: rand(5, 90, 37, 35), lambda: rand(12, 90), lambda: rand(90, 12))
simple("inverted_residual", lambda x, a, b, c: x + F.conv2d(F.relu6(F.conv2d(F.relu6(F.conv2d(x, a)), b, padding=1, groups=96)), c), lambda: rand(2, 24, 41, 37), lambda: rand(96, 24, 1, 1) / 5, lambda: rand(96, 1, 3, 3) / 3, lambda: rand(24, 96, 1, 1) / 10)
simple("convnext_block", lambda x, d, w, a, b: convnext(x, d, w, a, b), lambda: rand(2, 48, 33, 31), lambda: rand(48, 1, 7, 7) / 7, lambda: rand(48), lambda: rand(192, 48) / 7, lambda: rand(48, 192) / 14)
simple("unet_up_block", lambda x, y, u, w: F.relu(F.conv2d(torch.cat((F.conv_transpose2d(x, u, stride=2), y), 1), w, padding=1)), lambda: rand(1, 48, 31, 29), lambda: rand(1, 24, 62, 58), lambda: rand(48, 24, 2, 2) / 7, lambda: rand(24, 48, 3, 3) / 20)
simple("pixel_shuffle_net", lambda x, a, b: F.pixel_shuffle(F.conv2d(F.relu(F.conv2d(x, a, padding=2)), b, padding=1), 2), lambda: rand(1, 1, 97, 93), lambda: rand(16, 1, 5, 5) / 5, lambda: rand(4, 16, 3, 3) / 12)
simple("pixel_unshuffle_mix", lambda x, w: torch.einsum("nchw,oc->nohw", F.pixel_unshuffle(x, 2), w), lambda: rand(2, 12, 82, 90), lambda: rand(30, 48))
simple("diffusion_res_block", lambda x, t, g, w: x + F.conv2d(F.silu(F.group_norm(x, 8, g) * (1 + t[:, :, None, None])), w, padding=1), lambda: rand(2, 32, 31, 33), lambda: rand(2, 32), lambda: rand(32), lambda: rand(32, 32, 3, 3) / 17)
simple("group_norm_silu_bf16", lambda x, w, b: F.silu(F.group_norm(x, 4, w, b)), lambda: rand(3, 36, 43, 47, dtype=BF16), lambda: rand(36, dtype=BF16), lambda: rand(36, dtype=BF16))
simple("layer_norm_channels_first", lambda x, w, b: F.layer_norm(x.permute(0, 2, 3, 1), (61,), w, b).permute(0, 3, 1, 2), lambda: rand(4, 61, 35, 37), lambda: rand(61), lambda: rand(61))
simple("depthwise_7x7_bf16", lambda x, w: F.conv2d(x, w, padding=3, groups=40), lambda: rand(2, 40, 45, 47, dtype=BF16), lambda: rand(40, 1, 7, 7, dtype=BF16))
simple("depthwise_strided_3x3", lambda x, w, b: F.hardswish(F.conv2d(x, w, b, stride=2, padding=1, groups=70)), lambda: rand(3, 70, 57, 59), lambda: rand(70, 1, 3, 3), lambda: rand(70))
simple("grouped_conv_of_8", lambda x, w: F.conv2d(x, w, padding=1, groups=8), lambda: rand(2, 64, 29, 31), lambda: rand(96, 8, 3, 3))
simple("wavenet_gate", lambda x, w: (y := F.conv1d(F.pad(x, (16, 0)), w, dilation=8))[:, :24].tanh() * y[:, 24:].sigmoid(), lambda: rand(2, 24, 2001), lambda: rand(48, 24, 3) / 8)
simple("conv3d_small", lambda x, w: F.relu(F.conv3d(x, w, padding=1)), lambda: rand(1, 9, 15, 27, 29), lambda: rand(14, 9, 3, 3, 3))
simple("weight_norm_conv1d", lambda x, v, g: F.leaky_relu(F.conv1d(x, g * v / v.norm(dim=(1, 2), keepdim=True), padding=3), 0.1), lambda: rand(2, 40, 801), lambda: rand(40, 40, 7), lambda: rand(40, 1, 1))
simple("vector_quantise", lambda x, c: (i := (x.pow(2).sum(1, keepdim=True) - 2 * x @ c.t() + c.pow(2).sum(1)).argmin(1), c[i]), lambda: rand(2003, 32), lambda: rand(256, 32))
simple("adaptive_instance_norm", lambda x, y: (x - x.mean((2, 3), True)) / (x.std((2, 3), keepdim=True) + 1e-5) * y.std((2, 3), keepdim=True) + y.mean((2, 3), True), *[lambda: rand(3, 41, 43, 47)] * 2)
simple("spatial_attention_gate", lambda x, w: x * F.conv2d(torch.cat((x.mean(1, True), x.amax(1, True)), 1), w, padding=3).sigmoid(), lambda: rand(4, 53, 41, 39), lambda: rand(1, 2, 7, 7))
simple("global_response_norm", lambda x, g: x + g * x * ((n := x.norm(dim=(1, 2), keepdim=True)) / (n.mean(-1, keepdim=True) + 1e-6)), lambda: rand(4, 37, 39, 70), lambda: rand(70))
simple("batched_small_mlps", lambda x, a, b, c: torch.baddbmm(c, torch.bmm(x, a).tanh(), b), lambda: rand(90, 31, 17), lambda: rand(90, 17, 23), lambda: rand(90, 23, 5), lambda: rand(90, 1, 5))


def convnext(x, d, w, a, b):
    y = F.layer_norm(F.conv2d(x, d, padding=3, groups=48).permute(0, 2, 3, 1), (48,), w)
    return x + F.linear(F.gelu(F.linear(y, a)), b).permute(0, 3, 1, 2)
