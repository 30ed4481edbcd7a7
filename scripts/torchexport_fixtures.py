"""Write the programs that package torchexport is tested on, with PyTorch's results.

    python scripts/torchexport_fixtures.py torchexport/testdata [NAME...]

Needs PyTorch 2.15, torchvision and safetensors. Each NAME.pt2 is a program that torch.export.save wrote, of a tiny
model with random weights. NAME.safetensors holds for each case K its inputs (K.in0, ...) and outputs
(K.out0, ...); for a model that trains, the gradients of the mean square of the first output after five
steps of SGD (grad.PARAMETER), and the buffers then (buffer.BUFFER). The fixtures torch2.6_NAME and
torch2.11_NAME are what the script writes as NAME under PyTorch 2.6 and 2.11.
"""
import sys, pathlib, copy
import torch, torch.nn as nn, torch.nn.functional as F, torchvision
from torch.export import Dim, export, save
from safetensors.torch import save_file


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(3, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.c2, self.b2 = nn.Conv2d(6, 6, 3, stride=2, padding=1, groups=2), nn.BatchNorm2d(6)
        self.down, self.fc = nn.Conv2d(6, 6, 1, stride=2), nn.Linear(6, 4)

    def forward(self, x):
        x = F.relu_(self.b1(self.c1(x)))
        y = self.b2(self.c2(x))
        y += self.down(x)
        return self.fc(F.adaptive_avg_pool2d(F.max_pool2d(F.relu(y, inplace=True), 2), 1).flatten(1))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True, activation="gelu")
        self.enc, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 5)

    def forward(self, ids, mask):
        return self.head(self.enc(self.emb(ids), src_key_padding_mask=mask))


