// readBlockKinds: which blocks have a window, and which turn. See family_fields.h.

#include "core/base/shown_text.h"
#include "core/model/family_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace mr {

using nlohmann::json;

namespace {

// By block.
using Marks = std::vector<std::uint8_t>;

Marks marksOf(std::int64_t layers, bool value)
{
    return Marks(static_cast<std::size_t>(layers), value ? 1 : 0);
}

bool anyOf(const Marks& marks)
{
    return std::ranges::count(marks, 1) > 0;
}

// Newer configs hide the field, which then repeats layer_types.
std::int64_t readPattern(JsonFields& f, const ArchitectureTraits& traits)
{
    if (!traits.patternField)
        return traits.missingPattern;
    const std::int64_t hidden =
        f.integer("_sliding_window_pattern", kLayerCounts, traits.missingPattern);
    return f.integer("sliding_window_pattern", kLayerCounts, hidden);
}

// "LLLG": L has a window, G has none, and so on from the first layer. The last layer is G whatever
// the text says in some versions of transformers, so it must be.
Marks lettersOf(JsonFields& f, const std::string& text, std::int64_t layers)
{
    constexpr const char* kKey = "sliding_window_pattern";
    if (text.empty() || text.find_first_not_of("LG") != std::string::npos) {
        f.fail(kKey, "must be a number, or letters L and G");
        return marksOf(layers, false);
    }
    Marks marks;
    for (std::int64_t block = 0; block < layers; ++block)
        marks.push_back(text[static_cast<std::size_t>(block) % text.size()] == 'L' ? 1 : 0);
    if (marks.back() != 0)
        f.fail(kKey, "gives the last layer a window, on which versions of transformers differ; "
                     "write layer_types");
    return marks;
}

Marks byPattern(JsonFields& f, const FamilySource& from, std::int64_t layers)
{
    const json* given = from.traits.patternField ? f.find("sliding_window_pattern") : nullptr;
    if (given != nullptr && given->is_string())
        return lettersOf(f, given->get<std::string>(), layers);
    const std::int64_t pattern = readPattern(f, from.traits);
    Marks marks;
    for (std::int64_t block = 0; block < layers; ++block)
        marks.push_back((block + 1) % pattern != 0 ? 1 : 0);
    return marks;
}

// Layers from max_window_layers on.
Marks upperLayers(JsonFields& f, std::int64_t layers)
{
    constexpr std::int64_t kDefaultFirst = 28;
    const std::int64_t first = f.integer("max_window_layers", {0, 10'000}, kDefaultFirst);
    Marks marks;
    for (std::int64_t block = 0; block < layers; ++block)
        marks.push_back(block >= first ? 1 : 0);
    return marks;
}

// Which layers have a window by the rule of the architecture.
Marks byRule(JsonFields& f, const FamilySource& from, const Marks& still, std::int64_t layers)
{
    switch (from.traits.window) {
    case WindowRule::None:
        return marksOf(layers, false);
    case WindowRule::AllLayers:
        return marksOf(layers, true);
    case WindowRule::UpperLayers:
        return upperLayers(f, layers);
    case WindowRule::Pattern:
        return byPattern(f, from, layers);
    case WindowRule::StillLayers:
        return still;
    }
    return {};
}

// layer_types, where it is given.
std::optional<Marks> readLayerTypes(JsonFields& f, const FamilySource& from, const ModelConfig& c)
{
    const json* types = f.find("layer_types");
    if (types == nullptr)
        return {};
    Marks marks;
    if (!types->is_array() || types->size() != static_cast<std::size_t>(c.layers)) {
        f.fail("layer_types", "must be a list of one name for each layer");
        return marks;
    }
    for (const json& type : *types) {
        if (type != "full_attention" && type != "sliding_attention") {
            f.fail("layer_types",
                "holds " + shown(type) + "; full_attention and sliding_attention are known");
            return marks;
        }
        marks.push_back(type == "sliding_attention" ? 1 : 0);
        const bool isSaid = marks.back() != 0 || c.block.window == 0;
        if (from.traits.window == WindowRule::AllLayers && !isSaid)
            f.fail("layer_types", "holds " + shown(type) +
                                      ", but sliding_window is of every layer of this "
                                      "architecture; remove one of the two");
    }
    return marks;
}

// The fields of the rule, where something else decides.
void knowRule(JsonFields& f, const ArchitectureTraits& traits)
{
    if (traits.window == WindowRule::UpperLayers)
        f.find("max_window_layers");
    if (traits.patternField)
        for (const char* key : {"sliding_window_pattern", "_sliding_window_pattern"})
            f.find(key);
}

// sliding_window; 0: there is none.
std::int64_t readWindowLength(JsonFields& f, const FamilySource& from)
{
    const WindowRule rule = from.traits.window;
    const bool given = from.object.contains("sliding_window");
    const std::int64_t window =
        f.integer("sliding_window", kLengths, given ? 0 : from.traits.missingWindow);
    if (rule == WindowRule::Pattern && // published Gemma 2 models say it twice
        f.integer("sliding_window_size", kLengths, window) != window)
        f.fail("sliding_window_size", "says otherwise than sliding_window");
    const bool asks = rule == WindowRule::UpperLayers || rule == WindowRule::StillLayers;
    return asks && !f.boolean("use_sliding_window", false) ? 0 : window;
}

// Which layers see so far back: c.block.window on return, 0 if none does.
Marks readWindows(JsonFields& f, const FamilySource& from, const Marks& still, ModelConfig& c)
{
    const ArchitectureTraits& traits = from.traits;
    if (traits.window == WindowRule::None)
        return marksOf(c.layers, false);
    c.block.window = readWindowLength(f, from);
    const std::optional<Marks> listed = readLayerTypes(f, from, c);
    const bool isNull = c.block.window == 0;
    if (!f.status().ok())
        return {};
    const bool hasNone = isNull && traits.optionalWindow;
    Marks windowed = marksOf(c.layers, false);
    if (listed)
        windowed = *listed;
    else if (!hasNone)
        windowed = byRule(f, from, still, c.layers);
    if (listed || hasNone)
        knowRule(f, traits);
    if (isNull && listed && anyOf(windowed))
        f.fail("layer_types", "has sliding_attention, but there is no sliding_window");
    if (isNull && anyOf(windowed) && traits.window == WindowRule::Pattern)
        f.fail("sliding_window", "is null, but layers of this architecture have one");
    if (traits.fullLast && windowed.back() != 0) {
        windowed.back() = 0;
        if (listed)
            c.notes.push_back("layer_types gives the last layer a window; the architecture gives "
                              "it none, and so does this program.");
    }
    if (!anyOf(windowed))
        c.block.window = 0;
    return c.block.window == 0 ? marksOf(c.layers, false) : windowed;
}

// no_rope_layers: 1 for a layer that turns. As long as the model, or longer.
Marks listedStill(JsonFields& f, std::int64_t layers)
{
    constexpr const char* kKey = "no_rope_layers";
    const std::int64_t interval = f.integer("no_rope_layer_interval", kLayerCounts, 4);
    const json* list = f.find(kKey);
    Marks still;
    if (list == nullptr) {
        for (std::int64_t block = 0; block < layers; ++block)
            still.push_back((block + 1) % interval == 0 ? 1 : 0);
        return still;
    }
    if (!list->is_array() || std::ssize(*list) < layers) {
        f.fail(kKey, "must be a list of 0 or 1 for each layer");
        return marksOf(layers, false);
    }
    for (std::int64_t block = 0; block < layers; ++block) {
        const json& turns = (*list)[static_cast<std::size_t>(block)];
        if (turns != 0 && turns != 1)
            f.fail(kKey, "holds " + shown(turns) +
                             "; 1 says that a layer turns, 0 that it does "
                             "not");
        still.push_back(turns == 0 ? 1 : 0);
    }
    return still;
}

// Layers that do not turn, as far as windows do not decide it.
Marks readStill(JsonFields& f, const FamilySource& from, std::int64_t layers)
{
    switch (from.traits.still) {
    case StillRule::None:
    case StillRule::FullLayers:
        return marksOf(layers, false);
    case StillRule::Listed:
        return listedStill(f, layers);
    case StillRule::All:
        break;
    }
    const std::string type = f.text("position_embedding_type", "");
    if (!type.empty() && type != "rope")
        f.fail(
            "position_embedding_type", "is " + shownName(type) + "; null and \"rope\" are known");
    return marksOf(layers, type.empty());
}

// Layers with a state: layer_types, or all but every full_attention_interval-th.
Marks readDeltaLayers(JsonFields& f, const FamilySource& from, std::int64_t layers)
{
    Marks marks = marksOf(layers, false);
    if (!from.traits.deltaLayers)
        return marks;
    const std::int64_t interval = f.integer("full_attention_interval", kLayerCounts, 4);
    const json* types = f.find("layer_types");
    if (types != nullptr && (!types->is_array() || std::ssize(*types) != layers)) {
        f.fail("layer_types", "must be a list of one name for each layer");
        return marks;
    }
    for (std::int64_t block = 0; block < layers; ++block) {
        const auto at = static_cast<std::size_t>(block);
        const json type = types != nullptr ? (*types)[at] : json();
        if (types != nullptr && type != "full_attention" && type != "linear_attention")
            f.fail("layer_types",
                "holds " + shown(type) + "; full_attention and linear_attention are known");
        const bool isDelta =
            types != nullptr ? type == "linear_attention" : (block + 1) % interval != 0;
        marks[at] = isDelta ? 1 : 0;
    }
    return marks;
}

void readDeltaShape(JsonFields& f, BlockKind& b)
{
    constexpr IntRange kSizes{1, 1 << 12};
    const auto size = [&](const char* key, std::int64_t missing) {
        return static_cast<int>(f.integer(key, kSizes, missing));
    };
    b.delta = {size("linear_num_key_heads", 16), size("linear_num_value_heads", 32),
        size("linear_key_head_dim", 128), size("linear_value_head_dim", 128)};
    b.taps = f.integer("linear_conv_kernel_dim", {kLeastTaps, kMostTaps}, 4);
    if (b.delta.valueHeads % b.delta.keyHeads != 0)
        f.fail("linear_num_value_heads", "must be a multiple of linear_num_key_heads");
}

// Fields of published files that repeat what the class does.
void readDeltaWords(JsonFields& f)
{
    if (!f.boolean("attn_output_gate", true))
        f.fail("attn_output_gate", "is false, but attention of this architecture is gated");
    for (const char* unread : {"mamba_ssm_dtype", "mtp_num_hidden_layers",
             "mtp_use_dedicated_embeddings", "output_gate_type"})
        f.find(unread);
}

} // namespace

void readBlockKinds(JsonFields& f, const FamilySource& from, ModelConfig& c)
{
    Marks still = readStill(f, from, c.layers);
    const Marks windowed = readWindows(f, from, still, c);
    const Marks delta = readDeltaLayers(f, from, c.layers);
    BlockKind rule = c.block;
    if (from.traits.deltaLayers) {
        readDeltaShape(f, rule);
        readDeltaWords(f);
        rule.mixer = Mixer::GatedDelta;
        rule.gatesAttention = false;
    }
    if (!f.status().ok())
        return;
    // The class asks whether the model has a window, and not whether a layer has it.
    if (from.traits.still == StillRule::FullLayers && readWindowLength(f, from) > 0)
        for (std::size_t i = 0; i < still.size(); ++i)
            still[i] = windowed[i] == 0 ? 1 : 0;
    for (std::size_t i = 0; i < still.size(); ++i) {
        BlockKind kind = delta[i] != 0 ? rule : c.block;
        kind.turns = still[i] == 0;
        kind.window = windowed[i] != 0 ? c.block.window : 0;
        kind.rope = windowed[i] != 0 && c.ropes.size() > 1 ? 1 : 0;
        c.blocks.push_back(kind);
    }
    readLayerSizes(f, from, c);
    if (!f.status().ok())
        return;
    if (std::ranges::all_of(
            c.blocks, [&](const BlockKind& kind) { return kind == c.blocks.front(); })) {
        c.block = c.blocks.front();
        c.blocks.clear();
    }
}

} // namespace mr
