#!/usr/bin/env python3
"""Compares jobs of `millrace export --to torchrun` with resuming the same run.

    python torchrun_job.py --millrace PROGRAM [--families FOLDER] [NAME...]

A run trains a tiny model for 30 steps and keeps a checkpoint of step 10. A copy of its folder that ends
there is exported and resumed here; the job goes on under torchrun in two processes on the CPU (gloo). Two
of them are ended after ten steps and started again, to read checkpoints of their own. The 20 losses must
agree within 1e-4 (runs in float32), and the weights that `millrace import` brings home must give the evaluation
loss of the resumed run. NAMEs are those of RUNS; with --families those of folders there, whose config.json
is trained from scratch with the tokens of the sample: a full run of each family.

Checked with torch 2.15.0, transformers 5.24.0, peft 0.21.2.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "resources/sample"
FROM, STEPS = 10, 30
TOLERANCE = 1e-4

COMMON = ["--steps", str(STEPS), "--seq-len", "64", "--micro-batch", "2", "--accumulate", "3", "--warmup", "15",
          "--schedule", "cosine", "--clip", "0.5", "--weight-decay", "0.1", "--eval-every", "10",
          "--checkpoint-every", str(FROM), "--keep", "9", "--threads", "2", "--device", "cpu",
          "--policy", "resident", "--seed", "5"]
FULL = ["--lr", "1e-3"]
LORA = ["--method", "lora", "--rank", "8", "--alpha", "16", "--lr", "1e-2"]

def override(options, more):
    """An option that is given again counts by its last value; the program refuses it twice."""
    kept, names = [], {word for word in more if word.startswith("--")}
    for i, word in enumerate(options):
        name = word if word.startswith("--") else options[i - 1]
        if name not in names:
            kept.append(word)
    return kept + more


RUNS = {
    "full": (FULL, "fp32"),
    "full packed": (FULL + ["--pack"], "fp32"),
    "full, some layers": (FULL + ["--train-layers", "2-3"], "fp32"),
    "full, linear, one micro-batch": (FULL + ["--schedule", "linear", "--accumulate", "1"], "fp32"),
    "full, streamed": (FULL + ["--policy", "streamed"], "fp32"),
    "lora": (LORA, "fp32"),
    "lora packed": (LORA + ["--pack"], "fp32"),
    "lora plus, patterns": (override(LORA, ["--lora-plus", "4", "--targets", "q_proj,down_proj", "--rank-pattern",
                                            "down_proj=4", "--rslora", "--schedule", "constant", "--lr", "1e-3"]),
                            "fp32"),
    # Rounding differs from place to place: these two say how far.
    "full in bf16": (FULL, "bf16"),
    "lora in bf16": (LORA, "bf16"),
}
ENDED = ("full", "lora")  # after ten steps, and started again


def call(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}")
    return done.stdout


def losses_here(run):
    rows = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    found = {row["step"]: row for row in rows if row.get("event") == "step"}
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    evals = {row["step"]: row["value"] for row in events if row.get("metric") == "eval_loss"}
    return found, evals


def losses_there(job):
    rows = [json.loads(line) for line in (job / "out/losses.jsonl").read_text().splitlines()]
    return ({row["step"]: row for row in rows if "loss" in row},
            {row["step"]: row["eval_loss"] for row in rows if "eval_loss" in row})


def cut_at(run, copy, step):
    """A copy of a run folder as it was when the checkpoint of `step` was its newest."""
    shutil.copytree(run, copy)
    for folder in (copy / "checkpoints").iterdir():
        if int(folder.name.split("-")[1]) > step:
            shutil.rmtree(folder)
    for name in ("model", "adapter"):
        shutil.rmtree(copy / name, ignore_errors=True)
    record = json.loads((copy / "run.json").read_text())
    config = json.loads(record["config"])
    config["out"] = config["out_dir"] = str(copy)
    record["config"] = json.dumps({key: value for key, value in config.items() if key in json.loads(record["config"])})
    (copy / "run.json").write_text(json.dumps(record))


def torchrun(job, *options):
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    call(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", job / "train.py",
         *options, env=environment)


def evaluate(millrace, run):
    return json.loads(call(millrace, "eval", "--model", run, "--data", SAMPLE / "eval.jsonl", "--seq-len", "64",
                           "--precision", "fp32", "--device", "cpu", "--json"))["loss"]


def furthest(pairs):
    return max(abs(a - b) / max(abs(a), 1e-12) for a, b in pairs)


def compare(millrace, name, options, precision, model, folder):
    history = folder / "history.db"
    run, here, job, back = (folder / part for part in ("run", "here", "job", "back"))
    call(millrace, "train", *model, "--data", SAMPLE / "train.jsonl", "--out", run, "--db", history,
         "--precision", precision, *override(COMMON, options))
    cut_at(run, here, FROM)
    call(millrace, "export", here, "--to", "torchrun", "--out", job)
    call(millrace, "resume", here, "--db", folder / "other.db")
    if name in ENDED:
        torchrun(job, "--until", (FROM + STEPS) // 2)
    torchrun(job)
    call(millrace, "import", job / "out", "--out", back, "--db", history)
    mine, my_evals = losses_here(here)
    theirs, their_evals = losses_there(job)
    steps = range(FROM + 1, STEPS + 1)
    assert sorted(theirs) == list(steps), sorted(theirs)
    figures = {field: furthest([(mine[s][field], theirs[s][field]) for s in steps])
               for field in ("loss", "grad_norm", "lr")}
    assert all(mine[s][field] == theirs[s][field] for s in steps for field in ("tokens", "loss_tokens"))
    figures["eval"] = furthest([(my_evals[s], their_evals[s]) for s in (20, 30)])
    figures["weights"] = furthest([(evaluate(millrace, here), evaluate(millrace, back))])
    runs = [json.loads(line) for line in call(millrace, "runs", "--db", history, "--json").splitlines()]
    imported = [run for run in runs if run["name"].endswith("(torchrun)")]
    assert [run["last_loss"] for run in imported] == [theirs[STEPS]["loss"]], runs
    passed = precision == "bf16" or max(figures["loss"], figures["eval"], figures["weights"]) < TOLERANCE
    print(f"{name:32} {'ok  ' if passed else 'FAIL'} "
          f"loss {mine[FROM + 1]['loss']:.3f} -> {mine[STEPS]['loss']:.3f}  largest relative differences: "
          + "  ".join(f"{key} {value:.1e}" for key, value in figures.items()), flush=True)
    return passed


def family_models(families, scratch):
    """Options for a new model of each configuration, with the tokens of the sample."""
    for source in sorted(families.iterdir()):
        config = json.loads((source / "config.json").read_text()) if (source / "config.json").exists() else {}
        if "vocab_size" in config:
            config["vocab_size"] = 1024
            file = scratch / f"{source.name}.json"
            file.write_text(json.dumps(config))
            yield source.name, ["--from-scratch", file, "--tokenizer", SAMPLE / "model/tokenizer.model"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millrace", required=True, type=pathlib.Path)
    parser.add_argument("--families", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    passed = True
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for i, name in enumerate(options.names or RUNS if not options.families else []):
            folder = scratch / str(i)
            folder.mkdir()
            passed &= compare(options.millrace.resolve(), name, *RUNS[name], ["--model", SAMPLE / "model"], folder)
        for name, model in family_models(options.families, scratch) if options.families else []:
            if options.names and name not in options.names:
                continue
            folder = scratch / name
            folder.mkdir()
            try:
                passed &= compare(options.millrace.resolve(), name, FULL, "fp32", model, folder)
            except SystemExit as refused:  # a family that is refused says so
                print(f"{name:32} ---- {str(refused).strip().splitlines()[-1][:160]}", flush=True)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
