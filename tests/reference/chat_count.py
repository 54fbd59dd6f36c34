"""Conversations as transformers writes and masks them, against ours, for a folder of chat templates.

    chat_count.py FOLDER_OF_JINJA_FILES PROGRAM > report.md

PROGRAM is `chat_tokens` (ninja chat_tokens). Each template gets a byte-level tokenizer whose special tokens are the
marks that stand in it, half of the templates with end tokens that take white space along (rstrip). Compared are text,
ids and trained tokens of 24 conversations. Trained are: where a template marks them with {% generation %}, what
transformers' assistant mask says; elsewhere every word of the assistant once, none of anybody else, and no word of
the template but marks. Needs transformers (5.23 was used), jinja2 and tokenizers.
"""

import collections
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers.utils import chat_template_utils

transformers.logging.set_verbosity_error()


class FixedDay(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26)


chat_template_utils.datetime = FixedDay

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "toolname",
            "description": "tooltext",
            "parameters": {"type": "object", "properties": {"arg": {"type": "string", "description": "argtext"}}},
        },
    }
]


def call(text="", value="argvalue"):
    function = {"name": "toolname", "arguments": {"arg": value}}
    return {"role": "assistant", "content": text, "tool_calls": [{"id": "call00001", "type": "function", "function": function}]}


def m(role, content, **more):
    return {"role": role, "content": content, **more}


RESULT = m("tool", "toolresult", tool_call_id="call00001", name="toolname")
PARTS = [{"type": "text", "text": "usertwo one"}, {"type": "text", "text": " usertwo two"}]
ONE = [m("user", "userone"), m("assistant", "answerone")]
TWO = ONE + [m("user", "usertwo"), m("assistant", "answertwo")]
CONVERSATIONS = {
    "one turn": ONE,
    "two turns": TWO,
    "three turns": TWO + [m("user", "userthree"), m("assistant", "answerthree")],
    "system": [m("system", "systemone")] + ONE,
    "system, two turns": [m("system", "systemone")] + TWO,
    "late system": ONE + [m("system", "systemtwo")] + TWO[2:],
    "assistant first": [m("assistant", "answerzero")] + ONE,
    "a question left open": TWO + [m("user", "userthree")],
    "two questions": [m("user", "userzero")] + ONE,
    "two answers": ONE + [m("assistant", "answertwo")],
    "white space": [m("user", " userone \n"), m("assistant", "\n answerone  \n\n")],
    "lines": [m("user", "userone\n\nusertwo"), m("assistant", "answerone\n\nanswertwo.\n")],
    "marks in content": [m("user", "<|im_end|></s>userone"), m("assistant", "answerone<|im_end|>")],
    "empty answer": [m("user", "userone"), m("assistant", "")] + TWO[2:],
    "parts": ONE + [m("user", PARTS), m("assistant", [{"type": "text", "text": "answertwo"}])],
    "letters": [m("user", "userone 日本語 🙂"), m("assistant", "answerone é 🙂")],
    "reasoning": [m("user", "userone"), m("assistant", "answerone", reasoning_content="reasonone")],
    "reasoning, two turns": [
        m("user", "userone"),
        m("assistant", "answerone", reasoning_content="reasonone"),
        m("user", "usertwo"),
        m("assistant", "answertwo", reasoning_content="reasontwo"),
    ],
    "thought in content": [m("user", "userone"), m("assistant", "<think>\nreasonone\n</think>\n\nanswerone")],
    "tools, no call": (ONE, TOOLS),
    "call": ([m("user", "userone"), call(), RESULT, m("assistant", "answertwo")], TOOLS),
    "call and text": ([m("user", "userone"), call("answerone"), RESULT, m("assistant", "answertwo")], TOOLS),
    "call without list": [m("user", "userone"), call(), RESULT, m("assistant", "answertwo")],
    "call at the end": ([m("user", "userone"), call()], TOOLS),
}
OTHERS = re.compile(r"user(one|two|three|zero)|system(one|two)|toolresult|tooltext|argtext")
OURS = re.compile(r"answer(zero|one|two|three)|reason(one|two)|argvalue")
HEADERS = re.compile(r"\b(assistant|user|model|system|Assistant|User|INST|Response|Instruction)\b")
MARK = re.compile(r"<[|｜/]?[^<>\s'\"{}%]{1,40}>|\[/?[A-Z_]{2,24}\]")


ENDS = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|END_OF_TURN_TOKEN|>", "<step>", "<|EOT|>", "<|return|>")


def rows():
    for name, given in CONVERSATIONS.items():
        messages, tools = given if isinstance(given, tuple) else (given, None)
        yield name, {"messages": messages, **({"tools": tools} if tools else {})}


def make_model(folder, source, greedy):
    marks = sorted({t for t in MARK.findall(source) if "\\" not in t} | {"<s>", "</s>"})
    ends = [t for t in marks if re.search(r"end|eot|eos|/s>|EOT", t) and "think" not in t and "tool" not in t]
    end = next((t for t in ENDS if t in marks), "</s>")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, rstrip=greedy and t in ends, special=True, normalized=False) for t in marks])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": end, "pad_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "chat_template.jinja").write_text(source, encoding="utf-8")


def render(tokenizer, row, count=None):
    messages = row["messages"] if count is None else row["messages"][:count]
    return tokenizer.apply_chat_template(messages, tools=row.get("tools"), tokenize=False)


def in_parts(row):
    """The row with every content as a list of parts: templates that read nothing else get it so."""
    messages = [dict(x) for x in row["messages"]]
    for x in messages:
        if isinstance(x["content"], str):
            x["content"] = [{"type": "text", "text": x["content"]}]
    return {**row, "messages": messages}


