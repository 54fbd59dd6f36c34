#!/usr/bin/env python3
"""Makes tests/core/run/goldens: tiny random models with logits and every gradient; and
tests/core/model/goldens/rope.json: rotary frequencies of every kind of scaling.

The reference is transformers in float64. Three places of it compute in float32 whatever the
model's type, and are lifted here: RMSNorm, the cast of the logits, and the softmax of "eager"
attention ("sdpa" is used, and for soft-caps an attention of this script). The rotary tables stay as published: angles formed in float32.

    python make_goldens.py [--out OUT] NAME...        # "rope" is the name of the frequencies

One folder per model:
    config.json, model.safetensors   F32, as any loader reads them
    golden.safetensors               "ids", "trained" (B, T + 1), "logits" (B, T, V),
                                     "grad.<tensor>": of the loss below, rounded to F32
    golden.json                      loss, and for every tensor the norm in float64 and the relative
                                     L2 error of PyTorch's own float32 (unchanged transformers)

Inputs are ids[:, :-1], targets ids[:, 1:] where trained[:, 1:] is 1.
Loss: the sum of the cross-entropies of trained targets / their number.
"""

import argparse
import json
import pathlib

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

COMMON = dict(max_position_embeddings=64, bos_token_id=1, eos_token_id=2)
SMALL = dict(vocab_size=48, hidden_size=32, intermediate_size=40, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)

# name, family, config arguments, batch, tokens of a sequence, share of masked targets, newer
# spelling of config.json
CASES = [
    ("gqa_tied", "Llama", dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                      num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-5,
                      tie_word_embeddings=True), 1, 12, 0.3, False),
    ("head_dim_untied", "Llama", dict(vocab_size=77, hidden_size=40, intermediate_size=52,
                             num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1,
                             head_dim=28, rms_norm_eps=1e-6, rope_theta=500000.0,
                             tie_word_embeddings=False), 1, 17, 0.0, True),
    ("mha_untied", "Llama", dict(vocab_size=64, hidden_size=36, intermediate_size=44, num_hidden_layers=3,
                        num_attention_heads=3, num_key_value_heads=3, rms_norm_eps=1e-6,
                        rope_theta=500000.0, tie_word_embeddings=False), 3, 7, 0.4, True),
    ("biases", "Llama", dict(vocab_size=80, hidden_size=32, intermediate_size=40, num_hidden_layers=2,
                    num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-5,
                    attention_bias=True, mlp_bias=True, tie_word_embeddings=True), 2, 10, 0.2, False),
    ("batch", "Llama", dict(vocab_size=300, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                   num_attention_heads=8, num_key_value_heads=2, rms_norm_eps=1e-5,
                   tie_word_embeddings=False), 2, 24, 0.5, False),
    ("llama3_rope", "Llama", dict(SMALL, head_dim=16, rms_norm_eps=1e-5, rope_parameters=LLAMA3,
                                  tie_word_embeddings=True), 1, 24, 0.2, False),
    ("mistral_window", "Mistral", dict(SMALL, rms_norm_eps=1e-5, sliding_window=5,
                                       tie_word_embeddings=False), 2, 12, 0.3, False),
    ("qwen2", "Qwen2", dict(SMALL, rms_norm_eps=1e-6, use_sliding_window=True, sliding_window=4,
                            max_window_layers=1, tie_word_embeddings=True), 2, 11, 0.2, False),
    ("qwen3", "Qwen3", dict(SMALL, head_dim=14, rms_norm_eps=1e-6, tie_word_embeddings=True),
     2, 13, 0.3, True),
    ("phi3", "Phi3", dict(SMALL, rms_norm_eps=1e-5, sliding_window=9, pad_token_id=0,
                          original_max_position_embeddings=8, tie_word_embeddings=False,
                          rope_parameters=dict(rope_type="longrope",
                                               short_factor=[1.0, 1.1, 1.3, 2.0],
                                               long_factor=[1.2, 1.9, 3.5, 7.0])),
     1, 14, 0.0, False),
    ("phi3_partial", "Phi3", dict(SMALL, rms_norm_eps=1e-5, sliding_window=None, pad_token_id=0,
                                  original_max_position_embeddings=8, tie_word_embeddings=True,
                                  rope_parameters=dict(rope_type="longrope",
                                                       partial_rotary_factor=0.75,
                                                       short_factor=[1.0, 1.1, 1.3],
                                                       long_factor=[1.2, 1.9, 3.5])),
     2, 11, 0.2, False),
    ("gemma", "Gemma", dict(SMALL, head_dim=12, rms_norm_eps=1e-6), 2, 12, 0.3, False),
    ("gemma2", "Gemma2", dict(SMALL, num_hidden_layers=3, head_dim=10, rms_norm_eps=1e-6,
                              sliding_window=5, query_pre_attn_scalar=20,
                              attn_logit_softcapping=2.0, final_logit_softcapping=4.0),
     2, 13, 0.2, False),
    ("gemma3", "Gemma3", dict(SMALL, num_hidden_layers=3, head_dim=14, rms_norm_eps=1e-6,
                              sliding_window=4, query_pre_attn_scalar=24,
                              layer_types=["sliding_attention", "sliding_attention",
                                           "full_attention"],
                              rope_parameters=dict(
                                  full_attention=dict(rope_type="linear", factor=8.0,
                                                      rope_theta=1e6),
                                  sliding_attention=dict(rope_type="default",
                                                         rope_theta=1e4))),
     2, 13, 0.3, True),
    ("gemma3_older", "Gemma3", dict(SMALL, num_hidden_layers=4, head_dim=16, rms_norm_eps=1e-6,
                                    sliding_window=4, sliding_window_pattern=2,
                                    query_pre_attn_scalar=16),
     1, 15, 0.2, False),
    ("padding", "Qwen2", dict(SMALL, rms_norm_eps=1e-6, pad_token_id=7, tie_word_embeddings=False),
     2, 9, 0.2, True),
    ("dynamic_rope", "Llama", dict(SMALL, rms_norm_eps=1e-5, max_position_embeddings=8,
                                   rope_parameters=dict(rope_type="dynamic", factor=2.5),
                                   tie_word_embeddings=True), 2, 17, 0.3, False),
]

