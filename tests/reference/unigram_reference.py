"""Ids of the `tokenizers` package for Unigram: goldens for tests/core/data, and a comparison.

    unigram_reference.py goldens                                     writes goldens/unigram_variants.json
    unigram_reference.py compare SHARED_DATA MILLRACE [--count N] [--seed N]

`compare` also trains larger vocabularies on the shared texts and takes the normalisation tables of the
shared SentencePiece models and of SentencePiece's own rules. Texts that spell a control token are left
out: upstream finds such pieces in any text, the program in none. Made with tokenizers 0.23 and
sentencepiece 0.2.
"""

import argparse
import base64
import io
import json
import pathlib
import random
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import bpe_reference as shared

CONTROLS = ["<s>", "</s>", "<pad>", "<unk>"]
# A few rules of each kind: one to one, one to many, many to one, dropped, of clusters.
RULES = {
    "\uff21": "A",
    "\uff41": "a",
    "\u3000": " ",
    "\u00a0": " ",
    "\t": " ",
    "\n": " ",
    "\r": " ",
    "\u200b": "",
    "\u00ad": "",
    "\u0001": "",
    "\u00bd": "1\u20442",
    "\ufb01": "fi",
    "e\u0301": "\u00e9",
    "a\u0308": "\u00e4",
    "A\u030a": "\u00c5",
    "\u00c4": "A\u0308",
    "\uff76\uff9e": "\u30ac",
    "\uff76": "\u30ab",
    "\u3364": "12\u70b9",
    "\u2460": "1",
    "\u1112\u1161\u11ab": "\ud55c",
    "\u0e33": "\u0e4d\u0e32",
    "\u2026": "...",
    "``": '"',
    "q": "k",
    "qu": "kw",
}


def spm_charsmap(**settings):
    """The table that SentencePiece compiles: of a named rule, or of RULES."""
    out = io.BytesIO()
    words = [f"{line} {line}" for line in shared.sample()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words),
        model_writer=out,
        vocab_size=300,
        hard_vocab_limit=False,
        minloglevel=2,
        **settings,
    )
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(out.getvalue())
    return base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode()


def own_charsmap():
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "rules.tsv"
        code = lambda text: " ".join(f"{ord(c):X}" for c in text)
        path.write_text("".join(f"{code(k)}\t{code(v)}\n" for k, v in RULES.items()))
        return spm_charsmap(normalization_rule_tsv=str(path))


def precompiled(charsmap):
    return {"type": "Precompiled", "precompiled_charsmap": charsmap}


