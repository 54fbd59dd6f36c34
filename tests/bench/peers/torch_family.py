"""A whole optimizer step of a model of 25 million parameters by transformers on the CPU.

The model is that of a config.json, with random weights, in fp32: its class's own PyTorch path, eager
or scaled_dot_product_attention, whichever is faster, PyTorch's fused AdamW, clipping at 1. The same
shapes and work as `millrace bench step --model CONFIG --precision fp32`.

Prints the fastest of the steps after the first two, in milliseconds.

    python tests/bench/peers/torch_family.py CONFIG --threads 2 --seq-len 512 --sequences 2
"""

import argparse
import json
import time

import torch
import transformers


def step(model, optimizer, ids):
    optimizer.zero_grad(set_to_none=True)
    logits = model(input_ids=ids[:, :-1], use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("config")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seq-len", type=int, default=512)
    parser.add_argument("--sequences", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    fields = json.load(open(given.config))
    name = fields["architectures"][0]
    best = None
    for attention in ("eager", "sdpa"):
        torch.manual_seed(1)
        config = transformers.AutoConfig.for_model(fields["model_type"], **{
            k: v for k, v in fields.items() if k not in ("model_type", "architectures", "dtype")})
        config._attn_implementation = attention
        model = getattr(transformers, name)(config).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        ids = torch.randint(3, config.vocab_size, (given.sequences, given.seq_len + 1))
        for i in range(2 + given.steps):
            begin = time.perf_counter()
            step(model, optimizer, ids)
            ms = 1e3 * (time.perf_counter() - begin)
            if i >= 2 and (best is None or ms < best):
                best = ms
    print(f"{best:.1f}")


if __name__ == "__main__":
    main()
