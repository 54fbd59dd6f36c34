#!/usr/bin/env python3
"""Continues a training run of Millrace with PyTorch's FSDP2, on any number of processes.

    torchrun --nproc-per-node gpu train.py [--until STEP]

job.json says how the run is trained. model/ (and adapter/) hold its weights, state/ the moments of
AdamW, and data/ its rows, with the order of the steps that are left. The loss of a step is the sum of
its cross-entropies / its trained tokens, so it does not depend on how many processes share the rows.

    out/losses.jsonl       a line for each step, and for each evaluation
    out/checkpoints/       distributed checkpoints; started again, the job goes on from the newest
    out/model/ or adapter/ the weights at the end, as safetensors: `millrace import out --out FOLDER`
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from huggingface_hub import save_torch_state_dict
from safetensors import safe_open
from safetensors.torch import save_file
from torch.distributed.checkpoint.state_dict import (StateDictOptions, get_model_state_dict, get_state_dict,
                                                     set_state_dict)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import distribute_tensor
from transformers import AutoConfig, AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "out"


# --- model and optimizer -------------------------------------------------------------------------

def name_in_files(name):
    """PEFT puts the name of an adapter into those of its parameters, and leaves it out of files."""
    return name.replace(".default.", ".")


def load_model(job):
    """The whole model on the CPU. Its tensors are mapped from the files, not read, until they are cut."""
    is_lora = job["method"] == "lora"
    config = AutoConfig.from_pretrained(HERE / "model")
    for field in vars(config):
        if field.endswith("dropout"):  # the run leaves out the dropout of a model's configuration
            setattr(config, field, 0.0)
    model = AutoModelForCausalLM.from_pretrained(
        HERE / "model", config=config, dtype="auto" if is_lora and job["precision"] == "bf16" else torch.float32,
        # Only this one caps the scores of attention.
        attn_implementation="eager" if getattr(config, "attn_logit_softcapping", None) else "sdpa")
    if is_lora:
        from peft import PeftModel
        model = PeftModel.from_pretrained(model, HERE / "adapter", is_trainable=True)
    trained = set(job["optimizer"]["trained"])
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name_in_files(name) in trained)
        trained.discard(name_in_files(name))
    if trained:
        raise SystemExit(f"the model has no parameter {sorted(trained)[0]} ({len(trained)} are missing): "
                         "install the versions of requirements.txt")
    return model


def shard(job, model, mesh):
    """Cuts each block, and the rest as one, so that a process holds its share of every parameter."""
    policy = MixedPrecisionPolicy()
    if job["precision"] == "bf16":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    inner = model.get_base_model() if job["method"] == "lora" else model
    if job["checkpoint_blocks"]:
        inner.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    for block in inner.model.layers:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            # Gradients are summed, not averaged: the loss of a step is scaled already.
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
    return model


def make_optimizer(job, model):
    """AdamW with the moments of the run."""
    settings = job["optimizer"]
    decayed = set(settings["decayed"])
    groups = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            key = (name_in_files(name) in decayed, ".lora_B." in name)
            groups.setdefault(key, []).append((name_in_files(name), parameter))
    optimizer = torch.optim.AdamW(
        [{"params": [parameter for _, parameter in found],
          "weight_decay": settings["weight_decay"] if is_decayed else 0.0,
          "rate": settings["lora_b_rate"] if is_b else 1.0}
         for (is_decayed, is_b), found in groups.items()],
        lr=0.0, betas=tuple(settings["betas"]), eps=settings["eps"])
    for moment in ("exp_avg", "exp_avg_sq"):
        with safe_open(HERE / "state" / f"{moment}.safetensors", "pt") as file:
            for name, parameter in (each for found in groups.values() for each in found):
                state = optimizer.state[parameter]
                state["step"] = torch.tensor(float(settings["updates"]))
                state[moment] = distribute_tensor(file.get_tensor(name), parameter.device_mesh,
                                                  parameter.placements, src_data_rank=None)
    return optimizer


def learning_rate(schedule, step):
    """Of the step with this number, counted from 0."""
    warmup, peak = schedule["warmup_steps"], schedule["rate"]
    if step < warmup:
        return peak * step / warmup
    progress = min(max((step - warmup) / max(1, schedule["total_steps"] - warmup), 0.0), 1.0)
    if schedule["kind"] == "linear":
        return peak * (1.0 - progress)
    if schedule["kind"] == "cosine":
        return peak * 0.5 * (1.0 + math.cos(math.pi * progress))
    return peak


# --- data ----------------------------------------------------------------------------------------

class Rows:
    """Rows of ids, targets (-1: not trained) and positions, which count from 0 in each document."""

    def __init__(self, file, device):
        self.file = safe_open(file, "pt")
        self.columns = [self.file.get_slice(name) for name in ("ids", "targets", "positions")]
        self.count, self.places = self.columns[0].get_shape()
        self.device = device

    def batch(self, rows):
        """-> ids, targets, positions, without the padding at their ends; no rows: one of padding"""
        if not rows:
            ids = torch.zeros(1, 1, dtype=torch.long)
            parts = [ids, ids - 1, ids]
        else:
            parts = [torch.cat([column[row:row + 1] for row in rows]).long() for column in self.columns]
            used = ((parts[1] >= 0) | (parts[2] > 0)).any(0).nonzero()
            parts = [part[:, :int(used.max()) + 1 if len(used) else 1] for part in parts]
        return [part.to(self.device) for part in parts]


def share_of(rows, size):
    """The micro-batches of this process, of at most `size` rows: as many as every other one has."""
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = rows[rank::world]
    count = math.ceil(math.ceil(len(rows) / world) / size)
    return [mine[i * size:(i + 1) * size] for i in range(count)]


def loss_sum(model, batch):
    """Without a mask transformers keeps documents apart by their positions."""
    ids, targets, positions = batch
    logits = model(input_ids=ids, position_ids=positions, use_cache=False).logits
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-1, reduction="sum")


def summed(values, device):
    total = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(total)
    return total.tolist()


# --- training ------------------------------------------------------------------------------------

def train_step(job, model, optimizer, rows, trained, rows_of_step, rate):
    """-> the sum of the losses, the norm of the gradient. One that is not finite changes nothing."""
    model.train()
    loss = 0.0
    for chosen in share_of(rows_of_step, job["micro_batch"]):
        part = loss_sum(model, rows.batch(chosen))
        (part / trained).backward()
        loss += part.item()
    gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    norm = (norm.full_tensor() if hasattr(norm, "full_tensor") else norm).item()
    if math.isfinite(norm):
        clip = job["optimizer"]["clip_norm"]
        if clip > 0.0:
            for gradient in gradients:
                gradient.mul_(min(1.0, clip / (norm + 1e-6)))
        for group in optimizer.param_groups:
            group["lr"] = rate * group["rate"]
        optimizer.step()
    optimizer.zero_grad()
    return summed([loss], rows.device)[0], norm


@torch.no_grad()
def evaluate(job, model, rows):
    model.eval()
    loss = tokens = 0.0
    for chosen in share_of(list(range(rows.count)), job["micro_batch"]):
        batch = rows.batch(chosen)
        loss += loss_sum(model, batch).item()
        tokens += (batch[1] >= 0).sum().item()
    loss, tokens = summed([loss, tokens], rows.device)
    return loss / max(tokens, 1.0)


def checkpoints():
    """Newest first."""
    found = [path for path in (OUT / "checkpoints").glob("step-*") if path.suffix != ".part"]
    return sorted(found, key=lambda path: int(path.name.split("-")[1]), reverse=True)


# An adapter's frozen model is in model/.
def state_options(job):
    return StateDictOptions(ignore_frozen_params=job["method"] == "lora", strict=job["method"] != "lora")


def save_checkpoint(job, model, optimizer, step):
    weights, moments = get_state_dict(model, optimizer, options=state_options(job))
    folder = OUT / "checkpoints" / f"step-{step:08d}"
    part = folder.with_suffix(".part")
    dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=part)
    if dist.get_rank() == 0:
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
        for old in checkpoints()[max(1, job["keep_checkpoints"]):]:
            shutil.rmtree(old)
    dist.barrier()


def load_checkpoint(job, model, optimizer):
    """-> the step to go on from"""
    found = checkpoints()
    if not found:
        return job["from_step"]
    weights, moments = get_state_dict(model, optimizer, options=state_options(job))
    dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=found[0])
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments,
                   options=state_options(job))
    return int(found[0].name.split("-")[1])


def save_result(job, model):
    """Whole tensors under the names of their files, beside the small files of model/ or adapter/."""
    is_lora = job["method"] == "lora"
    tensors = get_model_state_dict(model, options=StateDictOptions(
        full_state_dict=True, cpu_offload=True, ignore_frozen_params=is_lora))
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad or not is_lora}
    if dist.get_rank() != 0:
        return
    source, folder = (HERE / "adapter", OUT / "adapter") if is_lora else (HERE / "model", OUT / "model")
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(source, part, ignore=shutil.ignore_patterns("*.safetensors", "*.safetensors.index.json"))
    tensors = {name_in_files(name): tensor.contiguous() for name, tensor in tensors.items() if name in names}
    if is_lora:
        save_file(tensors, part / "adapter_model.safetensors", metadata={"format": "pt"})
    else:
        save_torch_state_dict(tensors, part)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


class Log:
    """out/losses.jsonl, of process 0. A step that is made again takes the place of its line."""

    def __init__(self, step):
        self.path = OUT / "losses.jsonl"
        if dist.get_rank() == 0:
            lines = self.path.read_text().splitlines() if self.path.exists() else []
            kept = [line for line in lines if json.loads(line)["step"] <= step]
            self.path.write_text("".join(line + "\n" for line in kept))

    def write(self, **fields):
        if dist.get_rank() == 0:
            fields = {name: value if math.isfinite(value) else None for name, value in fields.items()}
            with self.path.open("a") as file:
                file.write(json.dumps(fields) + "\n")
            print(" ".join(f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
                           for name, value in fields.items()), flush=True)


def train(job, until, device):
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    model = shard(job, load_model(job), mesh)
    optimizer = make_optimizer(job, model)
    step = load_checkpoint(job, model, optimizer)
    log = Log(step)
    rows = Rows(HERE / "data" / "train.safetensors", device)
    held_out = HERE / "data" / "eval.safetensors"
    held_out = Rows(held_out, device) if held_out.exists() and job["eval_every"] > 0 else None
    with safe_open(HERE / "data" / "index.safetensors", "pt") as file:
        order, trained, tokens = (file.get_tensor(name) for name in ("rows", "trained", "tokens"))
    last = min(job["steps"], until or job["steps"])
    while step < last:
        at, began = step - job["from_step"], time.monotonic()
        rate = learning_rate(job["schedule"], step)
        step += 1
        if trained[at] > 0:  # else the run passes the step over
            loss, norm = train_step(job, model, optimizer, rows, trained[at].item(),
                                    order[at].flatten().tolist(), rate)
            log.write(step=step, loss=loss / trained[at].item(), lr=rate, grad_norm=norm,
                      tokens=tokens[at].item(), loss_tokens=trained[at].item(),
                      wall_ms=1000.0 * (time.monotonic() - began))
        if held_out and (step % job["eval_every"] == 0 or step == job["steps"]):
            log.write(step=step, eval_loss=evaluate(job, model, held_out))
        if step % job["checkpoint_every"] == 0 and step < last:
            save_checkpoint(job, model, optimizer, step)
    save_checkpoint(job, model, optimizer, step)
    save_result(job, model)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--until", type=int, help="stop after this step, for a trial")
    options = parser.parse_args()
    job = json.loads((HERE / "job.json").read_text())
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    torch.manual_seed(job["seed"] + dist.get_rank())
    if dist.get_rank() == 0:
        (OUT / "checkpoints").mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "job.json", OUT / "job.json")
    dist.barrier()
    train(job, options.until, device)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
