"""PyTorch's fused AdamW on the CPU: the peer of `millrace bench adamw`.

One tensor of 8 Mi parameters in fp32 with fp32 gradients and moments: 16 bytes read and 12 written a
parameter, where Millrace's takes bf16 gradients and keeps the master as two halves (14 and 12).
Parameters per second are what both do for a user. Prints the median of the calls.

    python tests/bench/peers/torch_adamw.py --threads 2
"""

import argparse
import time

import torch

COUNT = 8 << 20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--calls", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    weights = torch.nn.Parameter(torch.randn(COUNT))
    weights.grad = torch.randn(COUNT)
    optimizer = torch.optim.AdamW([weights], lr=1e-5, weight_decay=0.01, fused=True)
    times = []
    for _ in range(options.calls + 2):
        begin = time.perf_counter()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    median = sorted(times[2:])[options.calls // 2]
    print(f"torch {torch.__version__} adamw, {options.threads} threads: "
          f"{COUNT / median / 1e6:.0f} Mparameters/s, {28 * COUNT / median / 1e9:.1f} GB/s")


if __name__ == "__main__":
    main()
