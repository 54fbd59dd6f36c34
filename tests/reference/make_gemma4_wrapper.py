#!/usr/bin/env python3
"""Makes a tiny random Gemma 4 that sees, as its published files are spelled, for check_families.py.

    python make_gemma4_wrapper.py FOLDER      writes FOLDER/families/gemma4_vl
    python check_families.py FOLDER --millrace PROGRAM gemma4_vl

Inputs of blocks come from a table with more rows than the vocabulary; two blocks read k and v of
earlier ones, and the file has theirs beside them. The tower has tensors without dimensions, and
numbers of its standardisation. config.json has global_head_dim in place of per_layer_config.
"""

import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

FULL, SLIDING = "full_attention", "sliding_attention"
TYPES = [SLIDING, FULL, SLIDING, FULL]
READERS = (2, 3)
WIDE, HEAD = 24, 16
TEXT = dict(vocab_size=96, vocab_size_per_layer_input=104, max_position_embeddings=256,
            hidden_size=64, intermediate_size=40, num_attention_heads=4, num_key_value_heads=2,
            head_dim=HEAD, global_head_dim=WIDE, num_hidden_layers=4, layer_types=TYPES,
            num_kv_shared_layers=len(READERS), use_double_wide_mlp=True, sliding_window=6,
            hidden_size_per_layer_input=16, final_logit_softcapping=5.0, bos_token_id=1,
            eos_token_id=2, pad_token_id=0, tie_word_embeddings=True)
VISION = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
              num_key_value_heads=2, head_dim=8, patch_size=4, position_embedding_size=16,
              pooling_kernel_size=2, standardize=True, use_clipped_linears=True)


def spread(tensors, generator):
    """No norm and no scale is one."""
    for name in sorted(tensors):
        tensor = tensors[name]
        noise = torch.randn(tensor.shape, generator=generator)
        tensor.copy_(0.12 * noise if tensor.ndim > 1 else 1.0 + 0.15 * noise)


def unread(generator):
    """k and v of the layers that read those of others, as published files have them."""
    made = {}
    for layer in READERS:
        dim = WIDE if TYPES[layer] == FULL else HEAD
        prefix = f"model.language_model.layers.{layer}.self_attn."
        for name, shape in (("k_proj", (2 * dim, 64)), ("v_proj", (2 * dim, 64)), ("k_norm", (dim,))):
            made[f"{prefix}{name}.weight"] = torch.randn(shape, generator=generator)
    return made


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    folder = pathlib.Path(sys.argv[1]) / "families" / "gemma4_vl"
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(40)
    model = transformers.Gemma4ForConditionalGeneration(transformers.Gemma4Config(
        text_config=TEXT, vision_config=VISION, audio_config=None, image_token_id=94,
        video_token_id=95, audio_token_id=95, tie_word_embeddings=True))
    generator = torch.Generator().manual_seed(41)
    with torch.no_grad():
        spread(model.state_dict(), generator)
    model.tie_weights()
    model.save_pretrained(folder)
    file = folder / "model.safetensors"
    save_file(load_file(file) | unread(generator), file, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    text = config["text_config"]
    text.pop("per_layer_config", None)
    text["global_head_dim"] = WIDE
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    main()
