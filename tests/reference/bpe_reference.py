"""Ids of the `tokenizers` package: goldens for tests/core/data, and a comparison with the program.

    bpe_reference.py goldens SHARED_DATA     writes tests/core/data/goldens/bpe_*.json
    bpe_reference.py compare SHARED_DATA MILLRACE [--count N] [--seed N]

Special tokens are encoded as text on both sides (encode_special_tokens): the program never lets a text
become one. Made with tokenizers 0.23.
"""

import argparse
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, trainers

GOLDENS = pathlib.Path(__file__).parent.parent / "core/data/goldens"
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
# Mistral's since its tekken.json: words are cut where capitals begin, and digits stand alone.
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DATASETS = [
    "tinyshakespeare.txt",
    "tinystories_197k.txt",
    "v1_sft_demo.jsonl",
    "japanese/jcommonsenseqa_valid.json",
    "japanese/jmmlu_high_school_mathematics.csv",
    "japanese/real_persona_chat/00001.json",
]


def hashed(ids):
    value = 0xCBF29CE484222325
    for byte in struct.pack(f"<{len(ids)}i", *ids):
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def hashed_text(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


# The shared tokenizers, as transformers opens their folders.


def open_shared(folder):
    if (folder / "tokenizer.json").exists():
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    else:
        vocab, merges = str(folder / "vocab.json"), str(folder / "merges.txt")
        tokenizer = Tokenizer(models.BPE.from_file(vocab, merges))
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(QWEN2), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        tokenizer.decoder = decoders.ByteLevel()
    config = folder / "tokenizer_config.json"
    if config.exists():
        tokens = json.loads(config.read_text())["added_tokens_decoder"]
        known = tokenizer.get_added_tokens_decoder()
        for key in sorted(tokens, key=int):
            if int(key) not in known:
                add(tokenizer, tokens[key], int(key))
    tokenizer.encode_special_tokens = True
    return tokenizer


def add(tokenizer, fields, wanted=None):
    token = AddedToken(**{k: v for k, v in fields.items() if k != "id"})
    if fields.get("special"):
        tokenizer.add_special_tokens([token])
    else:
        tokenizer.add_tokens([token])
    assert wanted is None or tokenizer.token_to_id(fields["content"]) == wanted, fields


def ids_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


# Variants: every stage of the format over two small models.


def sample():
    lines = []
    for n in range(400):
        lines.append(f"The miller counts {n} sacks of flour and {n * 7} turns of the wheel.")
        lines.append(f"  def turn(x_{n}): return x_{n} + {n} # it's the mill's wheel, don't stop")
        lines.append(f"水車は{n}回まわり、粉屋は{n}袋を数える。\tÄpfel, café, naïve")
    return lines


def byte_model():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(sample(), trainer)
    assert tokenizer.get_vocab_size() == 600
    return json.loads(tokenizer.to_str())["model"]


def char_model():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    pieces = ["<unk>"] + [f"<0x{b:02X}>" for b in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=pieces, show_progress=False)
    tokenizer.train_from_iterator(sample(), trainer)
    assert tokenizer.get_vocab_size() == 700
    return json.loads(tokenizer.to_str())["model"]


def split(pattern, behavior, invert=False):
    kind = "Regex" if pattern[:1] in "\\[(" or "|" in pattern else "String"
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def byte_level(**changes):
    base = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return base | changes


def metaspace(scheme, parted):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": parted}


def sequence(*parts, kind="pretokenizers"):
    return {"type": "Sequence", kind: list(parts)}


def token(number, content, **flags):
    base = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": number, "content": content} | base | {"special": False} | flags


def spm_decoder():
    replace = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    return sequence(replace, {"type": "ByteFallback"}, {"type": "Fuse"}, strip, kind="decoders")


def byte_variants():
    no_regex = byte_level(use_regex=False)
    yield "gpt2", {"pre_tokenizer": byte_level()}
    yield "prefix", {"pre_tokenizer": byte_level(add_prefix_space=True)}
    yield "whole", {"pre_tokenizer": no_regex}
    for name, pattern in [("llama3", LLAMA3), ("qwen2", QWEN2), ("tekken", TEKKEN)]:
        yield name, {"pre_tokenizer": sequence(split(pattern, "Isolated"), no_regex)}
    yield "ignore_merges", {"pre_tokenizer": byte_level(), "model": {"ignore_merges": True}}
    for form in ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"]:
        yield form, {"normalizer": {"type": form}, "pre_tokenizer": byte_level()}
    for left, right in [(True, False), (False, True), (True, True)]:
        strip = {"type": "Strip", "strip_left": left, "strip_right": right}
        yield f"strip {left} {right}", {"normalizer": strip, "pre_tokenizer": byte_level()}
    replace = {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}
    steps = sequence({"type": "NFD"}, {"type": "StripAccents"}, replace, kind="normalizers")
    yield "sequence", {"normalizer": steps, "pre_tokenizer": byte_level()}
    for behavior in ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]:
        for invert in [False, True]:
            stage = split(r"[\s\d]", behavior, invert)
            yield f"{behavior} {invert}", {"pre_tokenizer": sequence(stage, no_regex)}
    for individual in [False, True]:
        stage = {"type": "Digits", "individual_digits": individual}
        yield f"digits {individual}", {"pre_tokenizer": sequence(stage, byte_level())}
    for behavior in ["Isolated", "MergedWithPrevious"]:
        stage = {"type": "Punctuation", "behavior": behavior}
        yield f"punctuation {behavior}", {"pre_tokenizer": sequence(stage, no_regex)}
    for kind in ["Whitespace", "WhitespaceSplit"]:
        yield kind, {"pre_tokenizer": sequence({"type": kind}, no_regex)}
    for name, stages in [
        ("falcon", [byte_level(), {"type": "Digits", "individual_digits": False}, split(r"[0-9][0-9][0-9]", "Isolated")]),
        ("letters", [byte_level(add_prefix_space=True), split(r"Ġ|[½à-ö]", "MergedWithNext")]),
        ("bloom", [split(r" ?[^(\s|[.,!?…。，、।۔،])]+", "Isolated"), no_regex]),
        ("and", [split(r"[\p{L}\p{M}&&[^\p{Han}]]+|[^a-z[\d\s]&&[^水-粉]]|[[x]-z]", "Isolated"), no_regex]),
        ("first bracket", [split(r"[](]+|[^]a-f]", "MergedWithPrevious"), no_regex]),
        ("boundaries", [split(r"\b|\B(?=s)", "Isolated"), no_regex]),
        ("empty before", [split(r"(?=[A-Z])|(?<=\d)(?=(?:\d{3})+(?!\d))", "Isolated"), no_regex]),
        ("empty often", [split(r"\d*", "MergedWithPrevious"), no_regex]),
        ("empty, next", [split(r"(?=\s)|x*", "MergedWithNext", True), no_regex]),
    ]:
        yield name, {"pre_tokenizer": sequence(*stages)}
    between = {"type": "Replace", "pattern": {"Regex": r"(?<=l)(?=e)"}, "content": "~"}
    yield "between", {"normalizer": between, "pre_tokenizer": byte_level()}
    added = [
        token(600, "<|end|>", special=True),
        token(601, "<think>"),
        token(602, "   ", normalized=True),
        token(603, "mill", single_word=True),
        token(604, "[MASK]", lstrip=True, special=True),
        token(605, "[LEFT]", lstrip=True),
        token(606, "[RIGHT]", rstrip=True),
        token(607, "don't", normalized=True),
        token(608, "<|end|><think>"),
        token(609, "\n\n"),
    ]
    yield "added", {"pre_tokenizer": byte_level(), "added_tokens": added}
    lower = {"type": "Lowercase"}
    yield "added, lowercase", {
        "normalizer": lower,
        "pre_tokenizer": byte_level(),
        "added_tokens": added,
    }


