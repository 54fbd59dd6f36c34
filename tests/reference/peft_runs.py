#!/usr/bin/env python3
"""Trains adapters with peft on the CPU in float32, for comparison with Millrace.

    python peft_runs.py DATA [NAME...]
    python peft_runs.py DATA --check ADAPTER [--base FOLDER] --millrace PROGRAM --text FILE
    python peft_runs.py DATA --start ADAPTER
    python peft_runs.py DATA --shakespeare ADAPTER --lr RATE [--steps 300]

DATA is the shared test data. The first form makes tests/core/run/goldens/peft/NAME:

    adapter/      where the run starts: a folder as peft writes it, its tensors in bf16 (exact: the
                  values are rounded before anything is computed)
    golden.json   "model", "data", "eval_data": what the run is made of; "options": its settings, by
                  their names in a Millrace run record; "losses", "grad_norms" by step; "eval_loss"
                  after the last one

--check loads an adapter that Millrace saved: no tensor missing, surplus or other than in the file, and
the cross-entropy of the first blocks of FILE is what `millrace eval --adapter` says. --start makes an
adapter of rank 16 on all linear modules as peft initialises it, and --shakespeare trains it on
tinyshakespeare, 16 x 256 tokens a step, and prints the mean of the last 20 losses.

Batches are Millrace's: blocks of text that share a token with the next, or a prompt and its response
of which the response is trained; drawn by the permutation of core/data/sampler.cpp. The loss is the sum
of the cross-entropies of the trained targets of a step / their number. The rate is that of
core/optim/lr_schedule.h.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F
from bitsandbytes.functional import dequantize_4bit, quantize_4bit
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/core/run/goldens/peft"
LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
TOLERANCE = 1e-4
BOS, EOS = 1, 2

# place, model, file, where the part that is trained on ends and the part that is evaluated ends
STORIES = ("shared", "models/stories260K", "datasets/tinyshakespeare.txt", 8000, 12000)
SAMPLE = ("repository", "resources/sample/model", "resources/sample/train.jsonl", 3326, 6645)

COMMON = {"steps": 20, "micro_batch": 2, "accumulate": 3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8,
          "seed": 7}

RUNS = {
    "all_linears": (STORIES, {"r": 8, "lora_alpha": 16, "target_modules": LINEARS}, 0.02,
                    {"seq_len": 96, "learning_rate": 1e-2, "schedule": "cosine", "warmup_steps": 3,
                     "weight_decay": 0.0, "clip_norm": 1.0}),
    "rslora": (SAMPLE, {"r": 4, "lora_alpha": 8, "target_modules": LINEARS, "use_rslora": True}, 0.02,
               {"seq_len": 64, "learning_rate": 3e-3, "schedule": "constant", "warmup_steps": 0,
                "weight_decay": 0.0, "clip_norm": 0.0}),
    "query_value": (SAMPLE, {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"]}, 0.0,
                    {"seq_len": 64, "learning_rate": 1e-2, "schedule": "cosine", "warmup_steps": 0,
                     "weight_decay": 0.0, "clip_norm": 1.0}),
    "dora": (STORIES, {"r": 8, "lora_alpha": 16, "target_modules": LINEARS, "use_dora": True}, 0.02,
             {"seq_len": 96, "learning_rate": 3e-3, "schedule": "cosine", "warmup_steps": 3,
              "weight_decay": 0.0, "clip_norm": 1.0}),
    # Masks are Millrace's (MaskedDropout); the product of q, k and v has rows without a module.
    "dora_dropout": (STORIES, {"r": 8, "lora_alpha": 16, "use_dora": True, "lora_dropout": 0.2,
                               "target_modules": ["q_proj", "v_proj", "up_proj", "down_proj"]}, 0.02,
                     {"seq_len": 96, "learning_rate": 3e-3, "schedule": "constant", "warmup_steps": 0,
                      "weight_decay": 0.0, "clip_norm": 1.0}),
    "patterns": (STORIES, {"r": 8, "lora_alpha": 16,
                           "target_modules": ["q_proj", "v_proj", "down_proj"],
                           "rank_pattern": {"layers.1.self_attn.q_proj": 4, "down_proj": 3},
                           "alpha_pattern": {"v_proj": 4, "layers.[23].mlp.down_proj": 12}}, 0.02,
                 {"seq_len": 128, "learning_rate": 1e-2, "schedule": "linear", "warmup_steps": 2,
                  "weight_decay": 0.1, "clip_norm": 0.0}),
    # The embedding is the head, too.
    "modules": (STORIES, {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "down_proj"],
                         "modules_to_save": ["embed_tokens", "lm_head"], "ensure_weight_tying": True},
                0.02, {"seq_len": 64, "learning_rate": 3e-3, "schedule": "cosine", "warmup_steps": 2,
                       "weight_decay": 0.1, "clip_norm": 1.0}),
    "tokens": (STORIES, {"r": 4, "lora_alpha": 8, "target_modules": ["v_proj", "up_proj"],
                         "trainable_token_indices": [410, 412, 13, 411, 300]}, 0.02,
               {"seq_len": 96, "learning_rate": 1e-2, "schedule": "constant", "warmup_steps": 0,
                "weight_decay": 0.0, "clip_norm": 1.0}),
    # Beside what NF4 codes of the sample's bf16 weights stand for.
    "qlora": (SAMPLE, {"r": 8, "lora_alpha": 16, "target_modules": LINEARS}, 0.02,
              {"seq_len": 64, "learning_rate": 1e-2, "schedule": "cosine", "warmup_steps": 2,
               "weight_decay": 0.0, "clip_norm": 1.0, "method": "qlora"}),
}


# --- batches -------------------------------------------------------------------------------------

def philox_words(key, low, high):
    """The four words of a block of Philox 4x32-10, as core/base/philox.h; `low` may be an array."""
    mask = 0xFFFFFFFF
    c = [low & mask, low >> 32, high & mask, high >> 32]
    k0, k1 = key & mask, key >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k0, p1 & mask, p0 >> 32 ^ c[3] ^ k1, p0 & mask]
        k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
    return c


def philox(key, low, high):
    """The first two words of a block as one number."""
    words = philox_words(key, low, high)
    return words[0] << 32 | words[1]


def permutation(seed, epoch, count):
    """Fisher-Yates with Philox words, as core/data/sampler.cpp."""
    order = list(range(count))
    for i in range(count - 1, 0, -1):
        j = philox(seed, i, epoch) * (i + 1) >> 64
        order[i], order[j] = order[j], order[i]
    return order


def rows_drawn(seed, count):
    epoch = 0
    while True:
        yield from permutation(seed, epoch, count)
        epoch += 1


def text_sequences(text, tokenizer, seq_len):
    """[(ids, place of the first token that is trained)]"""
    ids = [BOS] + tokenizer.encode(text) + [EOS]
    blocks = [ids[i:i + seq_len + 1] for i in range(0, len(ids), seq_len)]
    return [(block, 1) for block in blocks if len(block) > 1]


def pair_sequences(text, tokenizer, seq_len):
    found = []
    for line in text.splitlines():
        row = json.loads(line)
        prompt = [BOS] + tokenizer.encode(row["question"] + "\n")
        ids = prompt + tokenizer.encode(row["answer"]) + [EOS]
        found.append((ids[:seq_len + 1], len(prompt)))
    return found


def sequences_of(text, name, tokenizer, seq_len):
    make = pair_sequences if name.endswith(".jsonl") else text_sequences
    return make(text, tokenizer, seq_len)


def micro_batch(sequences):
    """-> inputs, targets; -100 where nothing is trained"""
    longest = max(len(ids) for ids, _ in sequences)
    inputs = torch.zeros(len(sequences), longest - 1, dtype=torch.long)
    targets = torch.full_like(inputs, -100)
    for row, (ids, first) in enumerate(sequences):
        inputs[row, :len(ids) - 1] = torch.tensor(ids[:-1])
        targets[row, first - 1:len(ids) - 1] = torch.tensor(ids[first:])
    return inputs, targets


def loss_sum(model, inputs, targets):
    logits = model(input_ids=inputs, use_cache=False).logits
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")


# --- training ------------------------------------------------------------------------------------

class MaskedDropout(torch.nn.Module):
    """The dropout of an adapter's input with the masks of core/model/block_adapter.h: one for each seed,
    block, product, step and micro-batch, so q, k and v share one, and gate and up."""

    step = micro = 0  # of the pass
    PRODUCTS = {"q_proj": 0, "k_proj": 0, "v_proj": 0, "o_proj": 1, "gate_proj": 2, "up_proj": 2,
                "down_proj": 3}

    def __init__(self, name, options, probability):
        super().__init__()
        parts = name.split(".")
        block = int(parts[parts.index("layers") + 1])
        low, high = philox_words(options["seed"], block + 1, self.PRODUCTS[parts[-1]])[:2]
        self.key = high << 32 | low
        self.seq_len = options["seq_len"]
        self.probability = probability

    def forward(self, x):
        if not self.training:
            return x
        rows, length, columns = x.shape
        count = rows * self.seq_len * columns
        blocks = np.arange((count + 3) // 4, dtype=np.uint64)
        words = philox_words(self.key, blocks, self.step << 32 | self.micro)
        words = np.stack([np.broadcast_to(w, blocks.shape) for w in words], 1).flatten()[:count]
        kept = torch.from_numpy(words >= int(self.probability * 2 ** 32))
        kept = kept.reshape(rows, self.seq_len, columns)[:, :length]
        return x * kept * np.float32(1.0 / (1.0 - self.probability))


def use_our_masks(model, options):
    for name, module in model.named_modules():
        dropout = getattr(module, "lora_dropout", None)
        if dropout is not None and isinstance(dropout["default"], torch.nn.Dropout):
            dropout["default"] = MaskedDropout(name, options, dropout["default"].p)


def rate(options, step):
    peak, warmup = options["learning_rate"], options["warmup_steps"]
    if step < warmup:
        return peak * step / warmup
    progress = (step - warmup) / max(1, options["steps"] - warmup)
    return peak * {"constant": 1.0, "linear": 1.0 - progress,
                   "cosine": 0.5 * (1.0 + math.cos(math.pi * progress))}[options["schedule"]]


def train(model, sequences, options):
    """-> losses, norms of the gradients, by step"""
    trained = [p for p in model.parameters() if p.requires_grad]
    assert all(p.dtype == torch.float32 for p in model.parameters())
    optimizer = torch.optim.AdamW(trained, lr=0.0, betas=(options["beta1"], options["beta2"]),
                                  eps=options["eps"], weight_decay=options["weight_decay"])
    rows = rows_drawn(options["seed"], len(sequences))
    losses, norms = [], []
    model.train()
    for step in range(options["steps"]):
        micros = [micro_batch([sequences[next(rows)] for _ in range(options["micro_batch"])])
                  for _ in range(options["accumulate"])]
        count = sum((targets != -100).sum().item() for _, targets in micros)
        total = 0.0
        MaskedDropout.step = step + 1
        for MaskedDropout.micro, (inputs, targets) in enumerate(micros):
            loss = loss_sum(model, inputs, targets) / count
            loss.backward()
            total += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(trained, options["clip_norm"] or math.inf)
        optimizer.param_groups[0]["lr"] = rate(options, step)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total)
        norms.append(norm.item())
    return losses, norms


@torch.no_grad()
def evaluate(model, sequences):
    model.eval()
    total = count = 0
    for sequence in sequences:
        inputs, targets = micro_batch([sequence])
        total += loss_sum(model, inputs, targets).item()
        count += (targets != -100).sum().item()
    return total / count


# --- models --------------------------------------------------------------------------------------

def held_in_nf4(weight):
    """What bitsandbytes' NF4 codes of a bf16 matrix stand for. Its kernel for CPUs takes the second nearest
    code for about one magnitude in 4,000; the nearest is taken here."""
    codes, state = quantize_4bit(weight, blocksize=64, compress_statistics=True, quant_type="nf4")
    blocks = weight.float().flatten().split(64)
    sizes = torch.stack([block.abs().max() for block in blocks]) - state.offset
    nested = state.state2.absmax.repeat_interleave(256)[:len(sizes)]
    distances = (sizes * (1.0 / nested))[:, None] - state.state2.code[None, :]
    state.absmax = distances.abs().argmin(1).to(torch.uint8)
    return dequantize_4bit(codes, state).float()


def load_base(folder, nf4=False):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if nf4:
        for module in model.model.layers.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.data = held_in_nf4(module.weight.data.bfloat16())
    return model


def load_tokenizer(folder):
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))


def save_adapter(model, folder, dtype):
    model.save_pretrained(folder, save_embedding_layers=False)
    (folder / "README.md").unlink(missing_ok=True)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["target_modules"].sort()
    if config["modules_to_save"]:
        config["modules_to_save"].sort()
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
    file = folder / "adapter_model.safetensors"
    save_file({n: t.to(dtype) for n, t in load_file(file).items()}, file, metadata={"format": "pt"})


def start_adapter(base, name, lora, deviation, dtype, folder):
    """Saves an adapter with the A that peft makes and a normal B of that deviation."""
    torch.manual_seed(1)
    model = get_peft_model(load_base(base), LoraConfig(task_type="CAUSAL_LM", **lora))
    model.peft_config["default"].base_model_name_or_path = name
    with torch.no_grad():
        for parameter_name, p in model.named_parameters():
            if ".lora_B." in parameter_name:
                p.normal_(0.0, deviation)
    save_adapter(model, folder, dtype)


def load_adapter(base, folder, trainable, nf4=False):
    return put_adapter(load_base(base, nf4), folder, trainable)


def name_in_file(parameter_name):
    for part in (".modules_to_save", ".default"):
        parameter_name = parameter_name.replace(part, "")
    return parameter_name.replace("magnitude_vector.weight", "magnitude_vector")


def is_adapters(parameter_name):
    """The head of a tied model shares the trained rows of the embedding; files name them once."""
    return ".lora_" in parameter_name or ".modules_to_save." in parameter_name or (
        ".token_adapter.trainable" in parameter_name and ".lm_head." not in parameter_name)


def put_adapter(base, folder, trainable):
    """Strictly: every tensor of the file is in the model, and no other."""
    model = PeftModel.from_pretrained(base, folder, is_trainable=trainable)
    in_file = load_file(folder / "adapter_model.safetensors")
    loaded = {name_in_file(n): p for n, p in model.named_parameters(remove_duplicate=False)
              if is_adapters(n)}
    if loaded.keys() != in_file.keys():
        sys.exit(f"{folder}: {sorted(loaded.keys() ^ in_file.keys())}")
    for name, tensor in in_file.items():
        if not torch.equal(loaded[name].detach(), tensor.to(loaded[name].dtype)):
            sys.exit(f"{folder}: {name} is not what the file holds")
    return model


# --- what the script does ------------------------------------------------------------------------

def make_golden(data, name):
    (place, model_name, file, end, eval_end), lora, deviation, own = RUNS[name]
    options = {**COMMON, **own}
    root = data if place == "shared" else ROOT
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    start_adapter(root / model_name, model_name, lora, deviation, torch.bfloat16, folder / "adapter")
    model = load_adapter(root / model_name, folder / "adapter", True, options.get("method") == "qlora")
    tokenizer = load_tokenizer(root / model_name)
    text = (root / file).read_bytes()
    parts = [text[:end].decode(), text[end:eval_end].decode()]
    sequences, held_out = (sequences_of(t, file, tokenizer, options["seq_len"]) for t in parts)
    use_our_masks(model, options)
    losses, norms = train(model, sequences, options)
    golden = {"place": place, "model": model_name, "file": file, "data": [0, end],
              "eval_data": [end, eval_end],
              "options": {k: str(v) for k, v in options.items()},
              "losses": losses, "grad_norms": norms, "eval_loss": evaluate(model, held_out)}
    (folder / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    print(f"{name}: {len(sequences)} sequences, losses {losses[0]:.4f} to {losses[-1]:.4f}, gradient "
          f"norms {min(norms):.3f} to {max(norms):.3f}, evaluated {golden['eval_loss']:.4f}")


def check(base, adapter, program, file):
    model = load_adapter(base, adapter, False)
    tokenizer = load_tokenizer(base)
    size = min(128, model.config.max_position_embeddings)
    worst = 0.0
    for count in (1, 8):
        ids = tokenizer.encode(file.read_bytes().decode())[:count * size]
        ours = evaluate(model, [(ids[i:i + size], 1) for i in range(0, len(ids), size)])
        command = [program, "eval", "--model", str(base), "--adapter", str(adapter), "--data", str(file),
                   "--format", "text", "--blocks", str(count), "--seq-len", str(size),
                   "--precision", "fp32", "--json"]
        said = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["loss"]
        print(f"{count} x {size} tokens: peft {ours:.6f}, Millrace {said:.6f}")
        worst = max(worst, abs(ours - said))
    print(f"largest difference: {worst:.3g}")
    sys.exit(0 if worst <= TOLERANCE else 1)


def shakespeare(data, adapter, peak, steps):
    base = data / "models/stories260K"
    model = load_adapter(base, adapter, True)
    tokenizer = load_tokenizer(base)
    text = (data / "datasets/tinyshakespeare.txt").read_bytes().decode()
    options = {**COMMON, "steps": steps, "micro_batch": 16, "accumulate": 1, "seed": 1,
               "learning_rate": peak, "schedule": "cosine", "warmup_steps": 10, "weight_decay": 0.0,
               "clip_norm": 1.0}
    judged = tokenizer.encode(text[:60000])
    blocks = [(judged[i:i + 512], 1) for i in range(0, 16 * 512, 512)]
    print(f"evaluated before: {evaluate(model, blocks):.6f}")
    losses, _ = train(model, text_sequences(text, tokenizer, 256), options)
    print(f"first loss {losses[0]:.6f}, mean of the last 20 {sum(losses[-20:]) / 20:.6f}")
    print(f"evaluated after: {evaluate(model, blocks):.6f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", type=pathlib.Path)
    parser.add_argument("--base", type=pathlib.Path)
    parser.add_argument("--millrace")
    parser.add_argument("--text", type=pathlib.Path)
    parser.add_argument("--start", type=pathlib.Path)
    parser.add_argument("--shakespeare", type=pathlib.Path)
    parser.add_argument("--lr", type=float, default=2e-2)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    base = options.base or options.data / "models/stories260K"
    if options.check:
        check(base, options.check, options.millrace, options.text)
    elif options.start:
        start_adapter(base, base.name, {"r": 16, "lora_alpha": 16, "target_modules": LINEARS}, 0.0,
                      torch.float32, options.start)
    elif options.shakespeare:
        shakespeare(options.data, options.shakespeare, options.lr, options.steps)
    else:
        for name in options.names or RUNS:
            make_golden(options.data, name)


if __name__ == "__main__":
    main()
