#!/usr/bin/env python3
"""Loads a model folder saved by Millrace with transformers and compares logits.

    python check_saved_model.py SAVED [--source FOLDER] [--millrace PROGRAM --text FILE]

SAVED loads strictly: no tensor missing, surplus or newly initialised, and the tensors are the ones
of the file to the bit. With --source (a folder that should hold the same weights, such as the one
SAVED comes from by one step of learning rate 1e-30), the logits must agree to 1e-5. With --millrace,
the program's own evaluation of SAVED over the first blocks of FILE must agree with transformers'.
Exit code 0 if so, 1 if not.
"""

import argparse
import json
import subprocess
import sys

import sentencepiece
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

TOLERANCE = 1e-5


def load(folder):
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True)
    wrong = {k: v for k, v in info.items() if v}
    if wrong:
        sys.exit(f"{folder}: {wrong}")
    return model.eval()


def check_tensors(model, folder):
    in_file = load_file(folder + "/model.safetensors")
    loaded = model.state_dict()
    for name, tensor in in_file.items():
        if not torch.equal(loaded[name], tensor.float()):
            sys.exit(f"{folder}: {name} is not what the file holds")
    print(f"{folder}: {len(in_file)} tensors, "
          f"{sum(t.numel() for t in in_file.values())} parameters")


@torch.no_grad()
def logits(model):
    generator = torch.Generator().manual_seed(1)
    length = min(64, model.config.max_position_embeddings)
    ids = torch.randint(0, model.config.vocab_size, (2, length), generator=generator)
    return model(input_ids=ids).logits


@torch.no_grad()
def block_loss(model, folder, text, count, size):
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=folder + "/tokenizer.model")
    with open(text, encoding="utf-8", newline="") as file:
        ids = torch.tensor(tokenizer.encode(file.read()))
    blocks = ids[:count * size].view(count, size)
    each = [F.cross_entropy(model(input_ids=b[None, :-1]).logits[0].double(), b[1:]) for b in blocks]
    return torch.stack(each).mean().item()


def program_loss(program, folder, text, count, size):
    command = [program, "eval", "--model", folder, "--data", text, "--blocks", str(count),
               "--seq-len", str(size), "--precision", "fp32", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["loss"]


def check(what, difference):
    print(f"{what}: {difference:.3g}")
    if not difference <= TOLERANCE:
        sys.exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("saved")
    parser.add_argument("--source")
    parser.add_argument("--millrace")
    parser.add_argument("--text")
    options = parser.parse_args()
    saved = load(options.saved)
    check_tensors(saved, options.saved)
    if options.source:
        difference = (logits(saved) - logits(load(options.source))).abs().max().item()
        check("largest difference of logits", difference)
    if options.millrace:
        size = min(128, saved.config.max_position_embeddings)
        arguments = (options.saved, options.text, 4, size)
        difference = abs(block_loss(saved, *arguments) - program_loss(options.millrace, *arguments))
        check("difference of the evaluated cross-entropy", difference)


if __name__ == "__main__":
    main()
