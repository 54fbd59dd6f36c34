"""Conversations as transformers tokenizes them, against `millrace inspect`: how many tokens, how many trained.

    chat_reference.py MODEL_FOLDER MILLRACE FILE [FILE...]

MODEL_FOLDER has a tokenizer and a chat template; FILE is JSONL with `messages` or JSON in ShareGPT's form. A turn
of the assistant is trained from behind the generation prompt to its end token; what the template writes behind
that (a line feed) is not. Needs transformers (5.23 was used).
"""

import json
import subprocess
import sys

from transformers import AutoTokenizer

ROLES = {"human": "user", "gpt": "assistant", "system": "system"}


def text_of(content):
    if isinstance(content, str):
        return content
    return "".join(part.get("text", part.get("value", "")) for part in content)


def conversations(path):
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file] if path.endswith(".jsonl") else json.load(file)
    for row in rows:
        if "messages" in row:
            yield [{"role": m["role"], "content": text_of(m["content"])} for m in row["messages"]]
        else:
            yield [{"role": ROLES[m["from"]], "content": m["value"]} for m in row["conversations"]]


def counts(tokenizer, path):
    def length(messages, **options):
        text = tokenizer.apply_chat_template(messages, tokenize=False, **options)
        return len(tokenizer(text, add_special_tokens=False)["input_ids"]), text

    tokens = trained = 0
    for messages in conversations(path):
        tokens += length(messages)[0]
        for i, message in enumerate(messages):
            if message["role"] == "assistant":
                asked = length(messages[:i], add_generation_prompt=True)[0]
                answered, text = length(messages[: i + 1])
                trained += answered - asked - (1 if text.endswith("\n") else 0)
    return tokens, trained


def main():
    folder, program, *files = sys.argv[1:]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    same = True
    for path in files:
        theirs = counts(tokenizer, path)
        printed = subprocess.run(
            [program, "inspect", path, "--model", folder], check=True, capture_output=True, text=True
        ).stdout
        facts = json.loads(printed)
        ours = facts["tokens"], facts["trained_tokens"]
        same = same and ours == theirs
        print(f"{path}: tokens and trained {ours}, transformers {theirs}")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
