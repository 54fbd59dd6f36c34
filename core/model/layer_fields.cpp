// readLayerSizes: layers whose heads, keys, values or MLP differ from the others', and their own
// inputs. See family_fields.h.

#include "core/base/shown_text.h"
#include "core/model/family_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

namespace mr {

using nlohmann::json;

namespace {

constexpr IntRange kHeadSizes{1, 1 << 16};
constexpr IntRange kCounts{0, 1 << 24};

bool isWindowed(const BlockKind& kind)
{
    return kind.window > 0;
}

// Sizes of layers that see everything, by fields of the model. The published spelling.
void readGlobalSizes(JsonFields& f, const FamilySource& from, ModelConfig& c)
{
    const bool isTold = from.object.contains("per_layer_config");
    const std::int64_t dim =
        f.integer("global_head_dim", kHeadSizes, isTold ? 0 : from.traits.missingGlobalHeadDim);
    const std::int64_t kvHeads = f.integer("num_global_key_value_heads", kHeadSizes, 0);
    const bool counts = f.boolean("attention_k_eq_v", false);
    for (BlockKind& kind : c.blocks) {
        if (isWindowed(kind))
            continue;
        kind.headDim = dim > 0 ? dim : kind.headDim;
        kind.kvHeads = kvHeads > 0 && counts ? kvHeads : kind.kvHeads;
    }
}

// The layer that a key of per_layer_config names.
std::optional<std::size_t> layerOf(const std::string& key, std::size_t layers)
{
    std::size_t layer = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), layer);
    if (error != std::errc() || end != key.data() + key.size() || layer >= layers)
        return {};
    return layer;
}

// {"5": {"head_dim": 512, "num_key_value_heads": 4}}: the newer spelling.
void readSizesByLayer(JsonFields& f, const FamilySource& from, ModelConfig& c)
{
    constexpr const char* kKey = "per_layer_config";
    const json* given = f.find(kKey);
    if (given == nullptr)
        return;
    if (!given->is_object())
        return f.fail(kKey, "must hold an object of sizes for each layer that it names");
    for (const auto& item : given->items()) {
        const auto layer = layerOf(item.key(), c.blocks.size());
        if (!layer)
            return f.fail(kKey, "names " + shown(json(item.key())) + ", which is no layer");
        JsonFields sizes(item.value(), fmt::format("{}, {}, {}", from.source, kKey, item.key()));
        BlockKind& kind = c.blocks[*layer];
        const std::int64_t dim = sizes.integer("head_dim", kHeadSizes, kind.headDim);
        const std::int64_t kvHeads = sizes.integer("num_key_value_heads", kHeadSizes, kind.kvHeads);
        if (!isWindowed(kind) && from.object.contains("global_head_dim") && dim != kind.headDim)
            return f.fail(kKey, "says otherwise than global_head_dim; remove one of them");
        kind.headDim = dim;
        kind.kvHeads = kvHeads;
        f.take(sizes.status());
        for (const std::string& name : sizes.unknown())
            return f.fail(kKey, "gives a layer its own " + shown(json(name)) +
                                    "; head_dim and num_key_value_heads are known");
    }
}

// Layers of one kind of rope turn by one table.
void checkSizes(JsonFields& f, ModelConfig& c)
{
    for (const BlockKind& kind : c.blocks) {
        if (kind.heads % kind.kvHeads != 0)
            f.fail("num_key_value_heads",
                fmt::format("is {} in a layer of {} heads; these must be a multiple of it",
                    kind.kvHeads, kind.heads));
        if (kind.headDim % 2 != 0)
            f.fail("head_dim",
                fmt::format("is {} in a layer; it must be even, because positions turn pairs",
                    kind.headDim));
        const auto other = std::ranges::find_if(
            c.blocks, [&](const BlockKind& each) { return isWindowed(each) == isWindowed(kind); });
        if (other->headDim != kind.headDim)
            f.fail("per_layer_config", "gives layers of one attention type heads of different "
                                       "lengths, which turn by one table");
        c.ropes[static_cast<std::size_t>(kind.rope)].rotaryDim = kind.headDim;
    }
}

