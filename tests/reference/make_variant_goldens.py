#!/usr/bin/env python3
"""Makes tests/core/run/goldens/variants: for each mechanism of variant_models.py one JSON file of tiny
models, with loss and gradients of a row of documents in float64.

    python make_variant_goldens.py [--out OUT] [--check] [NAME...]

Every model is written as a folder (weights by the formula of variant_weights.py) and read back by
transformers, so that it reads the config and the names that the test reads. Each document runs alone.

A model whose gradients PyTorch's own float32 misses by more than 2.5e-6 of a norm gets other weights, and in the end a
larger epsilon of its norms, so that the test can ask for 1e-5.

Float64: norms, softmax, decay and scans, which transformers computes in float32 whatever the model's
type, run in float64 here. Rotary tables stay as published: angles, cos and sin in float32.

A file: "base" (fields of config.json that all have), "sums" (of each gradient), "models": "config" (the
other fields), "seed", "lengths" of the documents, "prefix" (the spelling of names, where it is not that
of a text model), "tied" (the file of a model that sees has no head), "carried" (names of other tensors
of the file), "unread" (layers whose own k and v the file has, though they read another one's),
"missing_scalars" (layers whose scalar it does not have), "loss", "tensors" (variant_weights.listed) and
"gradients": norm and signed sums of each tensor in the order of names (variant_weights.described).
"""

import argparse
import json
import logging
import math
import pathlib
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from safetensors.numpy import save_file
from torch.overrides import TorchFunctionMode

import variant_models
from variant_weights import described, listed, made_ids, made_tensor

PLAIN = ("model.", "")
WORST_FLOAT32 = 2.5e-6


class NoFloat32(TorchFunctionMode):
    """Computes in float64 where float32 is asked for, unless `resting`."""

    resting = False

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.resting:
            if function is torch.Tensor.float:
                function = torch.Tensor.double
            args = [torch.float64 if a is torch.float32 else a for a in args]
            kwargs = {k: torch.float64 if a is torch.float32 else a for k, a in kwargs.items()}
        return function(*args, **kwargs)


def keep_rotary_tables(model, mode):
    """Angles as published, in float32."""
    def rested(inner):
        def forward(*args, **kwargs):
            mode.resting = True
            try:
                return inner(*args, **kwargs)
            finally:
                mode.resting = False
        return forward

    for module in model.modules():
        if type(module).__name__.endswith("RotaryEmbedding"):
            module.forward = rested(module.forward)


def plain_name(name):
    """A parameter's name in memory -> that in a text model; None in a tower."""
    if name.startswith("model.language_model."):
        return "model." + name[len("model.language_model."):]
    inside = ("model.visual.", "model.vision_tower.", "model.multi_modal_projector.")
    return None if name.startswith(inside) else name


def spelled(plain, prefix):
    if plain.startswith("model."):
        return prefix[0] + plain[len("model."):]
    return prefix[1] + plain


def kind_of(config):
    if config["model_type"].startswith(("gemma2", "gemma3", "qwen3_5")):
        return "1 + w"
    return "plain scores" if config["model_type"].startswith("gemma4") else ""


def auto_class(config):
    return (transformers.AutoModelForImageTextToText if "text_config" in config else
            transformers.AutoModelForCausalLM)


def write_folder(folder, variant, config):
    """-> the tensors written, by plain name"""
    tower = {"vision_config": variant.tower} if variant.tower else {}
    (folder / "config.json").write_text(json.dumps(config | tower))
    read = transformers.AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        skeleton = auto_class(config).from_config(read)
    shapes = {plain_name(n): tuple(p.shape)
              for n, p in skeleton.named_parameters(remove_duplicate=False)}
    shapes.pop(None, None)
    if variant.tied:
        shapes.pop("lm_head.weight")
    tensors = {n: made_tensor(n, s, variant.seed, kind_of(config)) for n, s in shapes.items()}
    scalars = {f"model.layers.{i}.layer_scalar" for i in variant.missing_scalars}
    scalars ^= {n for n in map(plain_name, skeleton.state_dict()) if n and n.endswith("layer_scalar")}
    scalars = {n: made_tensor(n, (1,), variant.seed, "") for n in scalars}
    file = {spelled(n, variant.prefix): t for n, t in (tensors | scalars).items()}
    unread = [spelled(f"model.layers.{i}.self_attn.{name}.weight", variant.prefix)
              for i in variant.unread for name in ("k_proj", "v_proj", "k_norm")]
    file |= {n: np.full(3, 0.5, np.float32) for n in [*variant.carried, *unread]}
    save_file(file, folder / "model.safetensors", metadata={"format": "pt"})
    return tensors


