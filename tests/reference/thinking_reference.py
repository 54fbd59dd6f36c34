"""Trained spans of conversations with thoughts, by transformers and by ours, for chat templates.

    thinking_reference.py PROGRAM TEMPLATE.jinja...

PROGRAM is `chat_tokens` (ninja chat_tokens). An answer is trained from the end of the prompt that transformers writes
for it (apply_chat_template with add_generation_prompt, as it is, else with enable_thinking true or false) to its end
token, in the text that transformers writes at its time. Thoughts come as a field, as a part and within the text.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import chat_count
from chat_count import m
from transformers import AutoTokenizer


def answer(content, thought=None):
    return m("assistant", content) if thought is None else m("assistant", content, reasoning_content=thought, thinking=thought)


def inner(thought, content):
    return m("assistant", f"<think>\n{thought}\n</think>\n\n{content}")


def part(thought, content):
    return m("assistant", [{"type": "thinking", "thinking": thought}, {"type": "text", "text": content}])


ONE, TWO = m("user", "userone"), m("user", "usertwo")
CONVERSATIONS = {
    "no thought": [ONE, answer("answerone")],
    "no thoughts": [ONE, answer("answerone"), TWO, answer("answertwo")],
    "thought": [ONE, answer("answerone", "reasonone")],
    "thoughts": [ONE, answer("answerone", "reasonone"), TWO, answer("answertwo", "reasontwo")],
    "first thinks": [ONE, answer("answerone", "reasonone"), TWO, answer("answertwo")],
    "second thinks": [ONE, answer("answerone"), TWO, answer("answertwo", "reasontwo")],
    "in the text": [ONE, inner("reasonone", "answerone")],
    "as a part": [ONE, part("reasonone", "answerone")],
}


def forms(messages):
    """The conversation with its thoughts in each of the forms that templates read."""
    yield messages
    plain = []
    for x in messages:
        text, thought = x["content"], x.get("thinking")
        if isinstance(text, list):
            thought, text = text[0]["thinking"], text[1]["text"]
        elif "</think>" in text:
            thought, text = text.removeprefix("<think>\n").split("\n</think>\n\n")
        plain.append((x["role"], text, thought))
    yield [answer(text, thought) if role == "assistant" else m(role, text) for role, text, thought in plain]
    yield [part(thought, text) if thought else m(role, text) for role, text, thought in plain]


def spans(tokenizer, messages):
    out = []
    for i, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        whole = tokenizer.apply_chat_template(messages[: i + 1], tokenize=False)
        for mode in [{}, {"enable_thinking": True}, {"enable_thinking": False}]:
            asked = tokenizer.apply_chat_template(messages[:i], tokenize=False, add_generation_prompt=True, **mode)
            if whole.startswith(asked):
                out.append(whole[len(asked) :].rstrip())
                break
        else:
            return None
    return out


def wanted(tokenizer, messages):
    out = []
    for form in forms(messages):
        try:
            found = spans(tokenizer, form)
        except Exception:  # the template refuses this form
            continue
        if found is not None and all(x.get("thinking") is None or "reason" in "".join(found) for x in messages):
            out.append(found)
    return out


def trained(tokenizer, rows):
    out = []
    for row in rows:
        before = 0
        for token, flag in zip(row["ids"], row["trained"]):
            if flag and not before:
                out.append([])
            if flag:
                out[-1].append(token)
            before = flag
    return [tokenizer.decode(ids, skip_special_tokens=False) for ids in out]


def judge(tokenizer, messages, line):
    if "error" in line:
        return "refused", line["error"][:100]
    ours = trained(tokenizer, line["rows"])
    if "dropped" in line:
        return "thought left out by the template, refused", ""
    theirs = wanted(tokenizer, messages)
    if ours in theirs:
        return "equal", ""
    return ("different", f"{ours} against {theirs}") if theirs else ("no prompt in transformers", str(ours))


def main():
    program, *files = sys.argv[1:]
    totals = {}
    for file in map(pathlib.Path, files):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            chat_count.make_model(folder, file.read_text(), False)
            tokenizer = AutoTokenizer.from_pretrained(folder)
            rows = folder / "rows.jsonl"
            rows.write_text("".join(json.dumps({"messages": c}) + "\n" for c in CONVERSATIONS.values()))
            done = subprocess.run([program, folder, rows], capture_output=True, text=True, check=True)
            print(file.name)
            for (title, messages), line in zip(CONVERSATIONS.items(), done.stdout.splitlines()):
                verdict, why = judge(tokenizer, messages, json.loads(line))
                totals[verdict] = totals.get(verdict, 0) + 1
                print(f"  {title}: {verdict} {why}")
    print(totals)
    sys.exit(1 if totals.get("different") else 0)


main()
