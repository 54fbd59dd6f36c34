#!/usr/bin/env python3
"""Makes tests/core/prove/goldens_bf16: how far PyTorch's bfloat16 is from float64.

    python make_bf16_goldens.py [--out OUT] NAME...

For each model, over 32 seeds: weights and tokens are made from Philox words, every weight a number of
BF16, so that the test makes the same ones and both sides begin alike. One folder per model:
    config.json
    golden.json   "sequences", "tokens", and by seed "loss" and "norms" (of every gradient, in float64:
                  a test that made other weights would not have them); over the seeds "loss_rms" and
                  "rms": the root of the mean square of |loss - loss64|, and of the relative L2 error
                  of every gradient
The models are those of transformers as it loads them in bfloat16 (rotary frequencies in float32), with
its own choice of attention; the loss is taken of logits widened to float32, as there.
"""

import argparse
import json
import pathlib

import numpy
import torch
import torch.nn.functional as F

from make_goldens import COMMON, SMALL, classes, run, save_config

SEEDS = 32
SEQUENCES, TOKENS = 2, 16
SHAPE = dict(SMALL, vocab_size=96, hidden_size=64, intermediate_size=80, head_dim=16)
CASES = {
    "llama": ("Llama", dict(SHAPE, rms_norm_eps=1e-5, tie_word_embeddings=True)),
    "qwen3": ("Qwen3", dict(SHAPE, rms_norm_eps=1e-6, tie_word_embeddings=False)),
    "gemma2": ("Gemma2", dict(SHAPE, rms_norm_eps=1e-6, sliding_window=6, query_pre_attn_scalar=16,
                              attn_logit_softcapping=4.0, final_logit_softcapping=8.0)),
}
IDS_KEY = 0xFFFF


def philox_words(key, count):
    """The first words of the stream `key` of Philox 4x32-10 (Salmon et al., SC11)."""
    counters = numpy.arange((count + 3) // 4, dtype=numpy.uint64)
    mask = numpy.uint64(0xFFFFFFFF)
    shift = numpy.uint64(32)
    c = [counters & mask, counters >> shift, counters * 0, counters * 0]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p0 = numpy.uint64(0xD2511F53) * c[0]
        p1 = numpy.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> shift) ^ c[1] ^ numpy.uint64(k0), p1 & mask,
             (p0 >> shift) ^ c[3] ^ numpy.uint64(k1), p0 & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return numpy.stack(c, axis=1).reshape(-1)[:count].astype(numpy.int64)


def made_weights(model, family, seed):
    """256 levels for matrices, 64 around the gain 1 for norms: numbers of BF16."""
    weights = {}
    for index, (name, p) in enumerate(sorted(model.named_parameters())):
        level = (philox_words(seed << 16 | index, p.numel()) >> 24) - 128
        if p.dim() == 1:
            values = (0.0 if family.startswith("Gemma") else 1.0) + (level >> 2) / 128.0
        elif "embed_tokens" in name or "lm_head" in name:
            values = level / 128.0
        else:
            values = level / 256.0
        weights[name] = torch.tensor(values, dtype=torch.float64).view(p.shape)
        assert torch.equal(weights[name].bfloat16().double(), weights[name])
    return weights


def run_bf16(config, family, weights, ids):
    torch.set_default_dtype(torch.bfloat16)
    model = classes(family)[1](config)
    torch.set_default_dtype(torch.float32)
    model.load_state_dict({n: w.bfloat16() for n, w in weights.items()},
                          strict=not config.tie_word_embeddings)
    model.tie_weights()
    logits = model(input_ids=ids[:, :-1]).logits
    assert logits.dtype == torch.bfloat16
    loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    return loss.item(), {n: p.grad.double() for n, p in model.named_parameters()}


def make(out, name):
    family, arguments = CASES[name]
    config_class, model_class = classes(family)
    exact_attention = "in_its_type" if family == "Gemma2" else "sdpa"
    exact_config = config_class(**COMMON, **arguments, attn_implementation=exact_attention)
    config = config_class(**COMMON, **arguments)
    model = model_class(exact_config)
    seeds, squares, loss_square = [], {}, 0.0
    for seed in range(SEEDS):
        weights = made_weights(model, family, seed)
        words = philox_words(seed << 16 | IDS_KEY, SEQUENCES * (TOKENS + 1))
        # No token of padding, whose embedding PyTorch leaves without the gradient of its lookup.
        ids = torch.tensor(3 + words % (config.vocab_size - 3)).view(SEQUENCES, TOKENS + 1)
        _, loss, grads = run(exact_config, family, weights, ids, torch.ones_like(ids), torch.float64)
        loss16, grads16 = run_bf16(config, family, weights, ids)
        seeds.append({"loss": loss, "norms": {n: g.norm().item() for n, g in grads.items()}})
        loss_square += (loss16 - loss) ** 2 / SEEDS
        for n, g in grads.items():
            error = ((grads16[n] - g).norm() / g.norm()).item()
            squares[n] = squares.get(n, 0.0) + error ** 2 / SEEDS
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    save_config(folder, config, family, True)
    report = {"sequences": SEQUENCES, "tokens": TOKENS, "loss_rms": loss_square ** 0.5,
              "rms": {n: s ** 0.5 for n, s in sorted(squares.items())}, "seeds": seeds}
    text = json.dumps(rounded(report), indent=None, separators=(",", ":"), sort_keys=True)
    (folder / "golden.json").write_text(text.replace('{"loss":', '\n{"loss":') + "\n")
    errors = list(report["rms"].values())
    print(f"{name}: loss rms {report['loss_rms']:.2e}, gradients {min(errors):.2e} to "
          f"{max(errors):.2e}, {(folder / 'golden.json').stat().st_size} bytes")


def rounded(value):
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.8g}") if isinstance(value, float) else value


def main():
    tests = pathlib.Path(__file__).resolve().parent.parent
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--out", type=pathlib.Path, default=tests / "core/prove/goldens_bf16")
    arguments.add_argument("names", nargs="+", choices=list(CASES))
    given = arguments.parse_args()
    torch.set_num_threads(1)
    for name in given.names:
        make(given.out, name)


if __name__ == "__main__":
    main()
