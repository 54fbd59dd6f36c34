"""A whole optimizer step of a Llama in plain PyTorch: the peer of `millrace bench step --model CONFIG`
with everything on the device.

master  bf16 weights, activations and gradients, an fp32 master with fp32 moments: what Millrace keeps.
pure    bf16 weights and bf16 moments: less memory and fewer bytes per step, other numbers.
auto    fp32 weights under autocast to bf16.

Attention is scaled_dot_product_attention, the optimizer PyTorch's fused AdamW, the gradient norm is
clipped at 1. Prints one JSON line.

    python tests/bench/peers/torch_gpu_step.py --model tests/bench/configs/1.5b.json --seq-len 2048
"""

import argparse
import json

import torch

from llama import Config, Llama, device_name, median_seconds, pick_device


class Trainer:
    def __init__(self, options, device):
        self.options = options
        self.device = device
        config = Config(options.model)
        dtype = torch.float32 if options.mode == "auto" else torch.bfloat16
        with torch.device(device):
            torch.set_default_dtype(dtype)
            self.model = Llama(config, options.seq_len, options.recompute == "block").initialize()
            torch.set_default_dtype(torch.float32)
        self.weights = list(self.model.parameters())
        self.trained = self.weights
        if options.mode == "master":
            self.trained = [p.detach().float().requires_grad_() for p in self.weights]
        if options.compile:
            self.model = torch.compile(self.model)
        self.optimizer = torch.optim.AdamW(self.trained, lr=1e-5, weight_decay=0.01, fused=True)
        shape = (options.accumulate, options.micro_batch, options.seq_len)
        self.ids = torch.randint(0, config.vocab, shape, device=device)
        self.targets = torch.randint(0, config.vocab, shape, device=device)

    def step(self):
        for ids, targets in zip(self.ids, self.targets):
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.options.mode == "auto"):
                loss = self.model(ids, targets) / self.options.accumulate
            loss.backward()
        if self.options.mode == "master":
            for master, weight in zip(self.trained, self.weights):
                master.grad = weight.grad.float()
                weight.grad = None
        torch.nn.utils.clip_grad_norm_(self.trained, 1.0, foreach=True)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self.options.mode == "master":
            with torch.no_grad():
                torch._foreach_copy_(self.weights, self.trained)
        return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True, help="config.json")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seq-len", type=int, default=2048)
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--recompute", choices=("none", "block"), default="none")
    parser.add_argument("--mode", choices=("master", "pure", "auto"), default="master")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--steps", type=int, default=7)
    options = parser.parse_args()
    device = pick_device(options.device)
    torch.manual_seed(1)
    result = {"peer": f"PyTorch {torch.__version__}" + (", compiled" if options.compile else ""),
              "device": device_name(device), "mode": options.mode, "recompute": options.recompute,
              "model": options.model, "seq_len": options.seq_len, "fits": True}
    try:
        trainer = Trainer(options, device)
        seconds = median_seconds(trainer.step, device, options.steps)
    except torch.cuda.OutOfMemoryError:
        result["fits"] = False
        print(json.dumps(result))
        return
    tokens = options.accumulate * options.micro_batch * options.seq_len
    flops = Config(options.model).flops_of_step(tokens, options.seq_len)
    result.update(parameters=sum(p.numel() for p in trainer.weights), step_ms=1e3 * seconds,
                  tokens_per_second=tokens / seconds, tflops=flops / seconds / 1e12,
                  loss=float(trainer.step().detach()) * options.accumulate)
    if device.type == "cuda":
        result["peak_device_bytes"] = torch.cuda.max_memory_allocated()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
