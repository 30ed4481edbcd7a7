"""Export a GPT-2 with its cache for examples/generate: python examples/generate/export.py gpt2.pt2

Needs PyTorch and transformers. The network is transformers' GPT2LMHeadModel, small and for bytes, which learns a part
of Newton's Opticks here. Its cache of keys and values is a StaticCache whose tensors are buffers of the program, so
that calls follow each other: the first takes the prompt, each further one a token. Beside the program it writes
what PyTorch continues a prompt with, without a cache (gpt2.txt).
"""
import argparse, pathlib
import torch
from transformers import GPT2Config, GPT2LMHeadModel, StaticCache

TEXT = pathlib.Path(__file__).parent.parent / "gpt" / "opticks.txt"
PROMPT = b"The Rays of Light "


class Decoder(torch.nn.Module):
    """The model with a cache for one text; ids are the tokens that follow those of earlier calls."""

    def __init__(self, model, length):
        super().__init__()
        self.model, c = model, model.config
        cache = StaticCache(config=c, max_cache_len=length)
        cache.early_initialization(1, c.n_head, c.n_embd // c.n_head, torch.float32, torch.device("cpu"))
        self.cache, self.layers = [cache], len(cache.layers)
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
        for i, layer in enumerate(cache.layers):
            self.register_buffer(f"keys_{i}", layer.keys)
            self.register_buffer(f"values_{i}", layer.values)

    def forward(self, ids):
        cache = self.cache[0]
        for i, layer in enumerate(cache.layers):
            layer.keys, layer.values = getattr(self, f"keys_{i}"), getattr(self, f"values_{i}")
            layer.cumulative_length = self.seen.clone()
        at = self.seen + torch.arange(ids.shape[1])
        out = self.model(input_ids=ids, position_ids=at[None], past_key_values=cache, use_cache=True)
        self.seen.add_(ids.shape[1])
        return out.logits


def train(model, steps, window):
    text = torch.frombuffer(bytearray(TEXT.read_bytes()), dtype=torch.uint8).long()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 6e-3, total_steps=steps)
    model.train()
    for step in range(steps):
        x = torch.stack([text[i:i + window] for i in torch.randint(len(text) - window, (16,))])
        loss = model(input_ids=x, labels=x, use_cache=False).loss
        opt.zero_grad()
        loss.backward()
        opt.step()
        schedule.step()
    model.eval()
    print(f"loss {loss.item():.2f} nats a byte")


def continuation(model, length):
    ids = torch.tensor([list(PROMPT)])
    with torch.no_grad():
        while ids.shape[1] < length:
            ids = torch.cat([ids, model(input_ids=ids, use_cache=False).logits[:, -1:].argmax(-1)], 1)
    return bytes(ids[0].tolist())


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("out")
    args.add_argument("--width", type=int, default=128)
    args.add_argument("--layers", type=int, default=4)
    args.add_argument("--length", type=int, default=256, help="the longest text, in bytes")
    args.add_argument("--steps", type=int, default=1000)
    args.add_argument("--plain", action="store_true", help="without the lines of Python, for a smaller file")
    args = args.parse_args()
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=128, n_embd=args.width, n_layer=args.layers, n_head=4, n_positions=args.length,
                        bos_token_id=0, eos_token_id=0, pad_token_id=0, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    model = GPT2LMHeadModel(config)
    train(model, args.steps, min(64, args.length))
    text = continuation(model, args.length)
    print(text.decode("ascii"))
    decoder = Decoder(model, args.length)
    with torch.no_grad():
        program = torch.export.export(decoder, (torch.zeros(1, 7, dtype=torch.long),),
                                      dynamic_shapes=({1: torch.export.Dim("tokens", max=args.length)},), strict=False)
    if args.plain:
        for n in program.graph.nodes:
            for key in ("nn_module_stack", "source_fn_stack", "torch_fn", "from_node", "stack_trace"):
                n.meta.pop(key, None)
    torch.export.save(program, args.out)
    pathlib.Path(args.out).with_suffix(".txt").write_bytes(text)


main()