def char_variants():
    fall = {"byte_fallback": True, "fuse_unk": True}
    for scheme in ["always", "first", "never"]:
        for parted in [False, True]:
            stage = {"pre_tokenizer": metaspace(scheme, parted), "decoder": spm_decoder()}
            yield f"metaspace {scheme} {parted}", stage | {"model": fall}
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    llama2 = sequence({"type": "Prepend", "prepend": "▁"}, space, kind="normalizers")
    yield "llama2", {"normalizer": llama2, "model": fall, "decoder": spm_decoder()}
    added = [token(0, "<unk>", special=True), token(700, "<tool>"), token(701, "\n\n")]
    yield "llama2, added", {
        "normalizer": llama2,
        "model": fall,
        "decoder": spm_decoder(),
        "added_tokens": added,
    }
    yield "gemma", {
        "normalizer": space,
        "pre_tokenizer": split(" ", "MergedWithPrevious"),
        "model": fall,
        "decoder": spm_decoder(),
    }
    for fuse in [False, True]:
        unknown = {"byte_fallback": False, "fuse_unk": fuse}
        yield f"unknown, fuse {fuse}", {"normalizer": llama2, "model": unknown, "decoder": spm_decoder()}
    nothing = {"byte_fallback": False, "unk_token": None}
    yield "unknown dropped", {"normalizer": llama2, "model": nothing, "decoder": spm_decoder()}


