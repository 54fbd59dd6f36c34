"""A step of a Llama under DeepSpeed with the optimizer on the host: the peer of `millrace bench step
--policy zero-offload` (and of zenflow).

zero-offload      ZeRO stage 2 with the optimizer on the CPU, one update per micro-batch.
zero-offload-gas  the same, gradients of S micro-batches accumulated: as many updates as zenflow makes,
                  so the honest rival of it in throughput.
zenflow           the urgent tenth of the columns on the GPU at once, the rest every S micro-batches
                  beside the next window.

A step is one micro-batch for all three. Timed over whole windows of S between synchronisations; three
windows are skipped (processes start, memory is pinned, code is compiled). Prints one JSON line.

    python tests/bench/peers/deepspeed_offload.py --model tests/bench/configs/1.5b.json --arm zero-offload

Without a GPU (`--device cpu`) DeepSpeed's own CPU backend is the device, and the optimizer is the same
DeepSpeedCPUAdam: there is nothing to hide behind then, but the work and the memory are the same.
"""

import argparse
import json
import os
import resource
import sys
import time

import torch

from llama import Config, Llama, device_name


def settings(options):
    zero = {"stage": 2, "overlap_comm": True, "contiguous_gradients": True,
            "reduce_bucket_size": 50000000,
            "offload_optimizer": {"device": "cpu", "pin_memory": True}}
    gas = options.window if options.arm == "zero-offload-gas" else 1
    if options.arm == "zenflow":
        zero["zenflow"] = {"topk_ratio": 0.1, "select_strategy": "step", "select_interval": 32,
                           "update_interval": options.window, "full_warm_up_rounds": 4,
                           "overlap_step": True, "pt_reserved_cores_perc": 0.25}
    return {"train_micro_batch_size_per_gpu": options.micro_batch, "gradient_accumulation_steps": gas,
            "gradient_clipping": options.clip, "bf16": {"enabled": True},
            "wall_clock_breakdown": False, "steps_per_print": 1000000,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-5, "betas": [0.9, 0.999], "eps": 1e-8,
                                                      "weight_decay": 0.01}},
            "zero_optimization": zero}


def one_process():
    """One GPU needs no launcher."""
    for key, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1"),
                       ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29531")):
        os.environ.setdefault(key, value)


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def windows(engine, ids, targets, options):
    """Seconds of each measured window of S micro-batches."""
    def micro_step():
        loss = engine(ids, targets)
        engine.backward(loss)
        engine.step()
        return loss.detach()
    times, losses = [], []
    for window in range(3 + options.windows):
        synchronize(options.device)
        begin = time.perf_counter()
        for _ in range(options.window):
            losses.append(micro_step())
        synchronize(options.device)
        if window >= 3:
            times.append(time.perf_counter() - begin)
    return times, [float(loss) for loss in (losses[0], losses[-1])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True, help="config.json")
    parser.add_argument("--arm", choices=("zero-offload", "zero-offload-gas", "zenflow"), required=True)
    parser.add_argument("--seq-len", type=int, default=2048)
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--window", type=int, default=4, help="S")
    parser.add_argument("--windows", type=int, default=10)
    parser.add_argument("--recompute", choices=("none", "block"), default="none")
    parser.add_argument("--clip", type=float, default=0.0,
                        help="under zenflow it acts on the CPU's half only, so 0 for all arms")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--threads", type=int, default=0, help="of PyTorch and the CPU optimizer")
    parser.add_argument("--print-config", action="store_true", help="only print DeepSpeed's JSON")
    options = parser.parse_args()
    if options.print_config:
        print(json.dumps(settings(options), indent=2))
        return
    if options.device == "cpu":
        os.environ["DS_ACCELERATOR"] = "cpu"
    if options.threads:
        os.environ["OMP_NUM_THREADS"] = str(options.threads)
        torch.set_num_threads(options.threads)
    try:
        import deepspeed
    except ImportError as error:
        sys.exit(f"DeepSpeed is not installed ({error}); the README beside says how to bring it along")
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("DeepSpeed's offload is measured on a GPU; there is none (--device cpu)")
    one_process()
    torch.manual_seed(1)
    config = Config(options.model)
    with torch.device(options.device):
        torch.set_default_dtype(torch.bfloat16)
        model = Llama(config, options.seq_len, options.recompute == "block").initialize()
        torch.set_default_dtype(torch.float32)
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(),
                                      config=settings(options))
    shape = (options.micro_batch, options.seq_len)
    ids, targets = (torch.randint(0, config.vocab, shape, device=options.device) for _ in range(2))
    times, losses = windows(engine, ids, targets, options)
    tokens = options.micro_batch * options.seq_len
    seconds = sorted(times)[len(times) // 2] / options.window
    print(json.dumps({
        "peer": f"DeepSpeed {deepspeed.__version__}", "device": device_name(torch.device(options.device)),
        "arm": options.arm, "window": options.window, "recompute": options.recompute,
        "model": options.model, "step_ms": 1e3 * seconds,
        "slowest_step_ms": 1e3 * max(times) / options.window, "tokens_per_second": tokens / seconds,
        "tflops": config.flops_of_step(tokens, options.seq_len) / seconds / 1e12,
        "first_loss": losses[0], "last_loss": losses[1],
        "peak_device_bytes": torch.cuda.max_memory_allocated() if options.device == "cuda" else 0,
        "peak_resident_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


if __name__ == "__main__":
    main()
