"""Settings that the mechanisms of variant_models.py share: sizes, lengths of documents, positions, the
fields of the gated delta rule. `r` is a random.Random, `c` the fields of config.json.
"""

import dataclasses

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"
SPELLINGS = [("model.", ""), ("model.language_model.", ""),
             ("language_model.model.", "language_model.")]
BASE = dict(max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2)
WITHOUT_HEAD_DIM = ("llama", "granite", "granitemoehybrid", "olmo2", "olmo3", "exaone4", "smollm3",
                    "mistral", "qwen2", "phi3")  # where it may be missing


@dataclasses.dataclass
class Variant:
    config: dict
    lengths: list
    seed: int = 0
    tied: bool = False  # the file has no head
    prefix: tuple = SPELLINGS[0]
    carried: tuple = ()
    tower: dict = None  # which the file does not hold, nor the golden
    unread: tuple = ()  # layers whose k and v are another one's, but which the file has
    missing_scalars: tuple = ()  # layers without their layer_scalar, of models that have it


def some(r, chance):
    return r.random() < chance


def shape(r, family, layers=(2, 2, 2, 3)):
    """Sizes of a model, its padding and its norms' epsilon."""
    heads = r.choice([1, 2, 2, 3, 4, 4])
    dim = r.choice([4, 6, 8, 10, 12])
    divisors = [n for n in range(1, heads + 1) if heads % n == 0]
    width = heads * dim
    hidden = width * max(1, round(24 / width))  # configs want a multiple of the heads
    c = dict(model_type=family, vocab_size=r.randint(50, 64), hidden_size=hidden,
             intermediate_size=r.choice([12, 20, 28, 40]), num_hidden_layers=r.choice(layers),
             num_attention_heads=heads, num_key_value_heads=r.choice(divisors))
    if family not in WITHOUT_HEAD_DIM or hidden // heads % 2 or some(r, 0.5):
        c["head_dim"] = dim + r.choice([0, 0, 2, 4])
    if some(r, 0.3):
        c["pad_token_id"] = r.choice([None, 7, 20])
    c["rms_norm_eps"] = r.choice([1e-6, 1e-6, 1e-5, 1e-3, 0.05])
    return c


def head_dim(c):
    return c.get("head_dim", c["hidden_size"] // c["num_attention_heads"])


def lengths(r, most=60):
    """One to five documents; some have a single position."""
    left, found = r.randint(20, most), []
    while left > 1 and len(found) < 5:
        length = min(left, r.choice([2, 2, 3, r.randint(4, 20), r.randint(15, most)]))
        found.append(length)
        left -= length
    return found if max(found) > 4 else found + [r.randint(8, 20)]


def tie(r, c, default=False):
    """-> is the head tied?"""
    if some(r, 0.3):
        return default
    c["tie_word_embeddings"] = some(r, 0.5)
    return c["tie_word_embeddings"]


def theta(r):
    return r.choice([100.0, 1e4, 5e5])


def yarn(r):
    rope = dict(rope_type="yarn", factor=r.choice([2.0, 8.0]),
                original_max_position_embeddings=r.choice([16, 32]))
    if some(r, 0.5):
        rope["attention_factor"] = r.choice([0.8, 1.2])
    elif some(r, 0.4):
        rope |= dict(mscale=r.choice([1.0, 0.7]), mscale_all_dim=r.choice([1.0, 0.4]))
    if some(r, 0.5):
        rope |= dict(beta_fast=r.choice([4.0, 32.0]), beta_slow=r.choice([0.5, 1.0]))
    if some(r, 0.4):
        rope["truncate"] = some(r, 0.3)
    return rope


def scaled(r):
    """Kinds that do not depend on lengths."""
    kind = r.choice(["default", "linear", "llama3", "yarn"])
    if kind == "default":
        return dict(rope_type=kind)
    if kind == "linear":
        return dict(rope_type=kind, factor=r.choice([2.0, 3.5]))
    if kind == "llama3":
        return dict(rope_type=kind, factor=r.choice([4.0, 8.0]), low_freq_factor=1.0,
                    high_freq_factor=r.choice([2.0, 4.0]),
                    original_max_position_embeddings=r.choice([16, 64]))
    return yarn(r)


def scaled_of_type(r):
    """Positions of one type of layer: transformers does not read how yarn rounds there."""
    rope = scaled(r)
    rope.pop("truncate", None)
    return rope


def by_layer_type(r, c, default, local_default):
    """Positions of full layers, and those of sliding ones."""
    if some(r, 0.6):
        c["rope_parameters"] = {FULL: scaled_of_type(r) | dict(rope_theta=theta(r)),
                                SLIDING: dict(rope_type="default", rope_theta=theta(r))}
    elif default != local_default:
        c.update(rope_theta=theta(r), rope_local_base_freq=theta(r))
        if some(r, 0.5):
            c["rope_scaling"] = scaled_of_type(r)
    elif some(r, 0.5):
        c["rope_scaling"] = scaled_of_type(r)


def some_types(r, c):
    c["layer_types"] = [r.choice([FULL, SLIDING]) for _ in range(c["num_hidden_layers"])]


def delta_fields(r, c):
    keys = r.choice([1, 1, 2, 2, 3])
    c["rms_norm_eps"] = r.choice([1e-6, 1e-4, 1e-2])
    c.update(linear_num_key_heads=keys, linear_num_value_heads=keys * r.randint(1, 4),
             linear_key_head_dim=r.choice([5, 6, 8, 12, 16]),
             linear_value_head_dim=r.choice([5, 6, 7, 8, 12, 16]),
             linear_conv_kernel_dim=r.randint(2, 8))
    layers = c["num_hidden_layers"]
    way = r.choice(["types", "types", "interval", "default"])
    if way == "types":
        c["layer_types"] = [r.choice([LINEAR, LINEAR, FULL]) for _ in range(layers)]
    elif way == "interval":
        c["full_attention_interval"] = r.choice([1, 2, 2, 3, 5])
    turning = r.randrange(2, head_dim(c) + 1, 2)
    share = turning / head_dim(c)
    rope = dict(rope_type="default", rope_theta=r.choice([1e4, 1e7]))
    if some(r, 0.5):
        rope |= dict(mrope_section=r.choice([[2, 1, 1], [11, 11, 10]]), mrope_interleaved=True)
    if some(r, 0.3):
        c["rope_scaling"] = {k: v for k, v in rope.items() if k != "rope_theta"}
        c["rope_theta"] = rope["rope_theta"]
        c["partial_rotary_factor"] = share
    else:
        c["rope_parameters"] = rope | dict(partial_rotary_factor=share)
