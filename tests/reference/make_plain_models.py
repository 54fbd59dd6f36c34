#!/usr/bin/env python3
"""Tiny models with the weights that transformers begins with, for check_gguf.py.

    make_plain_models.py OUT FOLDER...

Each FOLDER has a config.json; OUT/NAME gets it and a model.safetensors. What GGUF cannot hold is
changed: windows of Qwen 2 and EXAONE 4, scales of scores other than by the head's size, heads of
two sizes in Qwen 3.5. The goldens of tests/core/run have steep logits, which rounding moves more.
"""
import json
import pathlib
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM


def plain(config):
    inner = config.get("text_config", config)
    kind = inner["model_type"]
    if "query_pre_attn_scalar" in inner:
        inner["query_pre_attn_scalar"] = inner["head_dim"]
    if kind == "qwen2":
        inner["use_sliding_window"] = False
        inner.pop("layer_types", None)
    if kind == "exaone4":
        inner["sliding_window"] = inner["sliding_window_pattern"] = None
        inner["layer_types"] = ["full_attention"] * inner["num_hidden_layers"]
    if kind.startswith("qwen3_5"):
        inner["linear_value_head_dim"] = inner["linear_key_head_dim"]
    return config


def main():
    out = pathlib.Path(sys.argv[1])
    for folder in map(pathlib.Path, sys.argv[2:]):
        torch.manual_seed(0)
        made = out / folder.name
        made.mkdir(parents=True, exist_ok=True)
        text = json.dumps(plain(json.loads((folder / "config.json").read_text())))
        (made / "config.json").write_text(text)
        config = AutoConfig.from_pretrained(made)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        model.save_pretrained(made)
        (made / "config.json").write_text(text)
        (made / "generation_config.json").unlink(missing_ok=True)
        print(made)


main()