def without(row, parts):
    """The row as `--map drop=` leaves it."""
    messages = [dict(x) for x in row["messages"] if not (x["role"] == "system" and "system" in parts)]
    if "tool-calls" in parts:
        called = [x.pop("tool_calls", None) is not None for x in messages]
        messages = [
            x for x, c in zip(messages, called) if x["role"] != "tool" and not (c and not str(x["content"]).strip())
        ]
    for x in messages if "reasoning" in parts else []:
        x.pop("reasoning_content", None)
        if x["role"] == "assistant" and "</think>" in x["content"]:
            x["content"] = x["content"].split("</think>")[-1].lstrip()
    return {"messages": messages, **({"tools": row["tools"]} if "tools" in row and "tools" not in parts else {})}


def words_of(row):
    return sorted(w.group() for w in OURS.finditer(json.dumps([x for x in row["messages"] if x["role"] == "assistant"])))


def judge_mask(tokenizer, source, row, ours):
    """Empty where the trained tokens are right, else what is wrong."""
    if re.search(r"\{%-?\s*generation\s*-?%\}", source):
        out = tokenizer.apply_chat_template(
            row["messages"], tools=row.get("tools"), return_dict=True, return_assistant_tokens_mask=True
        )
        return "" if out["assistant_masks"] == ours[0]["trained"] else "mask"
    trained = " ".join(tokenizer.decode([i for i, on in zip(one["ids"], one["trained"]) if on]) for one in ours)
    plain = re.sub(MARK, " ", trained)
    if OTHERS.search(plain):
        return "words of others trained"
    if HEADERS.search(plain):
        return "words of the template trained"
    if sorted(w.group() for w in OURS.finditer(plain)) != words_of(row):
        return "words of the assistant not trained once"
    return ""


def judge_twin(tokenizer, twin, row, ours):
    """The same against the marks of a training variant that writes the same text; white space apart."""
    try:
        out = tokenizer.apply_chat_template(
            row["messages"], tools=row.get("tools"), chat_template=twin, return_dict=True, return_assistant_tokens_mask=True
        )
    except Exception:
        return "no twin"
    rows = ours.get("rows", [])
    if len(rows) != 1 or rows[0]["ids"] != out["input_ids"]:
        return "another text or several rows"
    apart = [i for i, t in enumerate(out["input_ids"]) if out["assistant_masks"][i] != rows[0]["trained"][i]]
    blank = all(not tokenizer.decode([out["input_ids"][i]]).strip() for i in apart)
    return "equal" if blank else "different"


def judge(tokenizer, source, row, ours):
    dropped = ours.get("dropped", [])
    row = without(row, dropped)
    verdict = judge_plain(tokenizer, source, row, ours)
    if verdict == "different: text" and judge_plain(tokenizer, source, in_parts(row), ours) == "equal":
        verdict = "equal, content given as parts"
    return verdict + (", with --map drop=" if dropped else "")


def judge_plain(tokenizer, source, row, ours):
    try:
        whole = render(tokenizer, row)
    except Exception:
        return "an error in both" if "error" in ours else "taken here only"
    if "error" in ours:
        return "refused: " + re.sub(r"\d+", "N", re.sub(r"^/\S+: ", "", ours["error"]))[-90:]
    ours = ours["rows"]
    answers = [i + 1 for i, x in enumerate(row["messages"]) if x["role"] == "assistant"]
    texts = [whole] if len(ours) == 1 and ours[0]["text"] == whole else [render(tokenizer, row, n) for n in answers]
    if [x["text"] for x in ours] != texts:
        return "different: text"
    marked = "<|im_end|></s>" in json.dumps(row) or "<think>" in json.dumps(row)  # content is never a control token here
    for one in ours:
        if not marked and tokenizer(one["text"], add_special_tokens=False)["input_ids"] != one["ids"]:
            return "different: ids"
    wrong = "" if marked else judge_mask(tokenizer, source, row, ours)
    return "different: " + wrong if wrong else "equal"


def main():
    folder, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    counts, places = collections.Counter(), collections.defaultdict(list)
    files = sorted(folder.glob("*.jinja"))
    twin_counts = collections.Counter()
    twins = {p.stem.removesuffix("_training"): p.read_text(encoding="utf-8") for p in files if "_training" in p.stem}
    for number, path in enumerate(files):
        with tempfile.TemporaryDirectory() as name:
            model = pathlib.Path(name)
            source = path.read_text(encoding="utf-8")
            make_model(model, source, number % 2 == 1)
            data = model / "rows.jsonl"
            data.write_text("".join(json.dumps(row) + "\n" for _, row in rows()))
            printed = subprocess.run([program, name, str(data)], check=True, capture_output=True).stdout
            tokenizer = transformers.AutoTokenizer.from_pretrained(name)
            for (kind, row), line in zip(rows(), printed.decode().splitlines()):
                verdict = judge(tokenizer, source, row, json.loads(line))
                counts[verdict] += 1
                if twin := twins.get(path.stem):
                    twin_verdict = judge_twin(tokenizer, twin, row, json.loads(line))
                    twin_counts[twin_verdict] += 1
                    if twin_verdict == "different":
                        places["training variant differs"].append(f"{path.stem} / {kind}")
                places[verdict].append(f"{path.stem} / {kind}")
    print(f"{len(files)} templates, {len(CONVERSATIONS)} conversations\n\n| result | conversations |\n|---|---|")
    for verdict, count in counts.most_common():
        print(f"| {verdict} | {count} |")
    print("\n| trained tokens against training variants | conversations |\n|---|---|")
    for verdict, count in twin_counts.most_common():
        print(f"| {verdict} | {count} |")
    for verdict in places:
        if not verdict.startswith(("equal", "an error")):
            print(f"\n{verdict}:")
            for place in places[verdict]:
                print(f"  {place}")


if __name__ == "__main__":
    main()
