"""Gemma 4 among the models of variant_models.py, alone and within the models that see.

Left out, because core/model refuses it with a reason: experts, heads of different lengths in layers of
one type, positions of sliding layers that are scaled or turn in part, tables with fewer rows than the
vocabulary. Left out, because transformers refuses it: sharing layers of a type that no layer before
them has, a model that sees without a token of padding.
"""

from variant_settings import (FULL, SLIDING, SPELLINGS, Variant, lengths, scaled_of_type, shape,
                              some, theta, tie)

CARRIED = ("model.vision_tower.a.weight", "model.embed_vision.b.weight", "model.audio_tower.c.weight",
           "model.embed_audio.d.weight")


def layer_types(r, c):
    """-> the types as the class has them, the last one full"""
    layers = c["num_hidden_layers"]
    way = r.choice(["drawn", "drawn", "full", "last sliding", "first full", "default"])
    if way == "default":
        return [FULL if i % 6 == 5 or i == layers - 1 else SLIDING for i in range(layers)]
    types = [r.choice([FULL, SLIDING]) for _ in range(layers)]
    if way == "full":
        types = [FULL] * layers
    elif way == "first full":
        types = [FULL] + [SLIDING] * (layers - 1)
    if way != "last sliding":
        types[-1] = FULL
    else:
        types[-1] = SLIDING
    c["layer_types"] = types
    return types[:-1] + [FULL]


def divisor(r, heads):
    return r.choice([n for n in range(1, heads + 1) if heads % n == 0])


def sizes(r, c, types):
    dim, heads = r.choice([4, 6, 8, 10, 16]), c["num_attention_heads"]
    if some(r, 0.5):
        own = {FULL: dict(head_dim=dim), SLIDING: {}}
        if some(r, 0.5):
            own[FULL]["num_key_value_heads"] = divisor(r, heads)
        if some(r, 0.3):
            own[SLIDING]["num_key_value_heads"] = divisor(r, heads)
        c["per_layer_config"] = {str(i): own[t] for i, t in enumerate(types) if own[t]}
        return
    if not some(r, 0.04):  # 512 where it is missing
        c["global_head_dim"] = dim
    if some(r, 0.5):
        c["num_global_key_value_heads"] = divisor(r, heads)


def positions(r, c):
    if some(r, 0.15):
        return
    full = dict(rope_type="proportional", rope_theta=theta(r))
    if some(r, 0.9):
        full["partial_rotary_factor"] = r.choice([0.1, 0.2, 0.25, 0.3, 0.45, 0.5, 0.7, 0.75, 0.9, 1.0])
    if some(r, 0.4):
        full["factor"] = r.choice([0.5, 2.0, 8.0])
    if some(r, 0.2):
        full = scaled_of_type(r) | dict(rope_theta=theta(r))
    c["rope_parameters"] = {FULL: full, SLIDING: dict(rope_type="default", rope_theta=theta(r))}


def fields(r, family, layers):
    """-> fields, types of the layers"""
    c = shape(r, family, layers)
    c["max_position_embeddings"] = 256
    c.setdefault("pad_token_id", r.choice([0, 0, None, 7]))
    c["sliding_window"] = r.choice([1, 2, 3, 5, 8, 100])
    types = layer_types(r, c)
    sizes(r, c, types)
    positions(r, c)
    c["attention_k_eq_v"] = some(r, 0.5)
    if some(r, 0.5):
        c["attention_bias"] = some(r, 0.7)
    if some(r, 0.7):
        c["final_logit_softcapping"] = r.choice([None, 4.0, 8.0])
    return c, types


def share_keys(r, c, types):
    """-> layers of whose own k and v the file has tensors, which nothing reads"""
    layers = len(types)
    most = max(n for n in range(layers) if set(types[:layers - n]) == set(types))
    shared = r.choice([most, r.randint(0, most)])
    c["num_kv_shared_layers"] = shared
    own = c.get("per_layer_config", {})
    for i in range(layers - shared, layers):  # as the giver has them
        giver = max(j for j in range(layers - shared) if types[j] == types[i])
        assert own.get(str(i)) == own.get(str(giver))
    if some(r, 0.6):
        c["use_double_wide_mlp"] = some(r, 0.7)
    return () if some(r, 0.4) else tuple(range(layers - shared, layers))


def missing_scalars(r, layers):
    return tuple(i for i in range(layers) if some(r, r.choice([0, 0, 0.5])))


def within(r, family, text):
    """The text model in one that sees."""
    marks = text["vocab_size"] - 8
    config = dict(model_type=family, text_config=text, image_token_id=marks, video_token_id=marks + 1,
                  audio_token_id=marks + 2, boi_token_id=marks + 3, eoi_token_id=marks + 4,
                  vision_config=None, audio_config=None)
    if text["pad_token_id"] is None:
        text["pad_token_id"] = 7
    if some(r, 0.5):
        config["eos_token_id"], text["eos_token_id"] = [1, 5], 1
    if family == "gemma4" and some(r, 0.3):
        text.pop("model_type")
    tied, where = some(r, 0.5), r.choice(["outer", "inner", "both", "neither"])
    if where in ("outer", "both"):
        config["tie_word_embeddings"] = tied
    if where in ("inner", "both"):
        text["tie_word_embeddings"] = tied
    return Variant(config, lengths(r), tied=tied, prefix=SPELLINGS[1], carried=CARRIED[:r.randint(0, 4)])


def variant(r, family, text):
    if not family.endswith("_text"):
        made = within(r, family, text)
    else:
        made = Variant(text, lengths(r), tied=tie(r, text, True))
    made.missing_scalars = missing_scalars(r, text["num_hidden_layers"])
    return made


def gemma4(r, i):
    family = ["gemma4_text", "gemma4_unified_text", "gemma4", "gemma4_text", "gemma4_unified"][i % 5]
    text, types = fields(r, family.removesuffix("_text") + "_text", (1, 2, 2, 2, 3, 7 if i % 3 == 0 else 4))
    if "unified" not in family:
        text["hidden_size_per_layer_input"] = 0
    elif some(r, 0.5):
        text["use_bidirectional_attention"] = r.choice(["vision", None])
    return variant(r, family, text)


def gemma4_inputs(r, i):
    family = ["gemma4_text", "gemma4_text", "gemma4", "gemma4_text", "gemma4_unified_text"][i % 5]
    text, types = fields(r, family.removesuffix("_text") + "_text", (2, 2, 2, 3, 3, 4))
    unread = share_keys(r, text, types)
    if "unified" not in family:
        text["hidden_size_per_layer_input"] = r.choice([3, 4, 6, 8])
        text["vocab_size_per_layer_input"] = text["vocab_size"] + r.choice([0, 0, 1, 40])
    made = variant(r, family, text)
    made.unread = unread
    if i % 6 == 1:
        made.lengths = [2] * r.randint(1, 4) + [r.choice([2, 9])]
    return made