class GPT(nn.Module):
    """Blocks that write to views: a causal mask by slices, a cache of keys that is a buffer."""

    def __init__(self, n=16, heads=2, vocab=40, length=12):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n), nn.Embedding(length, n)
        self.qkv, self.proj = nn.ModuleList(nn.Linear(n, 3 * n) for _ in range(2)), nn.ModuleList(nn.Linear(n, n) for _ in range(2))
        self.ln, self.mlp = nn.ModuleList(nn.LayerNorm(n) for _ in range(3)), nn.Sequential(nn.Linear(n, 2 * n), nn.GELU("tanh"), nn.Linear(2 * n, n))
        self.heads, self.head = heads, nn.Linear(n, vocab, bias=False)
        self.head.weight = self.wte.weight  # tied
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def forward(self, ids):
        b, t = ids.shape
        self.seen.add_(1)
        x = self.wte(ids) + self.wpe(torch.arange(t))
        bias = torch.zeros(t, t)
        bias[:, :] = float("-inf")
        bias.copy_(torch.triu(bias, 1).nan_to_num(nan=0.0, neginf=-1e9))
        for i in range(2):
            q, k, v = self.qkv[i](self.ln[i](x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
            x = x + self.proj[i](a.transpose(1, 2).reshape(b, t, -1))
        x = x + self.mlp(self.ln[2](x))
        return self.head(x)


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.fc = nn.LSTM(5, 6, 2, batch_first=True, bidirectional=True), nn.GRU(12, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, g = self.gru(y)
        return {"logits": self.fc(z), "state": (h, c), "last": g}


class Swin(nn.Module):
    """The mask of shifted windows, which is written region by region."""

    def __init__(self):
        super().__init__()
        self.qkv, self.fc = nn.Linear(8, 24), nn.Linear(8, 3)

    def forward(self, x):
        b, h, w, c = x.shape
        x = torch.roll(x, shifts=(-2, -2), dims=(1, 2))
        mask = x.new_zeros((h, w))
        n = 0
        for hs in (slice(0, -4), slice(-4, -2), slice(-2, None)):
            for ws in (slice(0, -4), slice(-4, -2), slice(-2, None)):
                mask[hs, ws] = n
                n += 1
        mask = mask.view(h // 4, 4, w // 4, 4).permute(0, 2, 1, 3).reshape(-1, 16)
        mask = mask.unsqueeze(1) - mask.unsqueeze(2)
        mask = mask.masked_fill(mask != 0, -100.0).masked_fill(mask == 0, 0.0)
        y = x.view(b, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
        q, k, v = self.qkv(y).chunk(3, dim=-1)
        a = q @ k.transpose(1, 2)
        a = (a.view(b, -1, 16, 16) + mask.unsqueeze(0)).view(-1, 16, 16).softmax(-1)
        return self.fc((a @ v).mean(1)).view(b, -1, 3)


class Views(nn.Module):
    """Ops in place on views of every kind, seen through others."""

    def forward(self, x, y):
        a = x.clone()
        row, col, part = a[1], a[:, 2], a[:, ::2]
        row.add_(1)
        part[0].mul_(3)
        col.fill_(7)
        t = a.swapaxes(0, 1)
        t[1:3].sub_(y[:2].t()[: t[1:3].shape[0], : t.shape[1]].sum())
        d = torch.diagonal(a)
        d.zero_()
        flat = a.view(-1)
        flat[3:5] = y.flatten()[:2]
        p = a.unsqueeze(0).permute(2, 0, 1)
        p.select(0, 4).copy_(x[:, 0:1].t())
        q = a.split(2, dim=0)
        q[0].clamp_(min=0.5)
        u = a.unbind(1)
        u[3].neg_()
        c = a.t().reshape(-1)  # a copy: not seen through a
        c.add_(100)
        e = a.contiguous()
        e[2] += 5  # a itself
        s = torch.as_strided(a, (2, 2), (1, 5), 1)
        s.mul_(2)
        a[y[0] > 0] = -1.0
        i = torch.tensor([0, 2])
        a[i, i] = x.new_tensor([9.0, 8.0])
        return a, row * 2, part + col.sum(), c, t.sum(0)


class Changes(nn.Module):
    """Buffers, also by views, and an input that are changed."""

    def __init__(self):
        super().__init__()
        self.register_buffer("ring", torch.zeros(4, 3))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))
        self.register_buffer("scratch", torch.ones(3), persistent=False)
        self.w = nn.Parameter(torch.randn(3, 3))

    def forward(self, x, cache):
        y = x @ self.w
        self.ring[1:3, :].copy_(y[:2])
        self.ring[0].add_(self.scratch)
        self.count += 1
        cache[:, :3].mul_(2)
        self.scratch.mul_(2)
        return {"y": y + self.ring[0], "n": self.count.clone()}


class Control(nn.Module):
    def forward(self, x, n):
        y = torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 3, (x,))
        i, z = torch._higher_order_ops.while_loop(lambda i, z: i < n, lambda i, z: (i + 1, z * 1.5 + 1), (torch.zeros((), dtype=torch.long), y))
        m = torch._higher_order_ops.map(lambda r, k: (r * k).cumsum(0), x, y[0])
        carry, s = torch._higher_order_ops.scan(lambda c, r: (c + r, c * r), torch.ones(4), x)
        return y, z, i, m, carry, s


class Sizes(nn.Module):
    """Arithmetic with sizes."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x, y):
        b, t, c = x.shape
        z = self.fc(x).view(b, t // 2, 2, c).mean(2)
        w = torch.cat([z, y], 1)[:, : max(t // 2, 3)]
        pos = torch.arange(w.shape[1] * 2, dtype=torch.float32)[::2] / (b * t)
        pad = F.pad(w, (0, 0, 0, t % 3))
        return w + pos[None, :, None], pad, x.new_full((b, 2), t), F.interpolate(x.transpose(1, 2), scale_factor=2.0)


class Halves(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.b = nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, x):
        h = F.silu(self.n(self.a(x)))
        return self.b(h.to(torch.float32).mul(0.5).to(torch.bfloat16)).softmax(-1)


class Autocast(nn.Module):
    """Casts that are in no graph, but in the dtypes of what it makes; one None among the outputs."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.a(x)
            with torch.autocast("cpu", enabled=False):
                z = self.b(y.float())
            y = torch.relu(y) @ y.mT
        return z, None, y.float()


class Warp(nn.Module):
    """A spatial transformer, antialiased resizing, bytes of other dtypes, a cache that is empty at
    first, and a weight without elements."""

    def __init__(self):
        super().__init__()
        self.where, self.none = nn.Linear(3, 6), nn.Linear(4, 0)

    def forward(self, x):
        y = F.grid_sample(x, F.affine_grid(self.where(x.mean((2, 3))).view(-1, 2, 3), x.shape, align_corners=False), align_corners=False)
        small = F.interpolate(x, (3, 5), mode="bilinear", antialias=True), F.interpolate(x, (4, 9), mode="bicubic", antialias=True)
        bits = x.view(torch.int32) & 255, torch.arange(4, dtype=torch.uint8).view(torch.int16)
        cache = torch.cat([torch.tensor([]), x], -2)
        small = *small, *(F.interpolate(x, scale_factor=1.7, mode=m) for m in ("nearest", "nearest-exact"))
        return y, *small, *bits, cache, self.none(x[..., :4])


class Projected(nn.Module):
    """LSTMs whose hidden states are projections."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LSTM(5, 6, 2, proj_size=3, bidirectional=True), nn.LSTM(6, 4, proj_size=2, bias=False, batch_first=True)

    def forward(self, x):
        y, (h, c) = self.a(x)
        return self.b(y)[0], h, c


class Data(nn.Module):
    """Sizes that depend on data."""

    def forward(self, x, k):
        n = k.item()
        torch._check(n >= 2)
        torch._check(n <= 5)
        return x[x > 0].sum(), torch.nonzero(x), torch.zeros(n).add(1), torch.repeat_interleave(x[0], torch.tensor([1, 0, 2]))


class Rows(nn.Module):
    """Ops that are bound by the rows of their names alone."""

    def __init__(self):
        super().__init__()
        self.one, self.each = nn.PReLU(), nn.PReLU(4, init=0.1)
        self.narrow = torch.nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 4, 3, padding=1), dim=0)
        with torch.no_grad():
            self.narrow.parametrizations.weight.original0.mul_(1.5)
        self.g, self.v = nn.Parameter(torch.ones(()) * 2), nn.Parameter(torch.arange(12.0).reshape(4, 3) / 10)

    def forward(self, x, y):
        a = self.narrow(F.glu(x, 1))
        b = self.each(self.one(a) - 0.1) @ torch._weight_norm(self.v.t(), self.g, -1).repeat(2, 1)[: a.shape[2]]
        image = F.pixel_unshuffle(F.pixel_shuffle(x.view(-1, 2, 4, 3, 2), 2).contiguous(), 2)
        turned = torch.rot90(y, 1, (0, 1)), torch.rot90(y, -2, (1, 0))
        u, v = torch.meshgrid(y[0], y[:, 0], indexing="xy")
        s, t = torch.meshgrid(y[0], y[:, 0], indexing="ij")
        close = torch.isclose(y, y.roll(1, 0), rtol=0.5), torch.isclose(y / 0 * 0, y / 0 * 0, equal_nan=True)
        return b, image, *turned, u * v, s - t, *close, torch.trace(y), y.tile(2), y[0].tile(2, 3), F.channel_shuffle(x, 4)


class Splits(nn.Module):
    """Views that ATen makes of other views, written to, and copies."""

    def forward(self, x, y):
        ups = [f(t) for f in (torch.atleast_1d, torch.atleast_2d, torch.atleast_3d) for t in (x[0, 0, 0], x[0, 0], x[0], x)]
        z = x.clone()
        first, _ = torch.hsplit(z, 2)
        first.mul_(2)
        torch.vsplit(z, [1])[1].add_(1)
        torch.dsplit(z, (1, 3))[1].neg_()
        torch.tensor_split(z, 3, 2)[0].sub_(1)
        parts = torch.tensor_split(y, (1, 3, 2), 1)
        copies = torch.ops.aten.permute_copy(z, [2, 0, 1]), torch.ops.aten.t_copy(y), *torch.ops.aten.unbind_copy(y), torch.ops.aten.squeeze_copy(y[:1])
        copies[0].add_(1)  # does not reach z
        return *ups, z, *parts, *copies, y.mH, torch.column_stack((y[0], y.t())), *torch.broadcast_tensors(y[0], y)


class Matrices(nn.Module):
    def forward(self, x, y):
        a, b, v = x @ x.T + torch.eye(3), y[:, :2], y[0]
        lu, pivots = torch.linalg.lu_factor(a)
        u, s, w = torch.svd(y)
        made = torch.diag(v), torch.diag(y, 1), torch.diag_embed(y, 1, 0, -1), torch.diagflat(b, -1), torch.fliplr(y), torch.flipud(y)
        joined = torch.hstack((v, v)), torch.vstack((v, y)), torch.dstack((y, y)), torch.cartesian_prod(v, v[:2]), torch.combinations(v, 3), torch.combinations(v, 2, True)
        solved = torch.lu_solve(b, lu, pivots), torch.logdet(a), torch.pinverse(y), s, (u * s) @ w.mH, *torch._lu_with_info(a)
        norms = torch.linalg.norm(y, "nuc"), torch.linalg.matrix_norm(y, 1), torch.linalg.matrix_rank(y, rtol=0.5), torch.linalg.pinv(a, hermitian=True, atol=torch.tensor(0.1)), torch.linalg.pinv(y, rcond=0.4)
        tensors = torch.linalg.tensorinv(a.reshape(3, 1, 3), 1), torch.linalg.tensorsolve(a.reshape(3, 3, 1), v[:3]), torch.linalg.vecdot(y, y), torch.linalg.vander(v, N=3), torch.linalg.diagonal(y)
        grown = torch.linspace(v[0], v[1], 5), torch.logspace(0.5, v[1], 3, 2.0), torch.ops.aten.fill(v, 3), torch.tensor(2.0).index_fill(0, torch.tensor([0]), 5)
        bag = F.embedding_bag(torch.tensor([[0, 2], [1, 2]]), y, mode="max"), F.embedding_bag(torch.tensor([0, 2, 1]), y, torch.tensor([0, 2]), padding_idx=2, mode="sum")
        sampled = F.grid_sample(y[None, None], x[None, :, :2, None].transpose(2, 3), mode="nearest", padding_mode="border", align_corners=True)
        return *norms, *tensors, *grown, *bag, sampled, *made, *joined, *solved, torch.kron(y, x[0]), torch.cross(x, a, 1), torch.vdot(v, v), y.sum_to_size(1, 4), y.put(torch.tensor([1, 5]), v[:2])


class Statistics(nn.Module):
    def forward(self, x):
        q = torch.tensor([0.25, 0.5, 0.9])
        holes = torch.where(x > 1, torch.nan, x)
        quantiles = [torch.quantile(x, q, 1, keepdim=True), torch.quantile(x, 0.3), torch.nanquantile(holes, q, 0), torch.quantile(holes, 0.5, 1)]
        quantiles += [torch.quantile(x, 0.4, 0, interpolation=m) for m in ("lower", "higher", "nearest", "midpoint")]
        means = torch.nanmean(holes), torch.nanmean(holes, 1, True), torch.msort(x)
        areas = torch.trapezoid(x), torch.trapezoid(x, x.cumsum(0), dim=0), torch.cumulative_trapezoid(x, dx=0.5)
        slopes = *torch.gradient(x), *torch.gradient(x, spacing=(x[0].abs().cumsum(0),), dim=1, edge_order=2)
        parts = *torch.frexp(torch.cat((x.flatten(), torch.tensor([0.0, 1e-42, -3e38, torch.inf, 0.5])))), torch.ldexp(x, torch.tensor(3))
        z = x.abs() + 2
        gammas = torch.lgamma(z), torch.special.gammaln(x), torch.mvlgamma(z, 3), torch.digamma(z), torch.special.polygamma(2, z), torch.special.i0(x), torch.special.i1e(x), torch.special.xlog1py(x, z)
        return *gammas, *quantiles, *means, *areas, *slopes, *parts, torch.float_power(x.abs(), 2), torch.isreal(x), F.pairwise_distance(x, x.roll(1, 0)), torch.renorm(x, 2, 0, 1.5)


class Losses(nn.Module):
    def forward(self, x, y, label, sign, several):
        pair = [f(x, y, sign[:, None], margin=0.3) for f in (F.margin_ranking_loss,)]
        rows = F.cosine_embedding_loss(x, y, sign, 0.2, reduction="none"), F.triplet_margin_loss(x, y, y.roll(1, 0), 0.5, swap=True, reduction="sum")
        target = y.abs() * 2
        counts = F.poisson_nll_loss(x, target, full=True), F.poisson_nll_loss(x.abs(), target, log_input=False, reduction="none")
        classes = F.multi_margin_loss(x, label, p=2, weight=target[0]), F.multi_margin_loss(x[0], label[0]), F.multilabel_margin_loss(x, several), F.multilabel_margin_loss(x[1], several[1])
        return *pair, F.hinge_embedding_loss(x, sign[:, None].expand_as(x), margin=0.7), *rows, *counts, *classes, F.soft_margin_loss(x, sign[:, None].float().expand_as(x), reduction="sum")


class Norms(nn.Module):
    """Statistics that change, rows that are scaled, attention in which a row sees nothing."""

    def __init__(self):
        super().__init__()
        self.each, self.table = nn.InstanceNorm2d(3, affine=True, track_running_stats=True), nn.Embedding(6, 4, max_norm=0.8)

    def forward(self, x, ids):
        mean, var = torch.zeros(3), torch.ones(3)
        y, m, s = torch.native_batch_norm(x, None, None, mean, var, True, 0.2, 1e-3)
        none = torch.ops.aten._safe_softmax(x.masked_fill(x < 0.5, -torch.inf)[0, 0], -1)
        picked = torch.ops.aten._unsafe_masked_index(x[0, 0, 0], torch.tensor([True, False, True]), [torch.tensor([0, 99, 2])], 7)
        return y, m, s, mean, var, self.each(x), self.table(ids), none, picked, torch.bincount(ids.flatten())


class Given(nn.Module):
    """Statistics that the caller gives, which training changes."""

    def forward(self, x, mean, var, mean2, var2):
        y = F.batch_norm(x, mean, var, training=True, momentum=0.2)
        z = F.batch_norm(x, mean2, var2, training=False)
        return y, z, F.instance_norm(x, mean.view(-1), var.view(-1), use_input_stats=True, momentum=0.3)


class Detect(nn.Module):
    """torchvision's ops."""

    def __init__(self):
        super().__init__()
        self.offset, self.weight = nn.Conv2d(4, 18, 3, padding=1), nn.Parameter(torch.randn(6, 2, 3, 3))

    def forward(self, x, rois):
        x = torchvision.ops.deform_conv2d(x, self.offset(x), self.weight, padding=1)
        y = torchvision.ops.roi_align(x, rois, 2, sampling_ratio=2, aligned=True)
        return y, torchvision.ops.roi_align(x, rois, (3, 2), 0.5), F.local_response_norm(x, 3, alpha=0.5)


class Unique(nn.Module):
    """Results whose sizes depend on data, and histograms."""

    def forward(self, x, y, boxes, scores):
        kept = torchvision.ops.nms(boxes, scores, 0.2)
        rows, places, counts = torch.unique(x, return_inverse=True, return_counts=True, dim=1)
        runs, lengths = torch.unique_consecutive(x[0], return_counts=True)
        return kept, torch.unique(x), rows, places, counts, runs, lengths, *torch.histogram(y, 5), *torch.histogram(y, 4, range=(-1.0, 1.0), density=True)


def models():
    g = torch.Generator().manual_seed(1)
    r = lambda *s: torch.randn(*s, generator=g)
    ids = lambda n, *s: torch.randint(0, n, s, generator=g)
    batch, seq = Dim("batch", min=1, max=64), Dim("seq", min=1, max=12)
    image = dict(cases=[(r(2, 3, 8, 8),), (r(5, 3, 8, 8),)], dynamic=({0: batch},))
    yield "conv_train", ConvNet().train(), dict(image, cases=image["cases"][:1], train=True)
    yield "conv_eval", ConvNet().eval(), dict(image, train=True)
    yield "conv_decomposed", ConvNet().eval(), dict(image, train=True, decompose=True)
    yield "conv_train_decomposed", ConvNet().train(), dict(image, cases=image["cases"][:1], train=True, decompose=True)
    mask = torch.zeros(3, 7, dtype=torch.bool)
    mask[1, 5:] = True
    text = dict(cases=[(ids(50, 3, 7), mask), (ids(50, 2, 4), torch.zeros(2, 4, dtype=torch.bool))], dynamic=({0: batch, 1: seq}, {0: batch, 1: seq}), train=True)
    yield "encoder", Encoder().eval(), text
    yield "encoder_decomposed", Encoder().eval(), dict(text, decompose=True)
    yield "gpt", GPT().eval(), dict(cases=[(ids(40, 2, 9),), (ids(40, 3, 5),)], dynamic=({0: batch, 1: seq},), train=True)
    yield "lstm", LSTM().eval(), dict(cases=[(r(2, 6, 5),), (r(4, 6, 5),)], dynamic=({0: batch},), train=True)
    yield "swin", Swin().eval(), dict(cases=[(r(2, 8, 8, 8),), (r(3, 8, 8, 8),)], dynamic=({0: batch},), train=True)
    yield "swin_decomposed", Swin().eval(), dict(cases=[(r(2, 8, 8, 8),)], decompose=True, train=True)
    yield "views", Views(), dict(cases=[(r(5, 5), r(4, 5)), (r(5, 5), r(4, 5))])
    yield "views_decomposed", Views(), dict(cases=[(r(5, 5), r(4, 5))], decompose=True)
    yield "changes", Changes(), dict(cases=[(r(3, 3), r(2, 5))])
    yield "changes_decomposed", Changes(), dict(cases=[(r(3, 3), r(2, 5))], decompose=True)
    yield "control", Control(), dict(cases=[(r(3, 4), torch.tensor(3)), (-r(3, 4).abs(), torch.tensor(0))])
    even = 2 * Dim("half", min=1, max=20)
    yield "sizes", Sizes(), dict(cases=[(r(2, 8, 6), r(2, 3, 6)), (r(3, 6, 6), r(3, 5, 6))], dynamic=({0: batch, 1: even}, {0: batch, 1: Dim("rows", min=1, max=30)}), train=True)
    yield "halves", Halves().to(torch.bfloat16), dict(cases=[(r(3, 8).to(torch.bfloat16),), (r(1, 8).to(torch.bfloat16),)], dynamic=({0: batch},))
    yield "data", Data(), dict(cases=[(r(4, 3), torch.tensor(3)), (r(4, 3), torch.tensor(5))])
    yield "rows", Rows().eval(), dict(cases=[(r(2, 8, 6), r(3, 3)), (r(3, 8, 6), r(3, 3))], dynamic=({0: batch}, None), train=True)
    yield "splits", Splits(), dict(cases=[(r(2, 4, 5), r(3, 4))])
    yield "matrices", Matrices(), dict(cases=[(r(3, 3), r(3, 4))])
    yield "statistics", Statistics(), dict(cases=[(r(5, 4),)])
    several = torch.tensor([[1, 4, -1, 0, 2], [3, -1, 1, 1, 1], [0, 1, 2, 3, 4]])
    yield "losses", Losses(), dict(cases=[(r(3, 5), r(3, 5), ids(5, 3), torch.tensor([1, -1, 1]), several)])
    yield "norms", Norms().train(), dict(cases=[(r(2, 3, 4, 4), ids(6, 2, 3))])
    given = dict(cases=[(r(2, 3, 4, 4), r(3), 1 + r(3).abs(), r(3), 1 + r(3).abs())])
    yield "given", Given(), given
    yield "given_decomposed", Given(), dict(given, decompose=True)
    at = torch.cat([torch.tensor([[0.0], [1], [1], [0], [1]]), torch.tensor([[0.3, 0.4, 4.1, 3.9], [1.2, 0.6, 4.7, 5.3], [1.0, 0.5, 4.6, 5.2], [2.1, 2.2, 5.6, 5.9], [0.2, 0.1, 4.4, 3.7]])], 1)
    ops = dict(cases=[(r(2, 4, 7, 8), at)], train=True)
    small = dict(cases=[(ids(2, 4, 6), r(20), at[:, 1:], torch.tensor(s)) for s in ([0.3, 0.9, 0.8, 0.7, 0.6], [0.9, 0.1, 0.5, 0.6, 0.2])])
    yield "detect", Detect().eval(), ops
    yield "unique", Unique(), small
    yield "autocast", Autocast(), dict(cases=[(r(3, 8),), (r(5, 8),)], dynamic=({0: batch},), train=True)
    yield "warp", Warp(), dict(cases=[(r(2, 3, 6, 8),)])
    yield "projected", Projected(), dict(cases=[(r(4, 3, 5),)], train=True)


def flat(out):
    return [t.detach() for t in torch.utils._pytree.tree_leaves(out) if t is not None]


def tensors(model, cases, train):
    got = {}
    for k, args in enumerate(cases):
        runs = copy.deepcopy(model)
        for i, a in enumerate(args):
            got[f"{k}.in{i}"] = a.clone()
        mine = [a.clone() for a in args]
        outs = flat(runs(*mine))
        changed = [m for m, a in zip(mine, args) if not torch.equal(m, a)]
        for i, o in enumerate(outs + changed):
            got[f"{k}.out{i}"] = o.contiguous().clone()
        if k == 0:
            for n, b in runs.named_buffers():
                if n in runs.state_dict():
                    got[f"after.{n}"] = b.clone()
    if train:
        opt = torch.optim.SGD(model.parameters(), lr=0.05)
        for step in range(5):
            opt.zero_grad()
            torch.utils._pytree.tree_leaves(model(*[a.clone() for a in cases[0]]))[0].float().square().mean().backward()
            if step < 4:
                opt.step()
        for n, p in model.named_parameters():
            got[f"grad.{n}"] = p.grad.contiguous().clone()
        for n, b in model.named_buffers():
            if n in model.state_dict():
                got[f"buffer.{n}"] = b.clone()
    return got


def main():
    folder, only = pathlib.Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(exist_ok=True)
    for i, (name, model, c) in enumerate(models()):
        if only and name not in only:
            continue
        torch.manual_seed(i)
        for p in model.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.3)
        program = export(copy.deepcopy(model), c["cases"][0], dynamic_shapes=c.get("dynamic"), strict=False)
        if c.get("decompose"):
            program = program.run_decompositions()
        for n in program.graph.nodes:  # no paths of this machine in the files
            for key in ("nn_module_stack", "source_fn_stack", "torch_fn", "from_node"):
                n.meta.pop(key, None)
            if "stack_trace" in n.meta and n.meta["stack_trace"]:
                lines = [l for l in n.meta["stack_trace"].split("\n")]
                n.meta["stack_trace"] = "\n".join('  File "model.py"' + l[l.index('", line') + 1:] if l.lstrip().startswith("File ") else l for l in lines)
        save(program, folder / f"{name}.pt2")
        save_file(tensors(model, c["cases"], c.get("train")), folder / f"{name}.safetensors")
        print(name)


main()
