"""Writes nn/testdata/layers.safetensors: what PyTorch's layers compute and their gradients.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0 numpy safetensors==0.8.0
    .venv/bin/python scripts/make_nn_goldens.py

Each case has tensors named `case/param/NAME`, `case/buffer/NAME` (before the call), `case/after/NAME` (the
buffers after it), `case/in/I`, `case/out/I` and `case/grad/NAME`: the gradients of the sum of the first
output weighted by `case/weight`.
"""

import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

OUT = pathlib.Path(__file__).parent.parent / "nn/testdata/layers.safetensors"
tensors = {}


def case(name, module, *inputs, call=None, train=True):
    module.train(train)
    put(name, "param", module.named_parameters())
    put(name, "buffer", module.named_buffers())
    put(name, "in", enumerate(inputs))
    out = (call or module)(*inputs)
    if isinstance(out, torch.Tensor):
        out = (out,)
    put(name, "out", enumerate(out))
    put(name, "after", module.named_buffers())
    weight = torch.randn(out[0].shape, dtype=out[0].dtype)
    tensors[f"{name}/weight"] = weight
    if any(True for _ in module.parameters()):
        (out[0] * weight).sum().backward()
    put(name, "grad", ((n, p.grad) for n, p in module.named_parameters()))


def put(name, kind, named):
    for n, t in named:
        tensors[f"{name}/{kind}/{n}"] = t.detach().clone().contiguous()


def jitter(module):
    """Moves parameters and statistics off their initial ones and zeros."""
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn_like(p) * 0.3)
        for n, b in module.named_buffers():
            if b.is_floating_point():
                b.add_(torch.rand_like(b))
    return module


class Grouped(nn.Module):
    """Self-attention with fewer heads of key and value, laid out as nn.MultiheadAttention's one projection."""

    def __init__(self, dim, heads, kv):
        super().__init__()
        self.heads, self.kv, self.size = heads, kv, dim // heads
        self.in_proj_weight = nn.Parameter(torch.randn((heads + 2 * kv) * self.size, dim) * 0.3)
        self.in_proj_bias = nn.Parameter(torch.randn((heads + 2 * kv) * self.size) * 0.1)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x):
        n, length, dim = x.shape
        q, k, v = F.linear(x, self.in_proj_weight, self.in_proj_bias).split(
            [self.heads * self.size, self.kv * self.size, self.kv * self.size], -1
        )
        split = lambda t, h: t.view(n, length, h, self.size).transpose(1, 2)
        y = F.scaled_dot_product_attention(split(q, self.heads), split(k, self.kv), split(v, self.kv), enable_gqa=True)
        return self.out_proj(y.transpose(1, 2).reshape(n, length, dim))


def attention():
    def mha(**kw):
        return jitter(nn.MultiheadAttention(8, 2, batch_first=True, **kw))

    x, mem = torch.randn(2, 5, 8), torch.randn(2, 3, 8)
    causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)  # True: is masked
    m = mha()
    case("mha_self", m, x, call=lambda x: m(x, x, x, need_weights=False)[0])
    m2 = mha()
    case("mha_causal", m2, x, call=lambda x: m2(x, x, x, attn_mask=causal, need_weights=False)[0])
    m3 = mha(bias=False)
    keep = torch.tensor([[True, True, False], [True, False, False]])
    case("mha_mask", m3, x, mem, keep, call=lambda x, mem, keep: m3(x, mem, mem, key_padding_mask=~keep, need_weights=False)[0])
    m4 = mha(kdim=6, vdim=7)
    k, v = torch.randn(2, 4, 6), torch.randn(2, 4, 7)
    bias = torch.randn(5, 4)
    case("mha_cross", m4, x, k, v, bias, call=lambda x, k, v, b: m4(x, k, v, attn_mask=b, need_weights=False)[0])
    case("mha_grouped", Grouped(8, 4, 2), x)


def flat(out):
    """All results of a recurrent layer in one vector."""
    y, states = out
    states = states if isinstance(states, tuple) else (states,)
    return torch.cat([t.reshape(-1) for t in (y, *states)])


def recurrent():
    for name, kind, kw, states in [
        ("rnn", nn.RNN, {}, 0),
        ("rnn_relu", nn.RNN, dict(nonlinearity="relu", num_layers=2, bias=False), 1),
        ("gru", nn.GRU, dict(batch_first=True), 0),
        ("gru_deep", nn.GRU, dict(num_layers=2, bidirectional=True), 1),
        ("lstm", nn.LSTM, {}, 0),
        ("lstm_deep", nn.LSTM, dict(num_layers=2, bidirectional=True, batch_first=True), 2),
    ]:
        m = kind(3, 4, **kw)
        directions = 2 if m.bidirectional else 1
        hx = [torch.randn(m.num_layers * directions, 2, 4) for _ in range(states)]
        x = torch.randn(2, 5, 3) if m.batch_first else torch.randn(5, 2, 3)
        case(name, m, x, *hx, call=lambda x, *hx: flat(m(x, None if not hx else hx[0] if len(hx) == 1 else hx)))
    m = nn.LSTM(3, 4)
    case("lstm_unbatched", m, torch.randn(5, 3), call=lambda x: flat(m(x)))