def assemble(base, variant):
    model = base | variant.get("model", {})
    fields = {k: None for k in ["truncation", "padding", "normalizer", "pre_tokenizer"]}
    fields |= {"version": "1.0", "post_processor": None, "decoder": byte_level()}
    fields |= {k: v for k, v in variant.items() if k != "model"}
    fields["added_tokens"] = variant.get("added_tokens", [])
    return fields | {"model": model}


def texts():
    fixed = [
        "",
        " ",
        "   ",
        "The miller's wheel; it's DON'T we'll I'M 'S",
        "  The  miller   counts\n\n\n 12345 sacks\t\tof flour \r\n ",
        "水車は3回まわり、粉屋は１２袋を数える。",
        "naïve cafe\u0301 CAFÉ caf\u00e9 Å \u212b \u1e9b\u0323 q\u0307\u0323 İstanbul ΑΣ",
        "한국어 \u1112\u1161\u11ab ｶﾞｷﾞ ﾎﾟ ① ﬁ Ⅳ ㍿ ½",
        "👩‍👩‍👧‍👦🇯🇵👍🏽 e\u0301\u0302\u0303 \u0301x",
        "<|end|> <|end|><think>  [MASK] [LEFT]  [RIGHT]  mill mills mill. [LEFT]x",
        "<unk><tool> <s></s><0x0A> \n\n x \n\n\n",
        "\u00a0\u2003x\u3000y\u200bz\u180ew\u0085v\u2028u",
        "\x00\x01\x7f\ufffd\ufeffx",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "(the wheel)(the wheel)(the wheel)(the wheel) x_17 = x_17 + 170 # ok",
        "▁x ▁▁ y▁ \u0915\u093e A\u20dd",
        "[RIGHT]\n\n\n x[RIGHT]   y [RIGHT]  <think>[RIGHT] \n\n\r[LEFT]\n\n [LEFT]",
        "\u32ff \u337e e\u1acc\u0316\u0301 \u0898\u0315b \U00011938 \ua7f2 1234567 CamelCaseHTTP2Go",
        "(a)]b[c]! [x-z] \u0928\u092e\u0938\u094d\u0924\u0947 \u6c34a\u7c89b\u888b miles aless",
        "a-b_c.d,e;f:g!h?i\"j'k(l)m[n]o{p}q/r\\s|t~u^v`w@x#y$z%0&1*2+3=4<5>6",
    ]
    return fixed + varied(random.Random(5), 43, newlines=True)