def load(variant, config):
    """The model as transformers reads it, in float64; and its trained parameters by plain name."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tensors = write_folder(folder, variant, config)
        model, info = auto_class(config).from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    trained = {plain_name(n): p for n, p in model.named_parameters()}
    trained.pop(None, None)
    missing = [n for n in info["missing_keys"]
               if plain_name(n) and not n.endswith("layer_scalar")]
    assert not missing and not info["mismatched_keys"], (config, missing, info)
    assert trained.keys() == tensors.keys(), (config, trained.keys() ^ tensors.keys())
    for n, p in trained.items():
        assert torch.equal(p.detach(), torch.from_numpy(tensors[n])), (config, n)
    return model.eval(), trained


def loss_of(model, documents):
    total = 0.0
    for ids in documents:
        logits = model(input_ids=ids[None, :-1], use_cache=False).logits
        total = total + F.cross_entropy(logits[0], ids[1:], reduction="sum")
    return total / sum(len(ids) - 1 for ids in documents)


def gradients_of(model, trained, documents):
    model.zero_grad(set_to_none=True)
    loss = loss_of(model, documents)
    loss.backward()
    return loss.item(), {n: p.grad.double().numpy() for n, p in trained.items()}


def in_float64(model, trained, documents):
    model.double()
    mode = NoFloat32()
    keep_rotary_tables(model, mode)
    torch.set_default_dtype(torch.float64)
    try:
        with mode:
            return gradients_of(model, trained, documents)
    finally:
        torch.set_default_dtype(torch.float32)


def float32_error(narrow, exact):
    """The largest error of PyTorch's own float32, relative to the norm of a tensor."""
    norms = {n: np.linalg.norm(g) for n, g in exact.items()}
    least = 1e-6 * math.sqrt(sum(v * v for v in norms.values()))
    cancels = ("A_log", "dt_bias", "linear_attn.norm.weight")
    return max(np.linalg.norm(narrow[n] - g) / norms[n] / (3 if n.endswith(cancels) else 1)
               for n, g in exact.items() if norms[n] > least)


def computed(variant, config):
    """-> loss, gradients, and how far PyTorch's float32 is from them"""
    vocab = config.get("text_config", config)["vocab_size"]
    ids = torch.from_numpy(made_ids(sum(variant.lengths), vocab, variant.seed))
    documents = ids.split(list(variant.lengths))
    model, trained = load(variant, config)
    _, narrow = gradients_of(model, trained, documents)
    loss, exact = in_float64(model, trained, documents)
    return loss, exact, float32_error(narrow, exact)


def golden(variant, base, sums):
    text = variant.config.get("text_config", variant.config)
    loss, exact, error = computed(variant, base | variant.config)
    while error > WORST_FLOAT32:
        print(f"{variant.config['model_type']}, seed {variant.seed}: float32 is off by {error:.1e}")
        variant.seed += 1000
        if variant.seed // 1000 % 3 == 0:
            text["rms_norm_eps"] = min(0.05, float(f"{10 * text['rms_norm_eps']:.0e}"))
        loss, exact, error = computed(variant, base | variant.config)
    names = {spelled(n, variant.prefix): n for n in exact}
    made = {"config": variant.config, "seed": variant.seed, "lengths": list(variant.lengths)}
    if variant.prefix != PLAIN:
        made["prefix"] = list(variant.prefix)
    if "text_config" in variant.config:
        made["tied"] = variant.tied
    if variant.carried:
        made["carried"] = list(variant.carried)
    if variant.unread:
        made["unread"] = list(variant.unread)
    if variant.missing_scalars:
        made["missing_scalars"] = list(variant.missing_scalars)
    made["loss"] = float(f"{loss:.9g}")
    made["tensors"] = listed({n: exact[plain].shape for n, plain in names.items()})
    made["gradients"] = [v for n in sorted(names) for v in described(names[n], exact[names[n]], sums)]
    return made


def text_of(base, sums, models):
    compact = dict(separators=(",", ":"))
    rows = ",\n".join(json.dumps(m, **compact) for m in models)
    return f'{{"base":{json.dumps(base, **compact)},"sums":{sums},\n"models":[\n' + rows + "\n]}\n"


def main():
    tests = pathlib.Path(__file__).resolve().parent.parent
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--out", type=pathlib.Path, default=tests / "core/run/goldens/variants")
    arguments.add_argument("--check", action="store_true", help="compare, and write nothing")
    arguments.add_argument("names", nargs="*", metavar="NAME")
    given = arguments.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    for name in given.names or variant_models.MECHANISMS:
        base, variants = variant_models.variants(name)
        sums = 1 if name in variant_models.OF_MANY_TENSORS else 2
        text = text_of(base, sums, [golden(v, base, sums) for v in variants])
        file = given.out / f"{name}.json"
        if given.check:
            print(f"{name}: {'equal' if file.read_text() == text else 'DIFFERENT'}")
            continue
        file.write_text(text)
        print(f"{name}: {len(variants)} models, {len(text)} bytes", flush=True)


if __name__ == "__main__":
    main()
