"""Weights, tokens and sums by a formula that tst_family_variants.cpp has too, so that no weights are
stored.

A stream of 64-bit words has a key; word i is the finaliser of splitmix64 (Steele et al., OOPSLA 2014)
over key + (i + 1) * gamma. The key of a tensor is FNV-1a of its name in a text model ("model.layers.0.
mlp.up_proj.weight"), xor the first word of the model's seed. A word's upper 24 bits are a number u of
[-1, 1); an element is centre + spread * u, exact in float64 (spreads are multiples of 1/1024) and
rounded to float32 once.
"""

import math

import numpy as np

GAMMA = np.uint64(0x9E3779B97F4A7C15)


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def words(key, count):
    with np.errstate(over="ignore"):
        z = np.uint64(key) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * GAMMA
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def key_of(name, seed):
    return fnv1a(name) ^ int(words(seed, 1)[0])


def centre_and_spread(name, shape, kind):
    """No norm, bias or gate is near the value at which it would change nothing. `kind`: "1 + w" where
    norms add 1, "plain scores" where nothing but the norms of q and k scales these."""
    if kind == "plain scores" and name.endswith(("q_norm.weight", "k_norm.weight")):
        return 0.5, 0.375
    special = {"A_log": (-0.25, 1.375), "dt_bias": (-1.0, 1.25), "conv1d.weight": (0.0, 0.75),
               "bias": (0.0, 0.25), "embed_tokens.weight": (0.0, 0.5), "layer_scalar": (0.75, 0.5)}
    for end, values in special.items():
        if name.endswith("." + end):
            return values
    if len(shape) == 1:
        return (0.0 if kind == "1 + w" and not name.endswith("linear_attn.norm.weight") else 1.0), 0.375
    return 0.0, math.floor(1024 * math.sqrt(3 / shape[-1]) + 0.5) / 1024


def made_tensor(name, shape, seed, kind):
    count = math.prod(shape)
    u = (words(key_of(name, seed), count) >> np.uint64(40)).astype(np.float64) / 2**23 - 1
    centre, spread = centre_and_spread(name, shape, kind)
    return (centre + spread * u).astype(np.float32).reshape(shape)


def made_ids(count, vocab, seed):
    """The last eight tokens are never read: models that see have marks for pictures there."""
    return (words(key_of("ids", seed), count) >> np.uint64(11)).astype(np.int64) % (vocab - 8)


def described(name, gradient, sums):
    """Norm, and `sums` sums of all elements with signs, in millionths of the norm: an error in any
    element shows, by its share of the norm."""
    flat = np.asarray(gradient, dtype=np.float64).reshape(-1)
    norm = float(np.linalg.norm(flat))
    stream = words(fnv1a("signs:" + name), flat.size)
    found = [float(f"{norm:.7g}")]
    for bit in range(sums):
        signs = 1.0 - 2.0 * ((stream >> np.uint64(bit)) & np.uint64(1)).astype(np.float64)
        found.append(round(float(flat @ signs) / norm * 1e6) if norm > 0 else 0)
    return found


def listed(tensors):
    """Names and shapes of the tensors that are trained, as one number. `tensors`: by name."""
    return f"{fnv1a(''.join(f'{n}:{list(s)};' for n, s in sorted(tensors.items()))):016x}"