def more():
    """Cases that came later, so that the numbers of those above stay."""
    case("conv3d", nn.Conv3d(2, 3, 2, padding=1, stride=2), torch.randn(2, 2, 3, 4, 3))
    case("conv_transpose1d", nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), torch.randn(2, 4, 5))
    case("conv_transpose2d", nn.ConvTranspose2d(3, 2, 3, (2, 1), (1, 0), (1, 0), dilation=(1, 2)), torch.randn(2, 3, 4, 3))
    case("conv_transpose3d", nn.ConvTranspose3d(2, 2, 2, bias=False), torch.randn(2, 2, 2, 3))
    case("batch_norm3d", jitter(nn.BatchNorm3d(2)), torch.randn(2, 2, 2, 3, 2))
    case("instance_norm1d", nn.InstanceNorm1d(3), torch.randn(3, 6))
    norm = jitter(nn.InstanceNorm2d(3, affine=True, track_running_stats=True, momentum=0.3))
    case("instance_norm2d_train", norm, torch.randn(2, 3, 4, 2) * 2 + 1)
    norm = jitter(nn.InstanceNorm3d(2, affine=True, track_running_stats=True))
    case("instance_norm3d_eval", norm, torch.randn(2, 2, 2, 3, 2), train=False)
    rows, offsets = torch.tensor([0, 2, 4, 1, 2, 5]), torch.tensor([0, 2, 2])
    m = nn.EmbeddingBag(6, 3, mode="mean", padding_idx=2)
    case("bag_mean", m, torch.tensor([[0, 2, 5], [2, 5, 1]]))
    m2 = nn.EmbeddingBag(6, 3, mode="sum")
    case("bag_sum", m2, rows, offsets, torch.randn(6), call=lambda x, o, w: m2(x, o, per_sample_weights=w))
    m3 = nn.EmbeddingBag(6, 3, mode="max", include_last_offset=True)
    case("bag_max", m3, rows, torch.tensor([0, 2, 5, 6]))
    recurrent()
    layer = jitter(nn.TransformerEncoderLayer(8, 2, 12, dropout=0, batch_first=True))
    case("encoder_layer", layer, torch.randn(2, 5, 8))
    first = jitter(nn.TransformerEncoderLayer(8, 2, 12, 0, "gelu", 1e-3, batch_first=True, norm_first=True, bias=False))
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    case("encoder_layer_first", first, torch.randn(2, 5, 8), call=lambda x: first(x, causal, is_causal=True))


def main():
    torch.manual_seed(20)
    case("linear", nn.Linear(4, 3), torch.randn(2, 5, 4))
    case("linear_f64", nn.Linear(4, 3, dtype=torch.float64), torch.randn(2, 4, dtype=torch.float64))
    case("linear_nobias", nn.Linear(4, 3, bias=False), torch.randn(2, 4))
    case("conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2), torch.randn(2, 4, 9))
    case("conv2d", nn.Conv2d(3, 4, 3, padding=1), torch.randn(2, 3, 5, 6))
    case("conv2d_general", nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 2), 2, bias=False), torch.randn(2, 4, 7, 6))
    emb = nn.Embedding(6, 3, padding_idx=2)
    with torch.no_grad():
        emb.weight[2] = torch.tensor([0.5, -1.0, 2.0])
    case("embedding", emb, torch.tensor([[0, 2, 5], [2, 5, 1]]))
    case("layer_norm", jitter(nn.LayerNorm(6)), torch.randn(3, 6))
    case("layer_norm_2d", jitter(nn.LayerNorm((2, 3), eps=1e-3, bias=False)), torch.randn(4, 2, 3))
    case("rms_norm", jitter(nn.RMSNorm(6)), torch.randn(3, 6))
    case("group_norm", jitter(nn.GroupNorm(2, 4)), torch.randn(2, 4, 3))
    case("batch_norm1d_train", jitter(nn.BatchNorm1d(4)), torch.randn(5, 4) * 2 + 1)
    case("batch_norm1d_eval", jitter(nn.BatchNorm1d(4)), torch.randn(5, 4), train=False)
    case("batch_norm2d_train", jitter(nn.BatchNorm2d(3, momentum=0.3)), torch.randn(2, 3, 4, 5))
    case("batch_norm2d_eval", jitter(nn.BatchNorm2d(3)), torch.randn(2, 3, 4, 5), train=False)
    attention()
    mlp = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 5), nn.GELU(), nn.Linear(5, 3)
    )
    case("sequential", jitter(mlp), torch.randn(6, 1, 4, 4))
    more()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, OUT)
    print(f"{len(tensors)} tensors, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
