"""Print the table of architectures of docs/import.md, with the rows of further runs of zoo.py, and count it.

    python scripts/torchexport-zoo/table.py                                    # what the document has
    python scripts/torchexport-zoo/table.py --bf16 bf16.md --write f32.md      # merged with these, and put there

A file of f32 is what zoo.py wrote with --train --out, one of --bf16 what it wrote with --bf16 --out. A model that failed
in them has its error in the table. Behind the table stand how many there are and pass, the largest errors, and what all
of the merged runs took.
"""
import argparse, pathlib

DOC = pathlib.Path(__file__).resolve().parents[2] / "docs" / "import.md"
HEAD = "| model | kind | sizes | ops | outputs off by | gradients off by | bf16 outputs off by |\n|---|---|---|---|---|---|---|\n"
F32_BOUND, BF16_BOUND = 1e-5, 1.6e-2


def cells(line):
    return [c.strip() for c in line.strip().strip("|").split("|")]


def rows(text):
    return [cells(line) for line in text.splitlines() if line.startswith("|")]


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def merge(table, files, bf16):
    seconds = 0.0
    for file in files:
        for name, kind, sizes, ops, *rest in rows(file.read_text()):
            if ops == "FAILED":
                table[name] = [name, kind, sizes, "–", rest[0][:80], "", ""]
                continue
            old = table.get(name, [""] * 7)
            table[name] = [name, kind, sizes, ops, rest[0], rest[1] if len(rest) > 4 else old[5], old[6]]
            seconds += float(rest[-3]) + float(rest[-2]) + float(rest[-1]) / 1e3
    for file in bf16:
        for name, _, _, ops, *rest in rows(file.read_text()):
            if ops != "FAILED" and name in table:
                table[name][6] = rest[0]
                seconds += float(rest[-3]) + float(rest[-2]) + float(rest[-1]) / 1e3
    return seconds


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("files", nargs="*", type=pathlib.Path)
    p.add_argument("--bf16", action="append", default=[], type=pathlib.Path)
    p.add_argument("--write", action="store_true", help="puts the table into the document")
    args = p.parse_args()
    text = DOC.read_text()
    before, _, rest = text.partition(HEAD)
    end = rest.index("\n\n") + 1
    table = {r[0]: r for r in rows(rest[:end])}
    seconds = merge(table, args.files, args.bf16)
    body = "".join("| " + " | ".join(r) + " |\n" for r in sorted(table.values(), key=lambda r: (r[1].lower(), r[0])))
    print(HEAD + body)
    f32 = [number(r[4]) for r in table.values()]
    half = [number(r[6]) for r in table.values() if r[6]]
    ran = [e for e in f32 if e is not None]
    print(f"{len(f32)} models, {sum(e <= F32_BOUND for e in ran)} pass in f32 (outputs off by at most {F32_BOUND:g}), largest error {max(ran):.1e}")
    print(f"{len(half)} in bf16, {sum(e <= BF16_BOUND for e in half)} pass (at most {BF16_BOUND:g}), largest error {max(half):.1e}")
    if args.files or args.bf16:
        print(f"the merged runs took {seconds:.1f} s in Loris: loading, the first run and another")
    if args.write:
        DOC.write_text(before + HEAD + body + rest[end:])


main()
