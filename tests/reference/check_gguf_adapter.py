#!/usr/bin/env python3
"""Adapters that `millrace export` writes, in the programs they are for: `gguf-adapter` beside the model's GGUF file in
llama.cpp's runtime, `peft` in PEFT, the merged folder in transformers. Run by hand; needs what check_gguf.py needs, and peft.

    check_gguf_adapter.py --millrace build/release/bin/millrace FOLDER...

Each model gets a random adapter on all its linear modules, rank-stabilised, with modules of other ranks and alphas.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from check_gguf import log_softmax, make_new, transformers_logits, with_tokenizer


def load(folder):
    import torch
    import transformers
    config = transformers.AutoConfig.from_pretrained(folder)
    wrapped = hasattr(config, "text_config") and config.text_config is not config
    kind = transformers.AutoModelForImageTextToText if wrapped else transformers.AutoModelForCausalLM
    return kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def make_adapter(folder, out):
    import peft
    import torch
    model = load(folder)
    names = sorted({name.rsplit(".", 1)[-1] for name, module in model.named_modules()
                    if isinstance(module, torch.nn.Linear) and ".layers." in name and "vision" not in name
                    and "per_layer" not in name})
    config = peft.LoraConfig(r=4, lora_alpha=8, use_rslora=True, target_modules=names, task_type="CAUSAL_LM",
                             exclude_modules=r".*(vision|per_layer).*",
                             rank_pattern={names[0]: 2}, alpha_pattern={names[-1]: 3})
    model = peft.get_peft_model(model, config)
    torch.manual_seed(2)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_" in name:
                weight.copy_(torch.randn_like(weight) * 0.1)
    model.save_pretrained(out)


def peft_logits(folder, adapter, ids):
    import peft
    import torch
    model = peft.PeftModel.from_pretrained(load(folder), adapter).eval()
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def llama_logits(path, adapter, ids):
    from llama_cpp import Llama
    model = Llama(str(path), n_ctx=512, n_batch=512, logits_all=True, verbose=False, type_k=0, type_v=0,
                  lora_path=str(adapter) if adapter else None)
    model.eval(ids)
    return np.array(model.scores[:len(ids)])


def apart(a, b):
    return float(np.abs(log_softmax(a.astype(np.float64)) - log_softmax(b.astype(np.float64))).max())


def check(millrace, source, made, changes):
    folder = made / source.name
    with_tokenizer(source, folder)
    if changes:
        make_new(folder, changes)
    make_adapter(folder, made / "adapter")

    def export(form, out, *more, adapter=True):
        beside = ["--adapter", made / "adapter"] if adapter else []
        done = subprocess.run([millrace, "export", folder, *beside, "--to", form, "--out", made / out, *more],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{form}: {done.stderr.strip()[:300]}")
        return made / out

    config = json.loads((folder / "config.json").read_text())
    vocab = config.get("text_config", config)["vocab_size"]
    ids = [int(i) for i in np.random.default_rng(1).integers(3, vocab, 64)]
    want = peft_logits(folder, made / "adapter", ids)
    line = [f"moves the model by {apart(want, transformers_logits(folder, ids)):.2g}"]
    line.append(f"peft {apart(want, peft_logits(folder, export('peft', 'peft'), ids)):.2g}")
    line.append(f"merged {apart(want, transformers_logits(export('safetensors', 'merged', '--precision', 'fp32'), ids)):.2g}")
    asked = ("--precision", "f32", "--check", "weights")
    base = export("gguf", "base.gguf", *asked, adapter=False)
    beside = apart(want, llama_logits(base, export("gguf-adapter", "adapter.gguf"), ids))
    whole = apart(want, llama_logits(export("gguf", "whole.gguf", *asked), None, ids))
    line.append(f"llama.cpp merged {whole:.2g}, beside {beside:.2g}")
    print(f"{source.name}: {', '.join(line)}", flush=True)
    return beside > max(1e-3, 2 * whole)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--millrace", type=Path, required=True)
    parser.add_argument("--changes", type=json.loads, help="of config.json, as JSON; the weights are then random ones")
    parser.add_argument("folders", nargs="+", type=Path)
    args = parser.parse_args()
    bad = 0
    for source in args.folders:
        with tempfile.TemporaryDirectory() as made:
            try:
                bad += check(args.millrace, source, Path(made), args.changes)
            except Exception as error:  # the program's own words
                print(f"{source.name}: {error}", flush=True)
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
