#!/usr/bin/env python3
"""Trains tiny models of the shared families with Millrace and compares what it saves with transformers.

    python check_families.py DATA --millrace PROGRAM [--adapters] [--with OPTIONS] [NAME...]
    python check_families.py DATA --make FOLDER [NAME...]

Each model gets a tokenizer of one letter an id and two steps of training: in fp32, in bf16, and a
bf16 model in fp32. The bf16 models have some tensors in F32, as published files of Qwen 3.5 do. Of
what is saved

- names, shapes, types and order are those of the file that was read, as safetensors writes it; a run
  in fp32 saves F32; carried tensors are the same bytes,
- transformers loads all of it and nothing else,
- the loss of a text is that of `millrace eval` in fp32, to 1e-5.

With --adapters the two steps train LoRA on every linear module of the text, or as more options of
train say ("--train-layers 1"). PEFT loads the adapter with no key missing or left over; the logits of
its merged model are those of the one that `millrace export --to merged` writes, to 1e-5 of the
largest, and those of the adapter beside its model to 1e-4, which sums in another order.

With --make FOLDER/NAME becomes the bf16 model, and FOLDER/train.txt a text, for tests/bench/soak.sh.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
import transformers
from peft import PeftModel
from safetensors.torch import load_file, save_file

NAMES = ("ernie4_5", "exaone4", "gemma4", "gemma4_unified", "glm4", "granite", "granite4_dense",
         "hunyuan_v1_dense", "ministral3", "mistral3", "olmo2", "olmo3", "qwen3_5", "qwen3_5_vl",
         "seed_oss", "smollm3")
TOLERANCE = 1e-5
APART = 1e-4  # W x + B A x beside (W + B A) x, in float32
SPECIALS = ("<pad>", "<s>", "</s>")
KEPT_WIDE = ("A_log", "linear_attn.norm.weight", "multi_modal_projector.norm.weight",
             "visual.merger.norm.weight", "layer_scalar", "vision_tower.std_scale")
RUNS = (("fp32", "fp32"), ("bf16", "bf16"), ("bf16", "fp32"))  # types of the model, of the run
SIZE = 32  # tokens of a sequence


# --- what is trained -----------------------------------------------------------------------------

def write_tokenizer(folder, rows):
    letters = {"Ġ" if i == 32 else chr(i): i - 32 + len(SPECIALS)
               for i in range(32, 32 + rows - len(SPECIALS))}
    added = [{"id": i, "content": text, "special": True, "normalized": False, "single_word": False,
              "lstrip": False, "rstrip": False} for i, text in enumerate(SPECIALS)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    made = {"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": level,
            "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "vocab": letters, "merges": []}}
    (folder / "tokenizer.json").write_text(json.dumps(made))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": False, "add_eos_token": False}))


def ids_of(text):
    return torch.tensor([ord(letter) - 32 + len(SPECIALS) for letter in text])


def text_of(seed, count):
    draw = random.Random(seed)
    return "".join(draw.choice("abcdefgh ,ABC.xyz012") for _ in range(count))


def write_model(source, folder, kind):
    """The model as it is, or in bf16 with some tensors in F32; the type is named at both levels."""
    folder.mkdir(parents=True)
    config = json.loads((source / "config.json").read_text())
    tensors = load_file(source / "model.safetensors")
    if kind == "bf16":
        tensors = {n: t if n.endswith(KEPT_WIDE) else t.bfloat16() for n, t in tensors.items()}
        config["dtype"] = "bfloat16"
    if "text_config" in config:
        config["text_config"]["dtype"] = config["dtype"]
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_tokenizer(folder, config.get("text_config", config)["vocab_size"])


def program(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
    return done.stdout


def train(millrace, model, work, precision, *more):
    run = work / "run"
    program(millrace, "train", "--model", model, "--data", work / "train.txt", "--out", run, "--db",
            work / "h.db", "--steps", 2, "--seq-len", SIZE, "--micro-batch", 2, "--lr", "1e-2",
            "--precision", precision, "--threads", 1, "--policy", "resident", *more)
    return run


# --- what is compared ----------------------------------------------------------------------------

def header(file):
    bytes_ = file.read_bytes()
    length = int.from_bytes(bytes_[:8], "little")
    entries = json.loads(bytes_[8:8 + length])
    entries.pop("__metadata__", None)
    at = lambda item: item[1]["data_offsets"][0]
    data = bytes_[8 + length:]
    return {name: (e["dtype"], tuple(e["shape"]), data[slice(*e["data_offsets"])])
            for name, e in sorted(entries.items(), key=at)}


def wanted(model, carried, precision):
    """The header of the model's file, or of one in F32 but for what is carried."""
    tensors = load_file(model / "model.safetensors")
    if precision == "fp32":
        tensors = {n: t if n in carried else t.float() for n, t in tensors.items()}
    file = model.parent / "wanted.safetensors"
    save_file(tensors, file)
    return header(file)


def compare_files(model, saved, carried, precision):
    read, saved = wanted(model, carried, precision), header(saved / "model.safetensors")
    problems = [f"{n} is {saved[n][:2]}, it was {e[:2]}" for n, e in read.items()
                if n in saved and saved[n][:2] != e[:2]]
    problems += [f"{n} has other bytes" for n in carried if saved[n] != read[n]]
    if read.keys() != saved.keys():
        problems.append(f"names: {sorted(read.keys() ^ saved.keys())}")
    elif list(read) != list(saved):
        problems.append(f"order: {list(saved)[:4]}, not {list(read)[:4]}")
    changed = sum(saved[n][2] != e[2] for n, e in read.items() if n in saved)
    if changed < len(read) - len(carried) - 2:
        problems.append(f"only {changed} of {len(read)} tensors were trained")
    return problems