# name, length of the sequence, max_position_embeddings, rope_theta, rope_scaling
ROPE_CASES = [
    ("default", 32, 64, 10000.0, dict(rope_type="default")),
    ("linear", 32, 64, 10000.0, dict(rope_type="linear", factor=4.0)),
    ("dynamic_short", 32, 64, 10000.0, dict(rope_type="dynamic", factor=4.0)),
    ("dynamic_long", 200, 64, 10000.0, dict(rope_type="dynamic", factor=4.0)),
    ("llama3", 32, 8192, 500000.0, dict(LLAMA3, original_max_position_embeddings=256)),
    ("yarn", 32, 256, 10000.0, dict(rope_type="yarn", factor=4.0,
                                    original_max_position_embeddings=64)),
    ("yarn_mscale", 32, 2560, 10000.0, dict(rope_type="yarn", factor=40.0, beta_fast=16.0,
                                            beta_slow=2.0, mscale=0.7, mscale_all_dim=1.3,
                                            truncate=False,
                                            original_max_position_embeddings=64)),
    ("yarn_attention_factor", 32, 256, 10000.0,
     dict(rope_type="yarn", factor=4.0, attention_factor=1.5,
          original_max_position_embeddings=64)),
    ("longrope_short", 64, 256, 10000.0,
     dict(rope_type="longrope", short_factor=[1.0 + 0.1 * i for i in range(16)],
          long_factor=[1.0 + i for i in range(16)], original_max_position_embeddings=64)),
    ("longrope_long", 65, 256, 10000.0,
     dict(rope_type="longrope", short_factor=[1.0 + 0.1 * i for i in range(16)],
          long_factor=[1.0 + i for i in range(16)], original_max_position_embeddings=64)),
]


class Float64RMSNorm(torch.nn.Module):
    """RMSNorm without its cast to float32; Gemma's multiplies by 1 + weight."""

    def __init__(self, like):
        super().__init__()
        self.weight = like.weight
        self.offset = 1.0 if type(like).__name__.startswith("Gemma") else 0.0
        self.eps = like.eps if self.offset else like.variance_epsilon

    def forward(self, x):
        normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return (self.offset + self.weight) * normed


