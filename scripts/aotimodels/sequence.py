"""Attention, recurrent layers, embeddings."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from aotimodels.case import Call, Case, every_generation, fixture, large


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)
        self.norm = nn.LayerNorm(32)

    def forward(self, x, keep, bias):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, s, 3, 4, 8).permute(2, 0, 3, 1, 4)
        plain = F.scaled_dot_product_attention(q, k, v)
        causal = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        kept = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        biased = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.25)
        return tuple(self.out(y.transpose(1, 2).reshape(b, s, 32)) for y in (plain, causal, kept, biased))


@every_generation
@fixture
def attention():
    """Scaled dot-product attention: plain, causal, with a boolean mask, with a bias; layer norm."""
    keep = torch.rand(2, 1, 11, 11) > 0.3
    keep[..., 0] = True
    return Case(Attention(), (torch.randn(2, 11, 32), keep, torch.randn(2, 4, 11, 11)))


@fixture
def encoder():
    """A transformer encoder layer with padding, over a dynamic batch and length."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu", norm_first=True)

    def call(m, x, pad):
        return m.layer(x, src_key_padding_mask=pad)

    def inputs(b, s):
        pad = torch.zeros(b, s, dtype=torch.bool)
        pad[0, s // 2 :] = True
        return torch.randn(b, s, 32), pad

    sizes = {0: Dim("batch", min=1, max=64), 1: Dim("length", min=2, max=128)}
    return Case(
        Call(call, layer=layer), inputs(2, 9), cases=(inputs(3, 20),), dynamic={"args": (sizes, sizes)}
    )


@fixture
def lstm():
    """A two-layer bidirectional LSTM with its states (oneDNN's rnn_layer)."""
    net = nn.LSTM(12, 16, num_layers=2, bidirectional=True, batch_first=True)
    return Case(net, (torch.randn(3, 7, 12), (torch.randn(4, 3, 16), torch.randn(4, 3, 16))))


@fixture
def lstm_freezing():
    """A one-layer LSTM with freezing."""
    return Case(nn.LSTM(12, 16), (torch.randn(7, 3, 12),), config={"freezing": True})


@fixture
def gru():
    """A GRU and a plain recurrent layer."""

    def call(m, x):
        y, h = m.gru(x)
        return y, h, m.rnn(y)[0]

    return Case(Call(call, gru=nn.GRU(8, 12, num_layers=2), rnn=nn.RNN(12, 6)), (torch.randn(5, 2, 8),))


class CausalLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.norm, self.qkv, self.head = nn.Embedding(32, 16), nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 32)
        with torch.no_grad():
            self.head.weight.mul_(4)  # so that the likeliest token is not always the same

    def forward(self, tokens):
        x = self.table(tokens)
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        x = x + F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True)[:, 0]
        return {"logits": self.head(x)}


@large
def causal_lm():
    """A language model of one causal layer: tokens of any number and length to logits of the next ones. It is small, and the server's
    (--large --only causal_lm --out serve/testdata)."""
    sizes = {0: Dim("batch", max=16), 1: Dim("length", max=64)}
    tokens = [(torch.randint(0, 32, shape),) for shape in ((2, 7), (1, 1), (3, 20))]
    return Case(CausalLM(), tokens[0], cases=tokens[1:], dynamic=(sizes,))


@fixture
def embedding():
    """Embedding with a padding row, embedding bags (sum, mean, max), layer norm."""

    def call(m, ids, bag, offsets):
        bags = tuple(F.embedding_bag(bag, m.table.weight, offsets, mode=mode) for mode in ("sum", "mean", "max"))
        return (m.norm(m.table(ids)), *bags)

    module = Call(call, table=nn.Embedding(50, 12, padding_idx=0), norm=nn.LayerNorm(12))
    return Case(module, (torch.randint(0, 50, (3, 6)), torch.randint(0, 50, (20,)), torch.tensor([0, 4, 4, 11])))