# Varied strings.

CODE = ["def f(x):\n    return x**2", "for (int i = 0; i < 10; ++i) {", "}\n\n", "<div class='a'>"]
CODE += ['{"a": [1, 2.5e-3, null]}', "SELECT * FROM t WHERE x='y';", "\\frac{1}{2}", "0xFFEE"]
SCRIPTS = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF)]
SCRIPTS += [(0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x2000, 0x206F)]
SCRIPTS += [(0x20A0, 0x21FF), (0x2460, 0x24FF), (0x3040, 0x30FF), (0x4E00, 0x9FFF)]
SCRIPTS += [(0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFE00, 0xFFEF), (0x1F300, 0x1F6FF)]
WORDS = "The miller's wheel don't we'll Won't x_1 HTTPServer 2024-01-31 3.14159 naïve 1,000,000"
WORDS = (WORDS + " 水車 粉屋 はい です。 ありがとう 東京都 über straße Привет мир שלום مرحبا").split(" ")
SPACES = [" ", "  ", "    ", "\t", "\r", " \t ", "\u00a0", "\u3000", "\u2009", "\v", "\f", "        "]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<s>", "</s>", "[INST]", "<tool_call>", "<think>"]


def piece(rng, newlines):
    kind = rng.randrange(9)
    if kind < 3:
        return rng.choice(WORDS) + rng.choice([" ", " ", "", ", ", "!"])
    if kind == 3:
        space = SPACES + (["\n", "\n\n", "\r\n", " \n"] if newlines else [])
        return "".join(rng.choice(space) for _ in range(rng.randint(1, 4)))
    if kind == 4:
        low, high = rng.choice(SCRIPTS)
        return "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 12)))
    if kind == 5:
        return str(rng.randrange(10 ** rng.randint(1, 12)))
    if kind == 6:
        return rng.choice(CODE + SPECIALS)
    if kind == 7:
        return rng.choice("abcXYZ.!-_ \u3042") * rng.randint(1, 60)
    codes = [rng.choice([rng.randint(0, 0x2FF), rng.randint(0, 0xFFFF), rng.randint(0, 0x1FFFF)])]
    codes += [rng.randint(0, 31)] if rng.random() < 0.3 else []
    return "".join(chr(c) for c in codes if not 0xD800 <= c < 0xE000)


def varied(rng, count, newlines):
    out = []
    for _ in range(count):
        text = "".join(piece(rng, newlines) for _ in range(rng.randint(1, 14)))
        out.append(text if newlines else text.replace("\n", " "))
    return out


# Goldens.


def write_variants():
    bases = {"byte": byte_model(), "char": char_model()}
    listed = []
    for name, variants in [("byte", byte_variants()), ("char", char_variants())]:
        for title, variant in variants:
            tokenizer = Tokenizer.from_str(json.dumps(assemble(bases[name], variant)))
            tokenizer.encode_special_tokens = True
            ids = [ids_of(tokenizer, text) for text in texts()]
            decoded = [tokenizer.decode(i) for i in ids]
            golden = {"name": title, "base": name, "fields": variant}
            golden["ids"] = " ".join(f"{hashed(i) % 2**32:08x}" for i in ids)
            golden["decoded"] = " ".join(f"{hashed_text(t) % 2**32:08x}" for t in decoded)
            listed.append(golden)
    small = {}
    for name, base in bases.items():
        small[name] = {k: base[k] for k in ["type", "unk_token", "vocab", "merges"]}
    out = {"texts": texts(), "models": small, "variants": listed}
    (GOLDENS / "bpe_variants.json").write_text(json.dumps(out, ensure_ascii=True) + "\n")
    print(len(listed), "variants of", len(texts()), "texts")


