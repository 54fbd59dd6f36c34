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
import transformers

from make_goldens import COMMON, SMALL, classes, run, save_config
from make_variant_goldens import in_float64

SEEDS = 32
SEQUENCES, TOKENS = 2, 16
SHAPE = dict(SMALL, vocab_size=96, hidden_size=64, intermediate_size=80, head_dim=16)
CASES = {
    "llama": ("Llama", dict(SHAPE, rms_norm_eps=1e-5, tie_word_embeddings=True)),
    "qwen3": ("Qwen3", dict(SHAPE, rms_norm_eps=1e-6, tie_word_embeddings=False)),
    "gemma2": ("Gemma2", dict(SHAPE, rms_norm_eps=1e-6, sliding_window=6, query_pre_attn_scalar=16,
                              attn_logit_softcapping=4.0, final_logit_softcapping=8.0)),
}
# Fields of config.json; float64 by make_variant_goldens.py.
NEWER = SHAPE | COMMON | dict(rms_norm_eps=1e-6, pad_token_id=0, tie_word_embeddings=False)
NEWER_CASES = {
    # With an epsilon of 1e-6 the norm of what the rule gives takes float32 5e-5 away from float64.
    "qwen3_5": dict(NEWER, model_type="qwen3_5_text", rms_norm_eps=1e-3,
                    layer_types=["linear_attention", "full_attention"], linear_num_key_heads=2,
                    linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16,
                    linear_conv_kernel_dim=4,
                    rope_parameters=dict(rope_type="default", rope_theta=1e4,
                                         partial_rotary_factor=0.5)),
    "olmo3": dict(NEWER, model_type="olmo3", sliding_window=6,
                  layer_types=["sliding_attention", "full_attention"]),
    "glm4": dict(NEWER, model_type="glm4", attention_bias=True),
    # The last layer reads k and v of the second one.
    "gemma4": dict(NEWER, model_type="gemma4_text", num_hidden_layers=3, sliding_window=6,
                   rms_norm_eps=1e-3, layer_types=["sliding_attention", "full_attention", "full_attention"],
                   global_head_dim=24, num_kv_shared_layers=1, use_double_wide_mlp=True,
                   hidden_size_per_layer_input=16, vocab_size_per_layer_input=96,
                   final_logit_softcapping=8.0),
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
        one_plus = family.startswith(("Gemma", "qwen3_5")) and "linear_attn" not in name
        if name.endswith(("A_log", "dt_bias", "conv1d.weight")):
            values = level / 128.0
        elif name.endswith(".bias"):
            values = level / 512.0
        elif family == "gemma4_text" and name.endswith(("q_norm.weight", "k_norm.weight")):
            values = 0.25 + (level >> 2) / 256.0  # nothing else scales the scores
        elif p.dim() == 1:
            values = (0.0 if one_plus else 1.0) + (level >> 2) / 128.0
        elif "embed_tokens" in name or "lm_head" in name:
            values = level / 128.0
        else:
            values = level / 256.0
        weights[name] = torch.tensor(values, dtype=torch.float64).view(p.shape)
        assert torch.equal(weights[name].bfloat16().double(), weights[name])
    return weights


def outcome(model, weights, ids):
    """-> loss and gradients of a model in bfloat16"""
    scalars = {n: b for n, b in model.state_dict().items() if n.endswith("layer_scalar")}
    model.load_state_dict({n: w.bfloat16() for n, w in weights.items()} | scalars,
                          strict=not model.config.tie_word_embeddings)
    model.tie_weights()
    logits = model(input_ids=ids[:, :-1]).logits
    assert logits.dtype == torch.bfloat16
    loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    return loss.item(), {n: p.grad.double() for n, p in model.named_parameters()}


class Older:
    """Llama, Qwen 3, Gemma 2: float64 by make_goldens.py."""

    def __init__(self, name):
        self.family, arguments = CASES[name]
        config_class, self.model_class = classes(self.family)
        attention = "in_its_type" if self.family == "Gemma2" else "sdpa"
        self.exact_config = config_class(**COMMON, **arguments, attn_implementation=attention)
        self.config = config_class(**COMMON, **arguments)
        self.model = self.model_class(self.exact_config)

    def exact(self, weights, ids):
        _, loss, grads = run(self.exact_config, self.family, weights, ids, torch.ones_like(ids),
                             torch.float64)
        return loss, grads

    def narrow(self):
        torch.set_default_dtype(torch.bfloat16)
        model = self.model_class(self.config)
        torch.set_default_dtype(torch.float32)
        return model

    def save_config(self, folder):
        save_config(folder, self.config, self.family, True)


class Newer:
    def __init__(self, name):
        self.fields = dict(NEWER_CASES[name])
        self.family = self.fields["model_type"]
        self.config = transformers.AutoConfig.for_model(**self.fields)
        self.model = self.made(torch.float32)

    def made(self, dtype, **rest):
        torch.set_default_dtype(dtype)
        model = transformers.AutoModelForCausalLM.from_config(self.config, dtype=dtype, **rest)
        torch.set_default_dtype(torch.float32)
        return model

    def exact(self, weights, ids):
        model = self.made(torch.float32, attn_implementation="eager")
        scalars = {n: b for n, b in model.state_dict().items() if n.endswith("layer_scalar")}
        model.load_state_dict({n: w.float() for n, w in weights.items()} | scalars)
        loss, grads = in_float64(model, dict(model.named_parameters()), list(ids))
        return loss, {n: torch.from_numpy(g) for n, g in grads.items()}

    def narrow(self):
        return self.made(torch.bfloat16)

    def save_config(self, folder):
        text = json.dumps(self.fields, indent=2, sort_keys=True)
        (folder / "config.json").write_text(text + "\n")


def make(out, name):
    case = Older(name) if name in CASES else Newer(name)
    seeds, squares, loss_square = [], {}, 0.0
    for seed in range(SEEDS):
        weights = made_weights(case.model, case.family, seed)
        words = philox_words(seed << 16 | IDS_KEY, SEQUENCES * (TOKENS + 1))
        # No token of padding, whose embedding PyTorch leaves without the gradient of its lookup.
        ids = torch.tensor(3 + words % (case.config.vocab_size - 3)).view(SEQUENCES, TOKENS + 1)
        loss, grads = case.exact(weights, ids)
        loss16, grads16 = outcome(case.narrow(), weights, ids)
        seeds.append({"loss": loss, "norms": {n: g.norm().item() for n, g in grads.items()}})
        loss_square += (loss16 - loss) ** 2 / SEEDS
        for n, g in grads.items():
            error = ((grads16[n] - g).norm() / g.norm()).item()
            squares[n] = squares.get(n, 0.0) + error ** 2 / SEEDS
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    case.save_config(folder)
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
    arguments.add_argument("names", nargs="+", choices=[*CASES, *NEWER_CASES])
    given = arguments.parse_args()
    torch.set_num_threads(1)
    for name in given.names:
        make(given.out, name)


if __name__ == "__main__":
    main()