// The last `num_kv_shared_layers` layers read k and v of the last layer before them of their type.
void shareKeys(JsonFields& f, std::size_t firstReader, ModelConfig& c)
{
    for (std::size_t reader = firstReader; reader < c.blocks.size(); ++reader) {
        BlockKind& kind = c.blocks[reader];
        std::size_t giver = firstReader;
        while (giver > 0 && isWindowed(c.blocks[giver - 1]) != isWindowed(kind))
            --giver;
        if (giver-- == 0)
            return f.fail("num_kv_shared_layers",
                fmt::format("is {}: no layer before layer {} has the attention type of layer {}, "
                            "which would read its k and v; take the config.json the model "
                            "was published with",
                    c.layers - static_cast<std::int64_t>(firstReader), firstReader, reader));
        BlockKind& given = c.blocks[giver];
        if (given.sharedKeys < 0) {
            given.sharedKeys = static_cast<int>(c.keyGivers.size());
            c.keyGivers.push_back(static_cast<std::int64_t>(giver));
        }
        kind.keyValues = KeyValueSource::Earlier;
        kind.sharedKeys = given.sharedKeys;
        if (kind.kvHeads != given.kvHeads)
            return f.fail("per_layer_config", "gives a layer that shares keys another number of "
                                              "num_key_value_heads than the layer it reads");
    }
    for (std::size_t i = 0; i < c.keyGivers.size(); ++i) {
        const auto last = std::find_if(c.blocks.rbegin(), c.blocks.rend(),
            [&](const BlockKind& kind) { return kind.sharedKeys == static_cast<int>(i); });
        last->readsLast = true;
    }
}

void readKeyValues(JsonFields& f, ModelConfig& c)
{
    const bool areKeys = f.boolean("attention_k_eq_v", false);
    const std::int64_t shared = f.integer("num_kv_shared_layers", kCounts, 0);
    const bool isWide = f.boolean("use_double_wide_mlp", false);
    if (shared >= c.layers)
        return f.fail("num_kv_shared_layers",
            fmt::format("is {}; it must be below num_hidden_layers ({})", shared, c.layers));
    const auto first = static_cast<std::size_t>(c.layers - shared);
    for (std::size_t layer = 0; layer < c.blocks.size(); ++layer) {
        BlockKind& kind = c.blocks[layer];
        if (areKeys && !isWindowed(kind))
            kind.keyValues = KeyValueSource::KeysAreValues;
        if (isWide && layer >= first)
            kind.intermediate *= 2;
    }
    if (shared > 0)
        shareKeys(f, first, c);
}

void readLayerInputs(JsonFields& f, const FamilySource& from, ModelConfig& c)
{
    if (from.traits.missingLayerInput == 0)
        return;
    const bool isGiven = from.object.contains("hidden_size_per_layer_input");
    c.layerInput = f.integer(
        "hidden_size_per_layer_input", kCounts, isGiven ? 0 : from.traits.missingLayerInput);
    c.inputVocab = f.integer("vocab_size_per_layer_input", kCounts, 262144);
    if (c.layerInput > 0 && c.inputVocab < c.vocab)
        f.fail("vocab_size_per_layer_input",
            fmt::format(
                "is {}, below vocab_size ({}): tokens would have no row", c.inputVocab, c.vocab));
    for (BlockKind& kind : c.blocks)
        kind.layerInput = c.layerInput;
}

} // namespace

void readLayerSizes(JsonFields& f, const FamilySource& from, ModelConfig& c)
{
    if (from.traits.missingGlobalHeadDim == 0)
        return;
    if (f.boolean("enable_moe_block", false))
        return f.fail("enable_moe_block",
            "is true: mixtures of experts are not supported; take a dense edition, such as "
            "Gemma 4 12B or 31B");
    for (const char* unread : {"moe_intermediate_size", "num_experts", "top_k_experts"})
        f.find(unread); // of experts that are not there
    const std::string sees = f.text("use_bidirectional_attention", "");
    if (!sees.empty() && sees != "vision")
        return f.fail("use_bidirectional_attention",
            "is " + shownName(sees) +
                ": models that see what follows are not supported; \"vision\" changes nothing "
                "for text");
    readGlobalSizes(f, from, c);
    readSizesByLayer(f, from, c);
    readKeyValues(f, c);
    readLayerInputs(f, from, c);
    if (f.status().ok())
        checkSizes(f, c);
}

} // namespace mr
