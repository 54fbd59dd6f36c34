#!/usr/bin/env python3
"""Makes tests/core/run/goldens/answers.json: the tokens that transformers chooses greedily behind two
prompts of every family of the shared test data.

    python make_answer_goldens.py DATA [--out FILE] [NAME...]

transformers' own generate() runs in float32 with its cache, eager attention, and no token ends an
answer. A second pass without a cache, over all tokens at once, must choose the same ones; the script
refuses to write anything else. An answer stops before the first choice whose two best logits are
closer than MARGIN in either pass: float32 must not decide it. `margin`: the smallest one met.
"""

import argparse
import json
import pathlib

import torch
import transformers

NAMES = ("ernie4_5", "exaone4", "gemma4", "gemma4_unified", "glm4", "granite", "granite4_dense",
         "hunyuan_v1_dense", "ministral3", "mistral3", "olmo2", "olmo3", "qwen3_5", "qwen3_5_vl",
         "seed_oss", "smollm3")
PROMPTS = ((0, 3), (1, 30))  # sequence of reference.json, tokens of it
TOKENS = 24
MARGIN = 1e-4


def load(folder):
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    model = getattr(transformers, name).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager")
    return model.eval()


def margins_of(logits):
    best = logits.double().topk(2, dim=-1).values
    return (best[..., 0] - best[..., 1]).tolist()


@torch.no_grad()
def answer(model, prompt):
    """-> tokens, the smallest margin."""
    made = model.generate(
        input_ids=torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        do_sample=False, max_new_tokens=TOKENS, eos_token_id=None, pad_token_id=0, use_cache=True,
        output_logits=True, return_dict_in_generate=True)
    tokens = made.sequences[0, len(prompt):]
    whole = model(input_ids=made.sequences, use_cache=False).logits[0, len(prompt) - 1:-1]
    cached = torch.stack(made.logits)[:, 0]
    margins = [min(pair) for pair in zip(margins_of(cached), margins_of(whole))]
    sure = next((i for i, margin in enumerate(margins) if margin < MARGIN), len(margins))
    if not torch.equal(whole.argmax(-1)[:sure], tokens[:sure]):
        raise SystemExit("with and without a cache the tokens differ")
    return tokens[:sure].tolist(), min(margins[:sure])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).parents[1] / "core/run/goldens/answers.json")
    options = parser.parse_args()
    lines = []
    for name in options.names or NAMES:
        folder = options.data / "families" / name
        model = load(folder)
        ids = json.loads((folder / "reference.json").read_text())["ids"]
        for sequence, count in PROMPTS:
            prompt = ids[sequence][:count]
            tokens, margin = answer(model, prompt)
            print(f"{name}: {count} tokens, {len(tokens)} more, {len(set(tokens))} different, "
                  f"smallest margin {margin:.2g}")
            lines.append(json.dumps({"family": name, "prompt": prompt, "tokens": tokens,
                                     "margin": float(f"{margin:.3g}")}))
    options.out.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
