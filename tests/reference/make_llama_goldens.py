#!/usr/bin/env python3
"""Makes tests/core/engine/goldens: tiny random Llama models with logits and every gradient.

The reference is transformers' LlamaForCausalLM in float64. Three places of it compute in float32
whatever the model's type, and are lifted here: RMSNorm, the cast of the logits, and the softmax of
"eager" attention ("sdpa" is used). The rotary tables stay as published: angles formed in float32.

    python make_llama_goldens.py [OUT]

One folder per model:
    config.json, model.safetensors   F32, as any loader reads them
    golden.safetensors               "ids", "trained" (B, T + 1), "logits" (B, T, V),
                                     "grad.<tensor>": of the loss below, rounded to F32
    golden.json                      loss, and for every tensor the norm in float64 and the relative
                                     L2 error of PyTorch's own float32 (unchanged transformers)

Inputs are ids[:, :-1], targets ids[:, 1:] where trained[:, 1:] is 1.
Loss: the sum of the cross-entropies of trained targets / their number.
"""

import json
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama import modeling_llama

COMMON = dict(max_position_embeddings=64, bos_token_id=1, eos_token_id=2)

# name, LlamaConfig arguments, batch, tokens of a sequence, share of masked targets, newer spelling
CASES = [
    ("gqa_tied", dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                      num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-5,
                      tie_word_embeddings=True), 1, 12, 0.3, False),
    ("head_dim_untied", dict(vocab_size=77, hidden_size=40, intermediate_size=52,
                             num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1,
                             head_dim=28, rms_norm_eps=1e-6, rope_theta=500000.0,
                             tie_word_embeddings=False), 1, 17, 0.0, True),
    ("mha_untied", dict(vocab_size=64, hidden_size=36, intermediate_size=44, num_hidden_layers=3,
                        num_attention_heads=3, num_key_value_heads=3, rms_norm_eps=1e-6,
                        rope_theta=500000.0, tie_word_embeddings=False), 3, 7, 0.4, True),
    ("biases", dict(vocab_size=80, hidden_size=32, intermediate_size=40, num_hidden_layers=2,
                    num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-5,
                    attention_bias=True, mlp_bias=True, tie_word_embeddings=True), 2, 10, 0.2, False),
    ("batch", dict(vocab_size=300, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                   num_attention_heads=8, num_key_value_heads=2, rms_norm_eps=1e-5,
                   tie_word_embeddings=False), 2, 24, 0.5, False),
]


class Float64RMSNorm(torch.nn.Module):
    """LlamaRMSNorm without its cast to float32."""

    def __init__(self, like):
        super().__init__()
        self.weight = like.weight
        self.eps = like.variance_epsilon

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def randomise(model, generator):
    """Weights large enough that attention and SwiGLU are far from linear."""
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=generator)
        if name.endswith("norm.weight"):
            p.data = 1.0 + 0.2 * noise
        elif p.dim() == 1:
            p.data = 0.3 * noise
        elif "embed_tokens" in name or "lm_head" in name:
            p.data = 0.7 * noise
        else:
            p.data = 1.3 * noise / p.shape[1] ** 0.5


def run(config, weights, ids, trained, dtype):
    """-> logits, loss, gradients by name."""
    model = LlamaForCausalLM(config).to(dtype)
    model.load_state_dict(weights, strict=not config.tie_word_embeddings)
    model.tie_weights()
    if dtype == torch.float64:
        for module in list(model.modules()):
            for name, child in module.named_children():
                if isinstance(child, modeling_llama.LlamaRMSNorm):
                    setattr(module, name, Float64RMSNorm(child))
    logits = model(input_ids=ids[:, :-1]).logits
    assert logits.dtype == dtype
    targets = ids[:, 1:].masked_fill(trained[:, 1:] == 0, -100)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
    loss = loss / (targets != -100).sum()
    loss.backward()
    return logits.detach(), loss.item(), {n: p.grad for n, p in model.named_parameters()}


def newer_spelling(config):
    """config.json as transformers 5 writes it: rope_parameters and dtype."""
    rope = {"rope_theta": config.pop("rope_theta"), "rope_type": "default"}
    config.pop("rope_scaling", None)
    config.pop("torch_dtype", None)
    return {**config, "rope_parameters": rope, "dtype": "float32"}


def older_spelling(config):
    config.pop("dtype", None)
    return {**config, "torch_dtype": "float32"}


def save_config(folder, config, newer):
    text = json.loads(config.to_json_string(use_diff=False))
    keep = ["architectures", "attention_bias", "attention_dropout", "bos_token_id", "dtype",
            "eos_token_id", "head_dim", "hidden_act", "hidden_size", "initializer_range",
            "intermediate_size", "max_position_embeddings", "mlp_bias", "model_type",
            "num_attention_heads", "num_hidden_layers", "num_key_value_heads", "rms_norm_eps",
            "rope_scaling", "rope_theta", "tie_word_embeddings", "use_cache", "vocab_size"]
    text = {k: text[k] for k in keep if k in text}
    text["architectures"] = ["LlamaForCausalLM"]
    text = newer_spelling(text) if newer else older_spelling(text)
    (folder / "config.json").write_text(json.dumps(text, indent=2, sort_keys=True) + "\n")


def relative(a, b):
    return ((a.double() - b).norm() / b.norm()).item() if b.norm() > 0 else 0.0


def make(out, index):
    name, arguments, batch, tokens, masked, newer = CASES[index]
    generator = torch.Generator().manual_seed(20 + index)
    config = LlamaConfig(**COMMON, **arguments, attn_implementation="sdpa")
    model = LlamaForCausalLM(config)
    randomise(model, generator)
    model.tie_weights()
    weights = {n: p.data.clone() for n, p in model.named_parameters()}
    ids = torch.randint(3, config.vocab_size, (batch, tokens + 1), generator=generator)
    ids[:, 3] = ids[:, 1]  # a token that occurs twice: its embedding's gradient is a sum
    trained = (torch.rand(batch, tokens + 1, generator=generator) >= masked).long()
    trained[:, -1] = 1
    exact = {n: w.double() for n, w in weights.items()}
    logits, loss, grads = run(config, exact, ids, trained, torch.float64)
    logits32, loss32, grads32 = run(config, weights, ids, trained, torch.float32)

    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    save_config(folder, config, newer)
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


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "core/engine/goldens"
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    torch.set_num_threads(1)
    for index in range(len(CASES)):
        make(out, index)


if __name__ == "__main__":
    main()
