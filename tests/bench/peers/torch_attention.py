"""Attention in PyTorch, forward and backward: the peer of `millrace bench attention`.

scaled_dot_product_attention, causal, one sequence, grouped key and value heads; on a GPU the flash
kernels are required, so that no slower path is measured by mistake. GFLOP/s by what a causal row
needs: forward 4 T^2 / 2 headDim heads, backward 10 / 4 of it. Prints a JSON line per shape.

    python tests/bench/peers/torch_attention.py
"""

import argparse
import contextlib
import json

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from llama import device_name, pick_device


def seconds_on_gpu(call, batches=21, calls=8):
    """Median over batches of calls, by events of the device."""
    for _ in range(3):
        call()
    times = []
    for _ in range(batches):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3 / calls)
    return sorted(times)[len(times) // 2]


def seconds_on_cpu(call, batches=7):
    import time
    call()
    times = []
    for _ in range(batches):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--kv-heads", type=int, default=8)
    options = parser.parse_args()
    device = pick_device(options.device)
    on_gpu = device.type == "cuda"
    seconds = seconds_on_gpu if on_gpu else seconds_on_cpu
    for head_dim in (128, 64):
        def tensor(heads):
            return torch.randn(1, heads, options.tokens, head_dim, device=device,
                               dtype=torch.bfloat16, requires_grad=True)
        q, k, v = tensor(options.heads), tensor(options.kv_heads), tensor(options.kv_heads)

        def forward():
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION) if on_gpu else contextlib.nullcontext():
            out = forward()
            grad = torch.randn_like(out)
            with torch.no_grad():
                ahead = seconds(forward)
            back = seconds(lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True))
        flops = 4.0 * options.heads * head_dim * 0.5 * options.tokens ** 2
        print(json.dumps({"peer": f"PyTorch {torch.__version__}", "device": device_name(device),
                          "tokens": options.tokens, "heads": options.heads, "kv_heads": options.kv_heads,
                          "head_dim": head_dim, "forward_gflops": flops / ahead / 1e9,
                          "backward_gflops": 2.5 * flops / back / 1e9}), flush=True)


if __name__ == "__main__":
    main()
