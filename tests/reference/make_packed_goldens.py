#!/usr/bin/env python3
"""Makes tests/core/run/goldens/packed_NAME: what transformers in float64 makes of one row that
several documents share, for models of tests/core/run/goldens.

Transformers is given the row as it wants it: all tokens of all documents end to end, positions that
restart at 0, no mask of ours (it makes a block-diagonal one of the positions), and labels of which
the first token of each document is none. The documents one by one must give the same loss; the
script refuses to write anything else.

    python make_packed_goldens.py [--out OUT] NAME...

    golden.safetensors   "ids", "trained" (N): the documents end to end; "lengths" (D) of them;
                         "grad.<tensor>": of the loss, rounded to F32
    golden.json          as make_goldens.py writes it

Loss: the sum of the cross-entropies of trained targets / their number.
"""

import argparse
import json
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import make_goldens
from make_goldens import Float64RMSNorm, classes, relative

# name of the model, lengths of the documents in tokens; the last one is longer than any window
CASES = {"gqa_tied": [2, 6, 3, 5], "mistral_window": [4, 2, 9], "gemma2": [3, 2, 10],
         "gemma3": [6, 2, 8]}


def load(folder, dtype):
    config = json.loads((folder / "config.json").read_text())
    family = config["architectures"][0].removesuffix("ForCausalLM")
    config = classes(family)[0].from_pretrained(
        folder, attn_implementation="in_its_type" if family == "Gemma2" else "sdpa")
    model = classes(family)[1](config).to(dtype)
    weights = {n: w.to(dtype) for n, w in load_file(folder / "model.safetensors").items()}
    model.load_state_dict(weights, strict=not config.tie_word_embeddings)
    model.tie_weights()
    if dtype == torch.float64:
        for module in list(model.modules()):
            for name, child in module.named_children():
                if type(child).__name__ == family + "RMSNorm":
                    setattr(module, name, Float64RMSNorm(child))
    return model


def loss_sum(model, ids, trained, positions):
    """Of the documents in one row; the first token of each is no target."""
    logits = model(input_ids=ids[None], position_ids=positions[None], use_cache=False).logits[0]
    labels = ids.masked_fill((trained == 0) | (positions == 0), -100)
    return F.cross_entropy(logits[:-1], labels[1:], reduction="sum")


def run(model, documents):
    """-> loss, gradients by name."""
    ids, trained, positions = (torch.cat(parts) for parts in zip(*documents))
    count = int(((trained == 1) & (positions > 0)).sum())
    loss = loss_sum(model, ids, trained, positions) / count
    loss.backward()
    alone = sum(loss_sum(model, *document).item() for document in documents) / count
    return loss.item(), alone, {n: p.grad for n, p in model.named_parameters()}


def make(out, source, name):
    generator = torch.Generator().manual_seed(90 + sorted(CASES).index(name))
    model = load(source / name, torch.float64)
    documents = []
    for length in CASES[name]:
        ids = torch.randint(3, model.config.vocab_size, (length,), generator=generator)
        trained = (torch.rand(length, generator=generator) >= 0.3).long()
        trained[-1] = 1
        documents.append((ids, trained, torch.arange(length)))
    loss, alone, grads = run(model, documents)
    if abs(loss - alone) > 1e-12 * loss:
        raise SystemExit(f"{name}: {loss} packed, {alone} one by one: they saw each other")
    loss32, _, grads32 = run(load(source / name, torch.float32), documents)
    folder = out / f"packed_{name}"
    folder.mkdir(parents=True, exist_ok=True)
    ids, trained, _ = (torch.cat(parts) for parts in zip(*documents))
    tensors = {"ids": ids.float(), "trained": trained.float(),
               "lengths": torch.tensor([len(d[0]) for d in documents]).float()}
    tensors |= {"grad." + n: g.float() for n, g in grads.items()}
    save_file(tensors, folder / "golden.safetensors")
    report = {"loss": loss, "torch_float32_loss_error": abs(loss32 - loss),
              "gradients": {n: {"norm": g.norm().item(),
                                "torch_float32_error": relative(grads32[n], g)}
                            for n, g in sorted(grads.items())}}
    (folder / "golden.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"{name}: loss {loss:.6f}, {sum(f.stat().st_size for f in folder.iterdir())} bytes")


def main():
    goldens = pathlib.Path(make_goldens.__file__).resolve().parent.parent / "core/run/goldens"
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--out", type=pathlib.Path, default=goldens)
    arguments.add_argument("names", nargs="+", choices=list(CASES))
    given = arguments.parse_args()
    torch.set_num_threads(1)
    for name in given.names:
        make(given.out, goldens, name)


if __name__ == "__main__":
    main()