def attention(module, query, key, value, mask, scaling=None, softcap=None, **_):
    """"eager" attention without its softmax in float32, for the soft-caps that "sdpa" lacks."""
    repeat = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(repeat, dim=1) for x in (key, value))
    scores = query @ key.transpose(2, 3) * scaling
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if mask is not None:
        scores = scores + mask.to(scores.dtype)
    return (scores.softmax(-1) @ value).transpose(1, 2).contiguous(), None


ALL_ATTENTION_FUNCTIONS.register("in_its_type", attention)
ALL_MASK_ATTENTION_FUNCTIONS.register("in_its_type", eager_mask)


def randomise(model, generator):
    """Weights large enough that attention and SwiGLU are far from linear."""
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=generator)
        if name.endswith("norm.weight"):
            p.data = (0.0 if type(model).__name__.startswith("Gemma") else 1.0) + 0.2 * noise
        elif p.dim() == 1:
            p.data = 0.3 * noise
        elif "embed_tokens" in name or "lm_head" in name:
            p.data = 0.7 * noise
        else:
            p.data = 1.3 * noise / p.shape[1] ** 0.5


def classes(family):
    """-> config class, model class."""
    text = "TextConfig" if family == "Gemma3" else "Config"
    return (getattr(transformers, family + text),
            getattr(transformers, family + "ForCausalLM"))


def logits_and_loss(model, ids, trained):
    logits = model(input_ids=ids[:, :-1]).logits
    targets = ids[:, 1:].masked_fill(trained[:, 1:] == 0, -100)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
    return logits, loss / (targets != -100).sum()


def run(config, family, weights, ids, trained, dtype):
    """-> logits, loss, gradients by name."""
    model = classes(family)[1](config).to(dtype)
    model.load_state_dict(weights, strict=not config.tie_word_embeddings)
    model.tie_weights()
    if dtype == torch.float64:
        for module in list(model.modules()):
            for name, child in module.named_children():
                if type(child).__name__ == family + "RMSNorm":
                    setattr(module, name, Float64RMSNorm(child))
    logits, loss = logits_and_loss(model, ids, trained)
    assert logits.dtype == dtype
    loss.backward()
    return logits.detach(), loss.item(), {n: p.grad for n, p in model.named_parameters()}


def older_spelling(config):
    """config.json as transformers 4 wrote it: rope_theta, rope_scaling and torch_dtype."""
    config = dict(config)
    rope = dict(config.pop("rope_parameters"))
    if config["model_type"] == "gemma3_text":
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = dict(rope["full_attention"])
    config["rope_theta"] = rope.pop("rope_theta")
    share = rope.pop("partial_rotary_factor", 1.0)
    if share != 1.0:
        config["partial_rotary_factor"] = share
    config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    if config["model_type"] == "phi3" and rope.pop("original_max_position_embeddings", None):
        rope["type"] = rope.pop("rope_type")
    config["torch_dtype"] = config.pop("dtype")
    config.pop("layer_types", None)  # what the other fields of a window say is enough
    return config


def config_text(config, family, newer):
    text = json.loads(config.to_json_string(use_diff=False))
    if hasattr(config, "_sliding_window_pattern"):
        text["sliding_window_pattern"] = config._sliding_window_pattern
    keep = ["architectures", "attention_bias", "attention_dropout", "attn_logit_softcapping",
            "bos_token_id", "dtype", "embd_pdrop", "eos_token_id", "final_logit_softcapping",
            "head_dim", "hidden_act", "hidden_activation", "hidden_size",
            "initializer_range", "intermediate_size", "layer_types", "max_position_embeddings",
            "max_window_layers", "mlp_bias", "model_type", "num_attention_heads",
            "num_hidden_layers", "num_key_value_heads", "original_max_position_embeddings",
            "pad_token_id", "query_pre_attn_scalar", "resid_pdrop", "rms_norm_eps",
            "rope_parameters", "sliding_window", "sliding_window_pattern", "tie_word_embeddings", "use_cache", "use_sliding_window", "vocab_size"]
    text = {k: text[k] for k in keep if k in text}
    text["architectures"] = [family + "ForCausalLM"]
    text["dtype"] = "float32"
    return text if newer else older_spelling(text)


