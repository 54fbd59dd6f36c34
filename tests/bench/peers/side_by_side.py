"""Runs `millrace bench` and its peers in turns on the same shapes and prints both in one table.

Every case is measured in rounds, ours and theirs one after the other, and the better round of each
counts: a machine's mood then falls on both. What does not fit or is not installed is said in words.

    python tests/bench/peers/side_by_side.py --millrace build/portable/bin/millrace --out results
"""

import argparse
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIGS = os.path.join(HERE, "..", "configs")


class Runner:
    def __init__(self, options):
        self.options = options
        self.deadline = time.monotonic() + options.seconds
        self.log = open(os.path.join(options.out, "log.txt"), "w")

    def lines(self, command, limit=120):
        """The JSON lines a program prints, or a string that says why there are none."""
        left = self.deadline - time.monotonic()
        if left < 10:
            return "out of time"
        self.log.write("$ " + " ".join(command) + "\n")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=min(limit, left))
        except subprocess.TimeoutExpired:
            self.log.write("ended: too long\n")
            return "took too long"
        self.log.write(done.stdout + done.stderr)
        self.log.flush()
        if done.returncode == 3:
            return "does not fit"
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or ["failed"])[-1][:100]
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def millrace(self, *arguments):
        return self.lines([self.options.millrace, "bench", *arguments, "--device", self.options.device,
                           "--json"])

    def peer(self, script, *arguments):
        command = [sys.executable, os.path.join(HERE, script), *arguments]
        if script != "deepspeed_offload.py":
            command += ["--device", self.options.device]
        return self.lines(command)

    def rounds(self, *calls):
        """Per call its results of all rounds, or the first reason why there is none."""
        results = [[] for _ in calls]
        for _ in range(self.options.rounds):
            for i, call in enumerate(calls):
                if isinstance(results[i], list):
                    lines = call()
                    results[i] = results[i] + [lines] if isinstance(lines, list) else lines
        return results


def best(results, pick):
    """The largest figure over the rounds; the reason where there is none."""
    if isinstance(results, str):
        return results
    found = [pick(lines) for lines in results]
    found = [value for value in found if value is not None]
    return max(found) if found else "no figure"


def tokens_per_second(lines):
    for line in lines:
        if line.get("fits") is False:
            return None
        if "tokens_per_second" in line:
            return line["tokens_per_second"]
    return None


def cell(value):
    return f"{value:,.0f}" if isinstance(value, float) else value


def ratio(ours, theirs):
    return f"{ours / theirs:.2f}" if isinstance(ours, float) and isinstance(theirs, float) else ""


def step_cases(runner, table):
    o = runner.options
    for model in o.models:
        config = os.path.join(CONFIGS, model + ".json")
        for recompute in ("none", "block"):
            shape = ["--model", config, "--seq-len", str(o.seq_len), "--recompute", recompute]
            ours, theirs = runner.rounds(
                lambda: runner.millrace("step", *shape, "--policy", "resident", "--precision", "bf16",
                                        "--steps", "5"),
                lambda: runner.peer("torch_gpu_step.py", *shape, "--steps", "5"))
            ours, theirs = best(ours, tokens_per_second), best(theirs, tokens_per_second)
            table.append((f"step {model}, recompute {recompute}, tokens/s", cell(ours),
                          f"PyTorch {cell(theirs)}", ratio(ours, theirs)))


def attention_cases(runner, table):
    ours, theirs = runner.rounds(lambda: runner.millrace("attention"),
                                 lambda: runner.peer("torch_attention.py"))
    for head_dim in (128, 64):
        for name, key in (("attention bf16", "forward_gflops"), ("attentionBackward bf16", "backward_gflops")):
            def pick_ours(lines):
                return next((float(line["ours"]) for line in lines if line["name"].startswith(name)
                             and line["name"].endswith(f"heads of {head_dim}")), None)

            def pick_theirs(lines):
                return next((line[key] for line in lines if line["head_dim"] == head_dim), None)
            a, b = best(ours, pick_ours), best(theirs, pick_theirs)
            table.append((f"{name}, heads of {head_dim}, GFLOP/s", cell(a), f"SDPA flash {cell(b)}", ratio(a, b)))


def offload_cases(runner, table):
    o = runner.options
    for model in o.offload_models:
        shape = ["--model", os.path.join(CONFIGS, model + ".json"), "--seq-len", str(o.seq_len)]
        for arm, accumulate in (("zero-offload", 1), ("zero-offload-gas", 4)):
            ours, theirs = runner.rounds(
                lambda: runner.millrace("step", *shape, "--policy", "zero-offload", "--precision", "bf16",
                                        "--accumulate", str(accumulate), "--steps", "5"),
                lambda: runner.peer("deepspeed_offload.py", *shape, "--arm", arm, "--windows", "5"))
            ours, theirs = best(ours, tokens_per_second), best(theirs, tokens_per_second)
            table.append((f"{arm} {model}, tokens/s", cell(ours), f"DeepSpeed {cell(theirs)}",
                          ratio(ours, theirs)))
        ours, theirs = runner.rounds(
            lambda: runner.millrace("step", *shape, "--policy", "zenflow", "--policy-option", "interval=4",
                                    "--precision", "bf16", "--steps", "8"),
            lambda: runner.peer("deepspeed_offload.py", *shape, "--arm", "zenflow", "--windows", "5"))
        ours, theirs = best(ours, tokens_per_second), best(theirs, tokens_per_second)
        table.append((f"zenflow {model}, S = 4, tokens/s", cell(ours), f"DeepSpeed {cell(theirs)}",
                      ratio(ours, theirs)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--millrace", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seq-len", type=int, default=2048)
    parser.add_argument("--models", nargs="*", default=["0.5b", "1.5b", "3b"])
    parser.add_argument("--offload-models", nargs="*", default=["1.5b"])
    parser.add_argument("--only", nargs="*", default=["step", "attention", "offload"])
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    runner = Runner(options)
    table = []
    for name, run in (("attention", attention_cases), ("step", step_cases), ("offload", offload_cases)):
        if name in options.only:
            run(runner, table)
    text = "| case | Millrace | peer | ours / peer |\n|---|---|---|---|\n"
    text += "".join(f"| {' | '.join(line)} |\n" for line in table)
    with open(os.path.join(options.out, "table.md"), "w") as file:
        file.write(text)
    print(text)


if __name__ == "__main__":
    main()
