#!/usr/bin/env python3
"""The evaluation figures of the shared test data, by transformers in float64.

    python eval_reference.py DATA        DATA: the folder with models/ and datasets/

Prints what `millrace eval --precision fp32` has to give, to 1e-4: cross-entropy in nats per
predicted token. RMSNorm and softmax are kept in float64 (see make_goldens.py).
"""

import pathlib
import sys

import sentencepiece
import torch
import torch.nn.functional as F
from transformers import LlamaForCausalLM
from transformers.models.llama import modeling_llama

from make_goldens import Float64RMSNorm


def load(folder):
    model = LlamaForCausalLM.from_pretrained(folder, attn_implementation="sdpa").double().eval()
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, modeling_llama.LlamaRMSNorm):
                setattr(module, name, Float64RMSNorm(child))
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    return model, tokenizer


@torch.no_grad()
def losses(model, ids):
    """Cross-entropy of every predicted token of one sequence."""
    ids = torch.tensor([ids])
    logits = model(input_ids=ids[:, :-1]).logits[0]
    return F.cross_entropy(logits, ids[0, 1:], reduction="none")


def stories(model, tokenizer, data, longest):
    text = (data / "datasets/tinystories_sample.txt").read_text(encoding="utf-8")
    each = []
    for story in text.split("<|endoftext|>"):
        if story.strip():
            ids = [tokenizer.bos_id()] + tokenizer.encode(story.strip())
            each.append(losses(model, ids[:longest]))
    shown = " ".join(f"{len(e) + 1}:{e.mean():.4f}" for e in each)
    print(f"  five stories (tokens:loss)  {shown}")
    print(f"  five stories, mean          {torch.cat(each).mean():.6f}")


def blocks(model, tokenizer, path, count, size, characters=None):
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()[:characters]
    ids = tokenizer.encode(text)
    each = [losses(model, ids[i * size:(i + 1) * size]) for i in range(count)]
    print(f"  {path.name}, {len(ids)} tokens, {count} blocks of {size}: "
          f"{torch.cat(each).mean():.6f}")


@torch.no_grad()
def greedy(model, tokenizer, count):
    ids = [tokenizer.bos_id()]
    for _ in range(count):
        ids.append(int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
    print("  greedy:", tokenizer.decode(ids))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    data = pathlib.Path(sys.argv[1])
    print("stories260K")
    model, tokenizer = load(data / "models/stories260K")
    stories(model, tokenizer, data, 512)
    blocks(model, tokenizer, data / "datasets/tinystories_197k.txt", 32, 512)
    blocks(model, tokenizer, data / "datasets/tinyshakespeare.txt", 16, 512, 60000)
    greedy(model, tokenizer, 48)
    print("babyllama")
    model, tokenizer = load(data / "models/babyllama")
    stories(model, tokenizer, data, 256)


if __name__ == "__main__":
    main()
