#!/usr/bin/env python3
"""Asks a model the held-out questions and counts exact answers.

    python3 score.py MILLRACE MODEL [QUESTIONS] [--show N]

MILLRACE is the program, MODEL a model folder; QUESTIONS is eval.jsonl unless given. Every question
goes through `millrace generate --greedy`; an answer counts if it is the expected text to the letter.
"""

import argparse
import json
import pathlib
import subprocess


def answer(millrace, model, question):
    command = [millrace, "generate", "--model", model, "--prompt", question + "\n", "--greedy",
               "--max-tokens", "32", "--json"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(out)["text"].strip()


def main():
    parser = argparse.ArgumentParser(description="Counts exact answers to held-out questions.")
    parser.add_argument("millrace")
    parser.add_argument("model")
    default = pathlib.Path(__file__).resolve().parent / "eval.jsonl"
    parser.add_argument("questions", nargs="?", default=default)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N answers")
    options = parser.parse_args()
    with open(options.questions, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    right = 0
    for i, row in enumerate(rows):
        said = answer(options.millrace, options.model, row["question"])
        right += said == row["answer"]
        if i < options.show:
            mark = "right" if said == row["answer"] else f"wrong, expected: {row['answer']}"
            print(f"{row['question']}\n    {said}    [{mark}]")
    print(f"{right} of {len(rows)} right")


if __name__ == "__main__":
    main()
