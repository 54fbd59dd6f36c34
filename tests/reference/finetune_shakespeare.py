#!/usr/bin/env python3
"""Fine-tunes stories260K on tinyshakespeare in plain PyTorch, for comparison with Millrace.

    python finetune_shakespeare.py DATA [STEPS]

The recipe: the whole file encoded once, non-overlapping blocks of 256 tokens, no BOS, shuffled per
epoch; 16 sequences a step, AdamW with lr 2e-3, 10 warm-up steps, cosine to 0, weight decay 0.01 on
matrices, clip 1.0, float32, 300 steps. Evaluated before and after on the first 16 blocks of 512 of
the first 60,000 characters.
"""

import math
import pathlib
import sys

import sentencepiece
import torch
import torch.nn.functional as F
from transformers import LlamaForCausalLM

BLOCK, BATCH, PEAK, WARMUP = 256, 16, 2e-3, 10


@torch.no_grad()
def evaluate(model, ids):
    each = []
    for i in range(16):
        block = ids[i * 512:(i + 1) * 512]
        logits = model(input_ids=block[None, :-1]).logits[0]
        each.append(F.cross_entropy(logits, block[1:], reduction="none"))
    return torch.cat(each).mean().item()


def optimizer_of(model):
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01},
                              {"params": others, "weight_decay": 0.0}], lr=PEAK)


def rate(step, steps):
    if step < WARMUP:
        return PEAK * (step + 1) / WARMUP
    return PEAK * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (steps - WARMUP)))


def batches(blocks):
    while True:
        order = torch.randperm(len(blocks))
        for i in range(0, len(order) - BATCH + 1, BATCH):
            yield blocks[order[i:i + BATCH]]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    data = pathlib.Path(sys.argv[1])
    steps = int(sys.argv[2]) if len(sys.argv) == 3 else 300
    torch.manual_seed(1)
    folder = data / "models/stories260K"
    model = LlamaForCausalLM.from_pretrained(folder)
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    with open(data / "datasets/tinyshakespeare.txt", encoding="utf-8", newline="") as file:
        text = file.read()
    ids = torch.tensor(tokenizer.encode(text))
    judged = torch.tensor(tokenizer.encode(text[:60000]))
    blocks = ids[:len(ids) // BLOCK * BLOCK].view(-1, BLOCK)
    print(f"before: {evaluate(model, judged):.6f}")
    optimizer = optimizer_of(model)
    stream = batches(blocks)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(step, steps)
        batch = next(stream)
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0 or step + 1 == steps:
            print(f"step {step + 1}: loss {loss.item():.4f}", flush=True)
    print(f"after: {evaluate(model, judged):.6f}")


if __name__ == "__main__":
    main()
