#!/usr/bin/env python3
"""GGUF files of `millrace export` beside those of llama.cpp: metadata and tensors against its converter, logits in its
runtime against transformers. Run by hand; needs torch, transformers, llama-cpp-python and its source (convert_hf_to_gguf.py).

    check_gguf.py --millrace build/release/bin/millrace --llama vendor/llama.cpp FOLDER...

A FOLDER is a model folder; one without a tokenizer gets one letter for each row of its embedding.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

# Written by one of the two alone; llama.cpp takes the same for granted.
OURS = {"add_bos_token", "add_eos_token", "unknown_token_id", "vocab_size", "dimension_count", "key_length",
        "value_length", "freq_base", "freq_base_swa", "sliding_window_pattern", "full_attention_interval",
        "recurrent_layers", "attn_factor", "finetuned", "head_count_kv", "scale", "embedding_scale", "residual_scale",
        "logit_scale", "original_context_length", "shared_kv_layers", "embedding_length_per_layer_input",
        "dimension_count_swa", "yarn_beta_fast", "yarn_beta_slow", "context_length"}
THEIRS = {"yarn_attn_factor", "size_label", "finetune", "basename", "dimension_sections"}
SKIPPED = {"general.name"}


def letters():
    codes = list(range(33, 127)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    table = {byte: chr(byte) for byte in codes}
    rest = 256
    for byte in range(256):
        if byte not in table:
            table[byte] = chr(rest)
            rest += 1
    return table


def with_tokenizer(source, folder):
    shutil.copytree(source, folder, dirs_exist_ok=True)
    if (folder / "tokenizer.json").exists() or (folder / "tokenizer.model").exists():
        return
    config = json.loads((folder / "config.json").read_text())
    vocab = config.get("text_config", config)["vocab_size"]
    table = letters()
    words = {table[(i + 32) % 256]: i for i in range(min(vocab, 257) - 1)}
    words['!"'] = len(words)  # the runtime asks for merges
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}, "model": {"type": "BPE", "vocab": words, "merges": ['! "']}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer"}))


def make_new(folder, changes):
    """The model of a changed config, with random weights and norms that are not 0 or 1."""
    import torch
    import transformers
    config = json.loads((folder / "config.json").read_text())
    config.update(changes)
    (folder / "config.json").write_text(json.dumps(config))
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.add_(torch.randn_like(weight) * (0.1 if weight.dim() == 1 else 0.05))
    model.to(torch.float32).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config))


CONVERT = """
import sys
sys.path[:0] = [{llama!r}, {llama!r} + '/gguf-py']
import conversion.base as base
import json
def letters(self):
    words = json.load(open(self.dir_model / 'tokenizer.json'))['model']['vocab']
    named = dict((i, word) for word, i in words.items())
    rows = range(self.hparams['vocab_size'])
    return [named.get(i, '[PAD%d]' % i) for i in rows], [1 if i in named else 5 for i in rows], 'gpt-2'
if {fake!r}:
    base.TextModel.get_vocab_base = letters
    base.TextModel.set_vocab = lambda self: self._set_vocab_gpt2()
import conversion
import convert_hf_to_gguf as converter
from importlib import import_module
arch = {arch!r}
for name in set(conversion.TEXT_MODEL_MAP.values()):
    try:
        module = import_module('conversion.' + name)
    except Exception:
        continue
    for value in list(vars(module).values()):
        if isinstance(value, type) and issubclass(value, base.TextModel) and {fake!r}:
            if 'set_vocab' in vars(value) and value is not base.TextModel:
                value.set_vocab = lambda self: self._set_vocab_gpt2()