def save_config(folder, config, family, newer):
    text = config_text(config, family, newer)
    (folder / "config.json").write_text(json.dumps(text, indent=2, sort_keys=True) + "\n")


def relative(a, b):
    return ((a.double() - b).norm() / b.norm()).item() if b.norm() > 0 else 0.0


def make(out, index):
    name, family, arguments, batch, tokens, masked, newer = CASES[index]
    generator = torch.Generator().manual_seed(20 + index)
    config_class, model_class = classes(family)
    capped = family == "Gemma2"
    config = config_class(**dict(COMMON, **arguments),
                          attn_implementation="in_its_type" if capped else "sdpa")
    model = model_class(config)
    randomise(model, generator)
    model.tie_weights()
    weights = {n: p.data.clone() for n, p in model.named_parameters()}
    ids = torch.randint(3, config.vocab_size, (batch, tokens + 1), generator=generator)
    if config.pad_token_id:  # its embedding has no gradient of the lookup
        ids[:, 2] = config.pad_token_id
    ids[:, 3] = ids[:, 1]  # a token that occurs twice: its embedding's gradient is a sum
    trained = (torch.rand(batch, tokens + 1, generator=generator) >= masked).long()
    trained[:, -1] = 1
    exact = {n: w.double() for n, w in weights.items()}
    logits, loss, grads = run(config, family, exact, ids, trained, torch.float64)
    logits32, loss32, grads32 = run(config, family, weights, ids, trained, torch.float32)

    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    save_config(folder, config, family, newer)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    tensors = {"ids": ids.float(), "trained": trained.float(), "logits": logits.float()}
    tensors |= {"grad." + n: g.float() for n, g in grads.items()}
    save_file(tensors, folder / "golden.safetensors")
    report = {
        "loss": loss, "torch_float32_loss_error": abs(loss32 - loss),
        "logits": {"norm": logits.norm().item(), "torch_float32_error": relative(logits32, logits)},
        "gradients": {n: {"norm": g.norm().item(), "torch_float32_error": relative(grads32[n], g)}
                      for n, g in sorted(grads.items())},
    }
    (folder / "golden.json").write_text(json.dumps(report, indent=1) + "\n")
    worst = max(v["torch_float32_error"] for v in report["gradients"].values())
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name}: loss {loss:.6f}, worst gradient error of PyTorch float32 {worst:.1e}, {size} bytes")


def make_rope(file):
    """What transformers makes of every kind of scaling, in float32 as it does."""
    cases = []
    for name, length, positions, theta, scaling in ROPE_CASES:
        config = transformers.LlamaConfig(
            **dict(COMMON, **SMALL, head_dim=32, rms_norm_eps=1e-5),
            rope_parameters=dict(scaling, rope_theta=theta))
        config.max_position_embeddings = positions
        inverse, factor = plain_frequencies(config), 1.0
        if scaling["rope_type"] != "default":
            make_one = ROPE_INIT_FUNCTIONS[scaling["rope_type"]]
            inverse, factor = make_one(config, torch.device("cpu"), seq_len=length)
        text = config_text(config, "Llama", len(cases) % 2 == 0)
        cases.append({"name": name, "length": length, "config": text,
                      "inverse": inverse.tolist(), "attention_factor": factor})
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(cases, indent=1) + "\n")
    print(f"rope: {len(cases)} cases, {file.stat().st_size} bytes")


def plain_frequencies(config):
    exponents = torch.arange(0, config.head_dim, 2).float() / config.head_dim
    return 1.0 / config.rope_parameters["rope_theta"] ** exponents


def main():
    tests = pathlib.Path(__file__).resolve().parent.parent
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--out", type=pathlib.Path, default=tests / "core/run/goldens")
    arguments.add_argument("names", nargs="+", choices=[case[0] for case in CASES] + ["rope"])
    given = arguments.parse_args()
    torch.set_num_threads(1)
    for index, case in enumerate(CASES):
        if case[0] in given.names:
            make(given.out, index)
    if "rope" in given.names:
        make_rope(tests / "core/model/goldens/rope.json")


if __name__ == "__main__":
    main()
