"""Offloaded steps of Millrace and of DeepSpeed on a machine without a GPU, in turns, in one table.

Both use their CPU device, the same shapes, tokens, precision (bf16 with an fp32 master) and threads.
A step is one micro-batch; of the arm with accumulation, a window of S divided by S. Memory is the most
that the whole process ever held, as the kernel counted it.

    python tests/bench/peers/offload_cpu.py --millrace build/release/bin/millrace
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ARMS = {  # DeepSpeed's arm: ours, with options, micro-batches of a step
    "zero-offload": [("zero-offload", [], 1), ("zero-offload", ["state=compact"], 1),
                     ("resident", [], 1)],
    "zero-offload-gas": [("zero-offload", [], 4)],
    "zenflow": [("zenflow", ["warmup=1"], 1)],
}


def run(command):
    """JSON lines of a program and the most bytes it held, or why there are none."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        out.seek(0)
        errors.seek(0)
        if status != 0:
            return (errors.read().strip().splitlines() or ["failed"])[-1][:120], 0
        lines = [json.loads(line) for line in out.read().splitlines() if line.startswith("{")]
        return lines, 1024 * usage.ru_maxrss


def ours(options, policy, extra, accumulate):
    command = [options.millrace, "bench", "step", "--device", "cpu", "--threads", str(options.threads),
               "--model", options.model, "--seq-len", str(options.seq_len), "--micro-batch", "1",
               "--accumulate", str(accumulate), "--precision", "bf16", "--recompute", "none", "--steps",
               "16", "--policy", policy, "--json"]
    for option in extra:
        command += ["--policy-option", option]
    lines, held = run(command)
    if isinstance(lines, str):
        return lines
    steps = sorted(line["wall_ms"] for line in lines if line.get("event") == "step")
    summary = [line for line in lines if line.get("event") == "summary"][0]
    mean = sum(steps) / len(steps) if policy == "zenflow" else steps[len(steps) // 2]
    return {"name": " ".join(["Millrace", policy, *extra]), "ms": mean / accumulate, "held": held,
            "host": summary["peak_host_bytes"]}


def theirs(options, arm):
    lines, held = run([sys.executable, os.path.join(HERE, "deepspeed_offload.py"), "--device", "cpu",
                       "--threads", str(options.threads), "--model", options.model, "--seq-len",
                       str(options.seq_len), "--windows", "5", "--arm", arm])
    if isinstance(lines, str):
        return lines
    return {"name": lines[-1]["peer"] + " " + arm, "ms": lines[-1]["step_ms"], "held": held}


def best(results):
    good = [result for result in results if not isinstance(result, str)]
    return min(good, key=lambda result: result["ms"]) if good else results[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--millrace", required=True)
    parser.add_argument("--model", default=os.path.join(HERE, "..", "configs", "30m.json"))
    parser.add_argument("--seq-len", type=int, default=256)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    print("| | step ms | of DeepSpeed's | held MiB | of DeepSpeed's |\n|---|---|---|---|---|")
    for arm, rivals in ARMS.items():
        peers, mine = [], [[] for _ in rivals]
        for _ in range(options.rounds):
            peers.append(theirs(options, arm))
            for results, rival in zip(mine, rivals):
                results.append(ours(options, *rival))
        peer = best(peers)
        if isinstance(peer, str):
            print(f"| DeepSpeed {arm} | {peer} | | | |")
            continue
        print(f"| {peer['name']} | {peer['ms']:.0f} | | {peer['held'] / 2**20:.0f} | |")
        for result in map(best, mine):
            if isinstance(result, str):
                print(f"| Millrace | {result} | | | |")
                continue
            print(f"| {result['name']} | {result['ms']:.0f} | 1/{peer['ms'] / result['ms']:.1f} | "
                  f"{result['held'] / 2**20:.0f} | {result['held'] / peer['held']:.0%} |", flush=True)


if __name__ == "__main__":
    main()
