#!/usr/bin/env python3
"""Makes tests/core/run/goldens/adapters/NAME_METHOD: loss and gradients that peft computes in
float64 for LoRA and DoRA on all linear modules of models of tests/core/run/goldens.

An adapter is drawn at random: B is not zero, and the magnitudes of DoRA are not the norms of the
rows, so that no gradient is zero or equal to a simpler one. The values are rounded to bf16 before
anything is computed, so the file holds them exactly. Tokens and trained targets are the model's own
golden's. Without the adapter the loss must be that golden's; the script refuses to write otherwise.

    python make_adapter_goldens.py [--out OUT] NAME...

    adapter_config.json, adapter_model.safetensors   as peft writes them, BF16
    golden.safetensors                               "ids", "trained" (B, T + 1); "grad.<tensor>"
                                                     by the names of the adapter's file, F32
    golden.json                                      as make_goldens.py writes it, for the tensors
                                                     of the adapter
"""

import argparse
import json
import pathlib

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file

import make_goldens
from make_goldens import logits_and_loss, relative
from make_packed_goldens import load
from peft_runs import name_in_file, put_adapter, save_adapter

RANK, ALPHA = 3, 6
NAMES = ["biases", "mistral_window", "qwen2", "qwen3", "phi3_partial", "gemma", "gemma2", "gemma3"]
METHODS = ["lora", "dora"]


def draw(base, name, method, folder):
    """Saves an adapter that is far from fresh."""
    lora = LoraConfig(task_type="CAUSAL_LM", r=RANK, lora_alpha=ALPHA, target_modules="all-linear",
                      use_dora=method == "dora")
    model = get_peft_model(base, lora)
    model.peft_config["default"].base_model_name_or_path = name
    generator = torch.Generator().manual_seed(140 + 2 * NAMES.index(name) + METHODS.index(method))
    with torch.no_grad():
        for parameter_name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator).to(p.dtype)
            if ".lora_A." in parameter_name:
                p.copy_(noise / p.shape[1] ** 0.5)
            elif ".lora_B." in parameter_name:
                p.copy_(0.3 * noise)
            elif ".lora_magnitude_vector." in parameter_name:
                p.mul_(1.0 + 0.2 * noise)
    save_adapter(model, folder, torch.bfloat16)


def run(base, folder, ids, trained):
    """-> loss, gradients by name"""
    model = put_adapter(base, folder, True)
    _, loss = logits_and_loss(model, ids, trained)
    assert all(p.dtype == loss.dtype for p in model.parameters())
    loss.backward()
    return loss.item(), {name_in_file(n): p.grad for n, p in model.named_parameters()
                         if p.requires_grad}


def make(out, source, name, method):
    known = load_file(source / name / "golden.safetensors")
    ids, trained = known["ids"].long(), known["trained"].long()
    plain = json.loads((source / name / "golden.json").read_text())["loss"]
    base = load(source / name, torch.float64)
    alone = logits_and_loss(base, ids, trained)[1].item()
    if abs(alone - plain) > 1e-12 * plain:
        raise SystemExit(f"{name}: the loss without an adapter is {alone}, its golden says {plain}")
    folder = out / f"{name}_{method}"
    folder.mkdir(parents=True, exist_ok=True)
    draw(base, name, method, folder)
    loss, grads = run(load(source / name, torch.float64), folder, ids, trained)
    loss32, grads32 = run(load(source / name, torch.float32), folder, ids, trained)

    tensors = {"ids": known["ids"], "trained": known["trained"]}
    tensors |= {"grad." + n: g.float() for n, g in grads.items()}
    save_file(tensors, folder / "golden.safetensors")
    report = {"loss": loss, "torch_float32_loss_error": abs(loss32 - loss),
              "gradients": {n: {"norm": g.norm().item(),
                                "torch_float32_error": relative(grads32[n], g)}
                            for n, g in sorted(grads.items())}}
    (folder / "golden.json").write_text(json.dumps(report, indent=1) + "\n")
    norms = [about["norm"] for about in report["gradients"].values()]
    worst = max(about["torch_float32_error"] for about in report["gradients"].values())
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name} {method}: loss {loss:.6f}, {alone:.6f} without it; {len(norms)} gradients with "
          f"norms {min(norms):.2g} to {max(norms):.2g}, worst error of PyTorch float32 {worst:.1e}, "
          f"{size} bytes")


def main():
    goldens = pathlib.Path(make_goldens.__file__).resolve().parent.parent / "core/run/goldens"
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--out", type=pathlib.Path, default=goldens / "adapters")
    arguments.add_argument("names", nargs="+", choices=NAMES)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    for name in given.names:
        for method in METHODS:
            make(given.out, goldens, name, method)


if __name__ == "__main__":
    main()