def regex_replace(pattern, content):
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def text_replace(pattern, content):
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def train(lines, size, with_bytes):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    first = CONTROLS + ([f"<0x{b:02X}>" for b in range(256)] if with_bytes else [])
    trainer = trainers.UnigramTrainer(
        vocab_size=size, special_tokens=first, unk_token="<unk>", show_progress=False, shrinking_factor=0.75
    )
    tokenizer.train_from_iterator(lines, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    # Runs of one character, of lengths that make ties.
    rng = random.Random(11)
    known = {text for text, _ in model["vocab"]}
    runs = [c * n for c in "a!-7" for n in (2, 3, 5, 8) if c * n not in known]
    vocab = model["vocab"] + [[run, -1.3 * len(run) - rng.random()] for run in runs]
    return {"type": "Unigram", "unk_id": 3, "vocab": vocab, "byte_fallback": False}


def controls():
    return [shared.token(i, text, special=True) for i, text in enumerate(CONTROLS)]


def meta_decoder():
    return shared.metaspace("always", True)


def variants(charsmap):
    meta = shared.metaspace
    decoder = {"decoder": meta_decoder()}
    split = {"type": "WhitespaceSplit"}
    spaces = regex_replace(" {2,}", " ")
    for scheme in ["always", "first", "never"]:
        for parted in [False, True]:
            yield f"metaspace {scheme} {parted}", decoder | {"pre_tokenizer": meta(scheme, parted)}
    yield "t5", decoder | {
        "normalizer": precompiled(charsmap),
        "pre_tokenizer": shared.sequence(split, meta("always", True)),
    }
    yield "xlm-r", decoder | {
        "normalizer": shared.sequence(precompiled(charsmap), spaces, kind="normalizers"),
        "pre_tokenizer": shared.sequence(split, meta("always", True)),
    }
    forms = [text_replace("``", '"'), text_replace("''", '"'), {"type": "NFKD"}]
    forms += [{"type": "StripAccents"}, {"type": "Lowercase"}, precompiled(charsmap), spaces]
    yield "albert", decoder | {
        "normalizer": shared.sequence(*forms, kind="normalizers"),
        "pre_tokenizer": meta("always", True),
    }
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    yield "camembert", decoder | {
        "normalizer": shared.sequence(
            precompiled(charsmap), strip, regex_replace(" {2,}", "▁"), kind="normalizers"
        ),
        "pre_tokenizer": meta("always", True),
    }
    yield "nmt", decoder | {
        "normalizer": shared.sequence({"type": "Nmt"}, {"type": "NFKC"}, spaces, kind="normalizers"),
        "pre_tokenizer": meta("first", True),
    }
    space = text_replace(" ", "▁")
    fall = {"byte_fallback": True}
    for name, prefix in [("bytes", [{"type": "Prepend", "prepend": "▁"}]), ("bytes, no prefix", [])]:
        yield name, {
            "normalizer": shared.sequence(*prefix, space, kind="normalizers"),
            "decoder": shared.spm_decoder(),
            "model": fall,
        }
    added = [shared.token(516, "<think>"), shared.token(517, "\n\n"), shared.token(518, "mill", single_word=True)]
    yield "added", decoder | {
        "normalizer": precompiled(charsmap),
        "pre_tokenizer": meta("first", True),
        "added_tokens": controls() + added,
    }


def assemble(base, variant):
    fields = {"added_tokens": controls(), "decoder": meta_decoder()} | variant
    return shared.assemble(base, fields)


def is_plain(text):
    return not any(token in text for token in CONTROLS)


def cluster_texts():
    """Clusters of few bytes, of which a rule knows only a part."""
    marks = ["\u0301", "\u0308", "\u030a", "\u200d", "\u0e33", "\uff9e", "\u200b", "\u00ad", "\n", "\u0903"]
    bases = ["\uff21", "a", "e", "A", "\r", "\uff76", "\u00bd", "\u3000", "\u2460", "\u0600", "\ufb01", "\u00a9", "qu"]
    out = ["".join(base + mark + "x" for mark in marks) for base in bases]
    return out + ["".join(b + m + n for b in bases) for m in marks[:6] for n in marks[:3]]


def texts():
    runs = [c * n + t for c in "a!-7" for n in (7, 19, 26, 31, 44, 77) for t in ("", " x")]
    return [t for t in shared.texts() if is_plain(t)] + cluster_texts() + runs


def open_variant(base, variant):
    tokenizer = Tokenizer.from_str(json.dumps(assemble(base, variant)))
    tokenizer.encode_special_tokens = True
    return tokenizer


def write_variants():
    charsmap = own_charsmap()
    bases = {False: train(shared.sample(), 500, False), True: train(shared.sample(), 700, True)}
    listed = []
    for title, variant in variants(charsmap):
        base = bases["model" in variant]
        tokenizer = open_variant(base, variant)
        ids = [shared.ids_of(tokenizer, text) for text in texts()]
        decoded = [tokenizer.decode(i) for i in ids]
        golden = {"name": title, "base": "bytes" if "model" in variant else "plain"}
        golden["fields"] = {"added_tokens": controls(), "decoder": meta_decoder()} | variant
        golden["ids"] = " ".join(f"{shared.hashed(i) % 2**32:08x}" for i in ids)
        golden["decoded"] = " ".join(f"{shared.hashed_text(t) % 2**32:08x}" for t in decoded)
        listed.append(golden)
    out = {"texts": texts(), "models": {"plain": bases[False], "bytes": bases[True]}, "variants": listed}
    text = json.dumps(out, ensure_ascii=True)
    (shared.GOLDENS / "unigram_variants.json").write_text(text + "\n")
    print(len(listed), "variants of", len(texts()), "texts,", len(text), "bytes")


# The comparison.


def charsmaps(data):
    yield "own rules", own_charsmap()
    for rule in ["nmt_nfkc", "nmt_nfkc_cf", "nfkc"]:
        yield rule, spm_charsmap(normalization_rule_name=rule)
    for path in sorted((data / "tokenizers/sentencepiece").glob("*.model")):
        model = sentencepiece_model_pb2.ModelProto()
        model.ParseFromString(path.read_bytes())
        charsmap = model.normalizer_spec.precompiled_charsmap
        if charsmap:
            yield path.stem, base64.b64encode(charsmap).decode()


def model_of(path):
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(path.read_bytes())
    vocab = [[p.piece, p.score] for p in model.pieces]
    return {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": model.trainer_spec.byte_fallback}


def bases(data):
    lines = []
    for name in shared.DATASETS:
        lines += (data / "datasets" / name).read_text(encoding="utf-8-sig").splitlines()
    yield "trained", train(lines, 8000, False)
    yield "trained, bytes", train(lines, 8000, True)
    for path in sorted((data / "tokenizers/sentencepiece").glob("*.model")):
        if not path.stem.startswith("mistral"):  # BPE
            yield path.stem, model_of(path)


def compare(data, program, count, seed):
    rng = random.Random(seed)
    strings = [t for t in shared.varied(rng, count, newlines=False) if is_plain(t)]
    strings += ["".join(rng.choice("".join(cluster_texts()).replace("\n", "")) for _ in range(20)) for _ in range(count // 4)]
    joined = ["".join(t for t in shared.varied(rng, 200, newlines=True) if is_plain(t))]
    failed = compared = 0
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for base_name, base in bases(data):
            for map_name, charsmap in charsmaps(data):
                for title, variant in variants(charsmap):
                    if "added_tokens" in variant or (map_name != "own rules" and "charsmap" not in json.dumps(variant)):
                        continue
                    variant = variant | {"model": {"byte_fallback": base["byte_fallback"]}, "added_tokens": []}
                    (scratch / "tokenizer.json").write_text(json.dumps(assemble(base, variant)))
                    tokenizer = open_variant(base, variant)
                    lines = shared.compare_lines(program, scratch, tokenizer, strings, scratch)
                    whole = shared.compare_whole(program, scratch, tokenizer, joined, scratch)
                    failed += lines[1] + whole[1]
                    compared += lines[0] + whole[0]
                    print(base_name, map_name, title, "lines, misses:", *lines, "texts:", *whole, flush=True)
    print(compared, "compared,", failed, "differ")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["goldens", "compare"])
    parser.add_argument("data", type=pathlib.Path, nargs="?")
    parser.add_argument("program", nargs="?")
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.what == "compare":
        sys.exit(1 if compare(args.data, args.program, args.count, args.seed) else 0)
    write_variants()


if __name__ == "__main__":
    main()