def load(folder):
    """Strictly, in float32."""
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    model, info = getattr(transformers, name).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    wrong = {k: sorted(v) for k, v in info.items() if v}
    if wrong:
        raise SystemExit(f"{folder}: {wrong}")
    return model.eval()


@torch.no_grad()
def logits_of(model, text):
    return model(input_ids=ids_of(text).view(-1, SIZE), use_cache=False).logits


def loss_of(model, text):
    blocks = ids_of(text).view(-1, SIZE)
    logits = logits_of(model, text)
    return F.cross_entropy(logits[:, :-1].double().flatten(0, 1), blocks[:, 1:].flatten()).item()


def program_loss(millrace, folder, work, *more):
    said = program(millrace, "eval", "--model", folder, "--data", work / "eval.txt", "--blocks", 4,
                   "--seq-len", SIZE, "--precision", "fp32", "--threads", 1, "--json", *more)
    return json.loads(said)["loss"]


def carried_of(model):
    """Tensors that no step changes: towers, numbers of layers, k and v of layers that read others'."""
    config = json.loads((model / "config.json").read_text())
    text = config.get("text_config", config)
    layers, readers = text["num_hidden_layers"], text.get("num_kv_shared_layers", 0)
    unread = tuple(f"layers.{layer}.self_attn.{module}_" for layer in range(layers - readers, layers)
                   for module in "kv")
    marks = ("vis", "multi_modal", ".layer_scalar", *unread)
    return [n for n in load_file(model / "model.safetensors") if any(mark in n for mark in marks)]


def check_export(millrace, model, work, precision, more):
    run = train(millrace, model, work, precision, *more)
    carried = carried_of(model)
    problems = compare_files(model, run / "model", carried, precision)
    loss = loss_of(load(run / "model"), (work / "eval.txt").read_text())
    difference = abs(loss - program_loss(millrace, run / "model", work))
    if not difference <= TOLERANCE:
        problems.append(f"loss differs by {difference:.3g}")
    return problems, f"loss {loss:.6f}, off by {difference:.1e}"


def name_in_file(parameter):
    for part in (".modules_to_save", ".default"):
        parameter = parameter.replace(part, "")
    return parameter.replace("magnitude_vector.weight", "magnitude_vector")


def is_adapters(parameter):
    """The head of a tied model shares the trained rows of the embedding; files name them once."""
    rows = ".token_adapter.trainable" in parameter and ".lm_head." not in parameter
    return ".lora_" in parameter or ".modules_to_save." in parameter or rows


def load_adapter(model, folder):
    """-> the model with it, keys that are missing or left over."""
    adapted = PeftModel.from_pretrained(load(model), folder).eval()
    inside = {name_in_file(n) for n, _ in adapted.named_parameters(remove_duplicate=False)
              if is_adapters(n)}
    return adapted, sorted(inside ^ load_file(folder / "adapter_model.safetensors").keys())


def check_adapter(millrace, model, work, precision, more):
    run = train(millrace, model, work, precision, "--method", "lora", "--rank", 2, *more)
    text = (work / "eval.txt").read_text()
    adapted, keys = load_adapter(model, run / "adapter")
    problems = [f"keys: {keys[:4]}"] if keys else []
    modules = {n.split(".lora_")[0].rsplit(".", 1)[-1] for n, _ in adapted.named_parameters()
               if ".lora_" in n}
    apart = logits_of(adapted, text)
    program(millrace, "export", run, "--to", "merged", "--precision", "fp32", "--out", work / "merged")
    whole = logits_of(load(work / "merged"), text)
    merged = logits_of(adapted.merge_and_unload(), text)
    plain = logits_of(load(model), text)
    size = whole.abs().max()
    errors = [((other - whole).abs().max() / size).item() for other in (apart, merged)]
    if not (errors[0] <= APART and errors[1] <= TOLERANCE):
        problems.append(f"logits differ by {errors}")
    loss = abs(loss_of(adapted, text) - program_loss(millrace, model, work, "--adapter", run / "adapter"))
    if not loss <= TOLERANCE:
        problems.append(f"loss differs by {loss:.3g}")
    return problems, (f"{len(modules)} kinds of modules, apart {errors[0]:.1e}, merged {errors[1]:.1e}, "
                      f"loss {loss:.1e}, changed by {((plain - whole).abs().max() / size).item():.1e}")


def make(options):
    for name in options.names or NAMES:
        write_model(options.data / "families" / name, options.make / name, "bf16")
    (options.make / "train.txt").write_text(text_of(3, 20000))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--millrace")
    parser.add_argument("--adapters", action="store_true")
    parser.add_argument("--with", dest="more", default="", metavar="OPTIONS")
    parser.add_argument("--make", type=pathlib.Path)
    options = parser.parse_intermixed_args()
    if options.make:
        make(options)
        return
    failed = False
    for name in options.names or NAMES:
        for kind, precision in RUNS:
            with tempfile.TemporaryDirectory() as folder:
                work = pathlib.Path(folder)
                (work / "train.txt").write_text(text_of(1, 400))
                (work / "eval.txt").write_text(text_of(2, 4 * SIZE))
                write_model(options.data / "families" / name, work / "model", kind)
                check = check_adapter if options.adapters else check_export
                problems, figures = check(
                    options.millrace, work / "model", work, precision, options.more.split())
            print(f"{name}, {kind} in {precision}: {figures}", flush=True)
            for problem in problems:
                print(f"    {problem}")
            failed = failed or bool(problems)
    sys.exit(failed)


if __name__ == "__main__":
    main()
