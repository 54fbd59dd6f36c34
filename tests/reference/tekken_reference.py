"""Ids of mistral-common for tekken.json: goldens for tests/core/tokenizer, and a comparison.

    tekken_reference.py goldens                     writes tests/core/data/goldens/bpe_tekken.json
    tekken_reference.py compare MILLRACE [--count N] [--seed N]

The published files lie in mistral-common's wheel. The golden holds the first ranks of one, which is
a tokenizer of its own: tokens merge by rank alone. Made with mistral-common 1.13.1, tiktoken 0.14.
"""

import argparse
import base64
import json
import pathlib
import random
import sys
import tempfile

import bpe_reference as bpe
import mistral_common
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

PUBLISHED = pathlib.Path(mistral_common.__file__).parent / "data"
TOKENS = 1500
CONTROLS = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[THINK]", "[/THINK]"]
EDGES = [
    "CamelCaseHTTPServer2Go iPhone XMLHttpRequest McDonald ÉCOLEFrançaise ǅungla ΑΒΓδ",
    "1234567890 3.14159 ١٢٣ 一二三 Ⅳ½² x1y22z333",
    "https://example.org/a/b//c/\n/x\r\n//",
    "don't DON'T we'll I'M",
    "</s>[INST] hi [/INST]<s>[THINK]x[/THINK]<SPECIAL_20><unk>",
    "a" * 300 + "é" * 150 + " " * 130 + "=" * 200,
    "aa" * 3 + " aaa aaaa aaaaa " + "ab" * 120,
    "\n" * 40 + "\t" * 40 + " \n" * 30,
    "e\u0301E\u0301 \u0915\u093e\u0301A \u02b0a \u0e01\u0e34",
    "\ud7ff\ue000\ufffd\U0010ffff\U0001f469\u200d\U0001f469",
]


def reduced():
    published = json.loads((PUBLISHED / "tekken_240911.json").read_text())
    listed = [{"rank": i, "token_str": t, "is_control": True} for i, t in enumerate(CONTROLS)]
    config = published["config"] | {
        "num_vocab_tokens": TOKENS,
        "default_vocab_size": TOKENS + 12,
        "default_num_special_tokens": 12,
        "version": "v11",
    }
    return {"config": config, "special_tokens": listed, "vocab": published["vocab"][:TOKENS]}


def shuffled():
    """Tokens of two letters in an order that no training would give, so words count as a whole."""
    rng = random.Random(3)
    tokens = set()
    while len(tokens) < 60:
        tokens.add("".join(rng.choice("ab") for _ in range(rng.randint(2, 7))))
    tokens = [bytes([i]) for i in range(256)] + rng.sample([t.encode() for t in sorted(tokens)], 60)
    content = reduced()
    fields = [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for i, t in enumerate(tokens)]
    content["config"] |= {"num_vocab_tokens": 316, "default_vocab_size": 328}
    lengths = [rng.randint(2, 12) for _ in range(40)] + [rng.randint(13, 120) for _ in range(20)]
    texts = [t.decode() for t in tokens[256:]] + ["".join(rng.choice("ab") for _ in range(n)) for n in lengths]
    return content | {"vocab": fields}, texts


def opened(content):
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "tekken.json"
        path.write_text(json.dumps(content))
        return Tekkenizer.from_file(path)


def ids_of(tokenizer, text):
    return tokenizer.encode(text, bos=False, eos=False)


def golden(content, texts):
    tokenizer = opened(content)
    ids = [ids_of(tokenizer, text) for text in texts]
    return {
        "config": content["config"],
        "special_tokens": content["special_tokens"],
        "vocab": " ".join(token["token_bytes"] for token in content["vocab"]),
        "texts": texts,
        "ids": ids,
        "decoded": [tokenizer.decode([1, *i, 2]) for i in ids],
    }


def write_goldens():
    out = {"published": golden(reduced(), bpe.texts() + EDGES), "shuffled": golden(*shuffled())}
    (bpe.GOLDENS / "bpe_tekken.json").write_text(json.dumps(out, ensure_ascii=True) + "\n")
    print({name: sum(map(len, one["ids"])) for name, one in out.items()}, "ids")


def compare(program, count, seed):
    failed = 0
    rng = random.Random(seed)
    strings = bpe.varied(rng, count, newlines=False)
    joined = ["".join(bpe.varied(rng, 200, newlines=True)) for _ in range(max(1, count // 10000))]
    joined += EDGES + bpe.texts()[1:]
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        contents = {"reduced": reduced()}
        for file in sorted(PUBLISHED.glob("tekken_*.json")):
            contents[file.stem] = json.loads(file.read_text())
        bpe.ids_of = ids_of
        for title, content in contents.items():
            folder = scratch / title
            folder.mkdir()
            (folder / "tekken.json").write_text(json.dumps(content))
            tokenizer = Tekkenizer.from_file(folder / "tekken.json")
            for how, texts in [(bpe.compare_lines, strings), (bpe.compare_whole, joined)]:
                seen, misses = how(program, folder, tokenizer, texts, scratch)
                print(f"{title}: {seen - misses} of {seen} texts have equal ids")
                failed += misses
    sys.exit(1 if failed else 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["goldens", "compare"])
    parser.add_argument("program", nargs="?")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.what == "goldens":
        write_goldens()
    else:
        compare(options.program, options.count, options.seed)


main()