def naughty(data):
    return json.loads((data / "malformed/blns/blns.json").read_text())


def write_shared(data):
    out = {}
    for folder in sorted((data / "tokenizers/bpe").iterdir()):
        tokenizer = open_shared(folder)
        golden = {"files": {}, "in_full": {}}
        for name in DATASETS:
            ids = ids_of(tokenizer, (data / "datasets" / name).read_bytes().decode())
            golden["files"][name] = [len(ids), f"{hashed(ids):016x}"]
        golden["naughty"] = [f"{hashed(ids_of(tokenizer, t)) % 2**32:08x}" for t in naughty(data)]
        golden["naughty"] = " ".join(golden["naughty"])
        for text in [texts()[3], texts()[4], texts()[5], texts()[9]]:
            golden["in_full"][text] = ids_of(tokenizer, text)
        golden["vocabulary"] = tokenizer.get_vocab_size()
        out[folder.name] = golden
    (GOLDENS / "bpe_shared.json").write_text(json.dumps(out, ensure_ascii=True, indent=1) + "\n")
    print(", ".join(out))


# The comparison.


def run(program, folder, path, lines):
    command = [program, "tokenize", "--model", folder, "--text-file", path, "--no-special"]
    done = subprocess.run(command + (["--lines"] if lines else []), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{folder}: {done.stdout}{done.stderr}")
    return [json.loads(line)["ids"] for line in done.stdout.splitlines()]


def compare_lines(program, folder, tokenizer, strings, scratch):
    path = scratch / "lines.txt"
    strings = [s for s in strings if s and "\n" not in s]
    path.write_bytes("\n".join(strings).encode())
    ours = run(program, folder, path, lines=True)
    assert len(ours) == len(strings), (len(ours), len(strings))
    misses = 0
    for text, got in zip(strings, ours):
        wanted = ids_of(tokenizer, text)
        if got != wanted:
            misses += 1
            if misses <= 3:
                print("  ", ascii(text), "\n    ours ", got, "\n    theirs", wanted)
    return len(strings), misses


def compare_whole(program, folder, tokenizer, texts_, scratch):
    misses = 0
    for text in texts_:
        path = scratch / "whole.txt"
        path.write_bytes(text.encode())
        if run(program, folder, path, lines=False)[0] != ids_of(tokenizer, text):
            misses += 1
            print("   a text with line feeds:", ascii(text[:200]))
    return len(texts_), misses


def compare(data, program, count, seed):
    failed = 0
    rng = random.Random(seed)
    strings = varied(rng, count, newlines=False)
    joined = ["".join(varied(rng, 200, newlines=True)) for _ in range(max(1, count // 20000))]
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        subjects = [(f, open_shared(f)) for f in sorted((data / "tokenizers/bpe").iterdir())]
        for base, variants in [(byte_model(), byte_variants()), (char_model(), char_variants())]:
            for title, variant in variants:
                folder = scratch / title.replace(" ", "_")
                folder.mkdir(exist_ok=True)
                content = json.dumps(assemble(base, variant))
                (folder / "tokenizer.json").write_text(content)
                tokenizer = Tokenizer.from_str(content)
                tokenizer.encode_special_tokens = True
                subjects.append((folder, tokenizer))
        for folder, tokenizer in subjects:
            some = strings if data in folder.parents else strings[: count // 20]
            lines = compare_lines(program, folder, tokenizer, some, scratch)
            whole = compare_whole(program, folder, tokenizer, joined, scratch)
            failed += lines[1] + whole[1]
            print(folder.name, "lines, misses:", *lines, "texts, misses:", *whole, flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["goldens", "compare"])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.what == "compare":
        sys.exit(1 if compare(args.data, args.program, args.count, args.seed) else 0)
    GOLDENS.mkdir(exist_ok=True)
    write_variants()
    write_shared(args.data)


if __name__ == "__main__":
    main()
