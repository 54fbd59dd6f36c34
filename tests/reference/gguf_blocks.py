#!/usr/bin/env python3
"""Makes tests/core/gguf/goldens/blocks.json: what ggml's own encoders and decoders make of blocks.

    pip install gguf numpy llama-cpp-python
    python gguf_blocks.py LIBGGML_BASE OUT

LIBGGML_BASE is the shared library of llama-cpp-python (lib/libggml-base.so), whose
ggml_quantize_chunk() encodes without an importance matrix. F16 and BF16 are those of the package
gguf, which also decodes everything once more: both decoders must agree.
Inputs are made by a formula that the test has as well, so that only their hash is stored.
"""
import ctypes
import json
import sys
from importlib.metadata import version

import gguf
import numpy as np

COUNT = 4096
ENCODED = ["F16", "BF16", "Q4_0", "Q5_0", "Q8_0", "Q4_K", "Q6_K"]
DECODED = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]


class Draw:
    def __init__(self):
        self.state = 1

    def word(self):  # 24 bits
        self.state = (self.state * 1664525 + 1013904223) & 0xFFFFFFFF
        return self.state >> 8

    def even(self):  # [-0.5, 0.5)
        return self.word() / 2**24 - 0.5

    def bell(self):  # mean 0, variance 1
        return sum(self.word() for _ in range(12)) / 2**24 - 6


def steps(draw, i):
    return (draw.word() % 17 - 8) / 4


CASES = {
    "gaussian": lambda draw, i: draw.bell() * 0.02,
    "uniform": lambda draw, i: draw.even() * 2,
    "constant": lambda draw, i: 0.3,
    "zero": lambda draw, i: 0.0,
    "outlier": lambda draw, i: 50.0 if i % 256 == 77 else draw.bell() * 0.01,
    "denormal": lambda draw, i: draw.even() * 1e-40,
    "tiny": lambda draw, i: draw.bell() * 1e-14,
    "large": lambda draw, i: draw.even() * 1e5,
    "huge": lambda draw, i: draw.even() * 1e30,
    "alternating": lambda draw, i: 1.5 if i % 2 else -1.5,
    "positive": lambda draw, i: draw.even() + 0.5,
    "negative": lambda draw, i: draw.even() - 0.5,
    "ties": steps,
    "magnitudes": lambda draw, i: draw.bell() / 2 ** (i // 16 * 7 % 61),
}


def values(case):
    draw = Draw()
    with np.errstate(all="ignore"):
        return np.array([CASES[case](draw, i) for i in range(COUNT)]).astype(np.float32)


def fnv(data):
    state = 0xCBF29CE484222325
    for byte in bytes(data):
        state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{state:016x}"


class Reference:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.ggml_quantize_chunk.restype = ctypes.c_size_t
        self.library.ggml_quantize_chunk.argtypes = [
            ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
            ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]

    def encode(self, name, x):
        number = gguf.GGMLQuantizationType[name]
        if name in ("F16", "BF16"):
            with np.errstate(all="ignore"):
                return gguf.quants.quantize(x, number).view(np.uint8).ravel()
        elements, size = gguf.GGML_QUANT_SIZES[number]
        out = np.zeros(x.size // elements * size, np.uint8)
        self.library.ggml_quantize_chunk(
            int(number), x.ctypes.data, out.ctypes.data, 0, x.size // 256, 256, None)
        return out

    def decode(self, name, data):
        number = gguf.GGMLQuantizationType[name]
        out = gguf.quants.dequantize(data, number).ravel()
        if name in ("F16", "BF16"):
            return out
        other = np.zeros(out.size, np.float32)
        function = getattr(self.library, "dequantize_row_" + name.lower().replace("_k", "_K"))
        function(ctypes.c_void_p(data.ctypes.data), ctypes.c_void_p(other.ctypes.data),
                 ctypes.c_int64(out.size))
        assert (out.view(np.uint32) == other.view(np.uint32)).all(), name
        return out


def main():
    reference = Reference(sys.argv[1])
    golden = {
        "source": f"ggml of llama-cpp-python {version('llama-cpp-python')}, gguf {version('gguf')}, "
                  f"numpy {version('numpy')}",
        "count": COUNT, "encoded": {}, "decoded": {}}
    for case in CASES:
        x = values(case)
        row = {"input": fnv(x.tobytes())}
        for name in ENCODED:
            row[name] = fnv(reference.encode(name, x))
        golden["encoded"][case] = row
    x = values("gaussian")[:256]
    for name in DECODED:
        data = reference.encode(name, x)
        out = reference.decode(name, data)
        golden["decoded"][name] = {
            "blocks": bytes(data).hex(), "values": fnv(out.tobytes()),
            "first": [float(v) for v in out[:4]]}
    with open(sys.argv[2], "w") as file:
        json.dump(golden, file, indent=1)
        file.write("\n")


main()