sys.argv = ['convert', {folder!r}, '--outtype', {form!r}, '--outfile', {out!r}]
converter.main()
"""


def convert(llama, folder, out, fake, form):
    config = json.loads((folder / "config.json").read_text())
    code = CONVERT.format(llama=str(llama), folder=str(folder), out=str(out), fake=fake, form=form,
                          arch=config.get("architectures", [""])[0])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return None if done.returncode == 0 else " | ".join(done.stderr.strip().splitlines()[-3:])


def read(llama, path):
    sys.path[:0] = [str(llama / "gguf-py")]
    from gguf import GGUFReader
    reader = GGUFReader(path)
    values = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    tensors = {t.name: (list(map(int, t.shape)), t.tensor_type.name, np.asarray(t.data)) for t in reader.tensors}
    return values, tensors


def same(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1e-30)
    return a == b


def compare_files(llama, ours, theirs):
    faults = []
    own, own_tensors = read(llama, ours)
    other, other_tensors = read(llama, theirs)
    for key in sorted(set(own) | set(other)):
        end = key.rsplit(".", 1)[-1]
        if key in SKIPPED:
            continue
        if key not in other:
            if end not in OURS:
                faults.append(f"{key}: ours alone, {own[key]!r:.60}")
        elif key not in own:
            if end not in THEIRS:
                faults.append(f"{key}: theirs alone, {other[key]!r:.60}")
        elif not same(own[key], other[key]) and end not in THEIRS:
            faults.append(f"{key}: {own[key]!r:.60}, theirs {other[key]!r:.60}")
    for name in sorted(set(own_tensors) | set(other_tensors)):
        if name not in own_tensors or name not in other_tensors:
            faults.append(f"{name}: {'ours' if name in own_tensors else 'theirs'} alone")
            continue
        a, b = own_tensors[name], other_tensors[name]
        if a[:2] != b[:2]:
            faults.append(f"{name}: {a[:2]}, theirs {b[:2]}")
        elif not np.array_equal(a[2], b[2]):
            worst = float(np.max(np.abs(a[2].astype(np.float64) - b[2].astype(np.float64))))
            if worst > 1e-6:
                faults.append(f"{name}: values differ by up to {worst:.2g}")
    return faults


def transformers_logits(folder, ids):
    import torch
    import transformers
    config = transformers.AutoConfig.from_pretrained(folder)
    wrapped = hasattr(config, "text_config") and config.text_config is not config
    kind = transformers.AutoModelForImageTextToText if wrapped else transformers.AutoModelForCausalLM
    model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def llama_logits(path, ids):
    from llama_cpp import Llama
    model = Llama(str(path), n_ctx=512, n_batch=512, logits_all=True, verbose=False, type_k=0, type_v=0)
    model.eval(ids)
    return np.array(model.scores[:len(ids)])


def log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--millrace", type=Path, required=True)
    parser.add_argument("--llama", type=Path, required=True)
    parser.add_argument("--forms", default="f32")
    parser.add_argument("--changes", type=json.loads, help="of config.json, as JSON; the weights are then random ones")
    parser.add_argument("--convert", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--run", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("folders", nargs="+", type=Path)
    args = parser.parse_args()
    bad = 0
    for source in args.folders:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made) / source.name
            fake = not any((source / name).exists() for name in ("tokenizer.json", "tokenizer.model"))
            with_tokenizer(source, folder)
            if args.changes:
                make_new(folder, args.changes)
            for form in args.forms.split(","):
                out = Path(made) / f"{source.name}-{form}.gguf"
                done = subprocess.run([args.millrace, "export", folder, "--to", "gguf", "--precision", form, "--out", out,
                                       "--check", "weights"], capture_output=True, text=True)
                if done.returncode != 0:
                    print(f"{source.name} {form}: {done.stderr.strip()[:300]}")
                    bad += 1
                    continue
                line = []
                if args.convert and form in ("f32", "f16", "bf16", "q8_0"):
                    theirs = Path(made) / "theirs.gguf"
                    failed = convert(args.llama, folder, theirs, fake, form)
                    faults = [failed] if failed else compare_files(args.llama, out, theirs)
                    line.append("converter: equal" if not faults else "converter: " + "; ".join(faults[:8]))
                    bad += bool(faults)
                if args.run:
                    config = json.loads((folder / "config.json").read_text())
                    vocab = config.get("text_config", config)["vocab_size"]
                    ids = [int(i) for i in np.random.default_rng(1).integers(3, vocab, 96)]
                    try:
                        theirs = log_softmax(transformers_logits(folder, ids).astype(np.float64))
                        ours = log_softmax(llama_logits(out, ids).astype(np.float64))
                        kl = float((np.exp(theirs) * (theirs - ours)).sum(-1).mean())
                        # The loss of the texts as if they were trained on.
                        loss = [-float(x[np.arange(len(ids) - 1), ids[1:]].mean()) for x in (theirs, ours)]
                        line.append(f"llama.cpp: log-probabilities within {np.abs(theirs - ours).max():.2g}, "
                                    f"mean KL {kl:.2g}, loss off by {abs(loss[1] - loss[0]):.2g}")
                        bad += form == "f32" and kl > 1e-6
                    except Exception as error:  # the runtime's own words
                        line.append(f"llama.cpp: {error}")
                        bad += 1
                print(f"{source.name} {form}: {'; '.join(line)}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
