#include "core/model/family_fields.h"

#include "core/base/shown_text.h"
#include "core/model/config_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr {

using nlohmann::json;

namespace {

constexpr IntRange kLengths{1, std::numeric_limits<std::int32_t>::max()};

// Fields of "rope_scaling" and "rope_parameters"; some configs carry both forms, which must agree.
struct Rope {
    RopeScaling scaling;
    bool hasScaling = false;
    double theta = 0.0; // 0: not given so far, and so the others
    double localTheta = 0.0;
    double share = 0.0;
};

void agree(JsonFields& f, const char* key, double given, double& value)
{
    if (given != 0.0 && value != 0.0 && given != value)
        f.fail(key, "is given twice with different values");
    value = given != 0.0 ? given : value;
}

// `value` is of all layers, or of those that see everything.
void addRope(
    JsonFields& f, const char* key, const json& value, const std::string& source, Rope& rope)
{
    Result<RopeFields> read = readRopeFields(value, source + ", " + key);
    if (!read.ok())
        return f.take(read.status());
    const RopeFields& fields = read.value();
    agree(f, "rope_theta", fields.theta, rope.theta);
    agree(f, "partial_rotary_factor", fields.rotaryShare, rope.share);
    if (rope.hasScaling && !(fields.scaling == rope.scaling))
        f.fail(key, "says otherwise than rope_scaling");
    rope.scaling = fields.scaling;
    rope.hasScaling = true;
}

// Positions of windowed layers are never scaled in published models.
void addLocalRope(JsonFields& f, const json& value, const std::string& source, Rope& rope)
{
    Result<RopeFields> read = readRopeFields(value, source);
    if (!read.ok())
        return f.take(read.status());
    if (read.value().scaling.type != RopeType::Default || read.value().rotaryShare != 0.0)
        return f.take(
            refuseConfig(source, "windowed layers turn by plain positions; rope_type must be "
                                 "'default', without partial_rotary_factor"));
    agree(f, "rope_local_base_freq", read.value().theta, rope.localTheta);
}

// {"full_attention": {...}, "sliding_attention": {...}}
void addRopeByLayerType(
    JsonFields& f, const char* key, const json& value, const std::string& source, Rope& rope)
{
    const std::string inside = source + ", " + key;
    JsonFields types(value, inside);
    if (const json* full = types.find("full_attention"))
        addRope(f, key, *full, inside, rope);
    if (const json* sliding = types.find("sliding_attention"))
        addLocalRope(f, *sliding, inside + ", sliding_attention", rope);
    f.take(types.status());
    for (const std::string& name : types.unknown())
        f.take(checkOtherField(name, value[name], inside));
}

bool isByLayerType(const json& value)
{
    return value.is_object() &&
           (value.contains("full_attention") || value.contains("sliding_attention"));
}

// The first int(head_dim * factor) elements of a head turn.
void chooseRotaryDim(JsonFields& f, const FamilySource& from, double share, ModelConfig& c)
{
    if (share == 0.0 || share == 1.0)
        return;
    if (!from.traits.partialRotary)
        return f.take(checkOtherField("partial_rotary_factor", json(share), from.source));
    c.rotaryDim = static_cast<std::int64_t>(static_cast<double>(c.headDim) * share);
    if (c.rotaryDim < 2 || c.rotaryDim % 2 != 0)
        f.fail("partial_rotary_factor",
            fmt::format("makes {} of {} dimensions turn; it must be an even number above 0, "
                        "because positions turn pairs",
                c.rotaryDim, c.headDim));
}

// Phi-3 has it at the top; where scaling does not ask for it, it changes nothing.
void readOriginalLength(JsonFields& f, const FamilySource& from, RopeScaling& scaling)
{
    constexpr const char* kKey = "original_max_position_embeddings";
    const auto top = static_cast<double>(f.integer(kKey, kLengths, 0));
    const auto missing = static_cast<double>(from.traits.missingOriginal);
    const double inside = scaling.originalPositions;
    if (missing > 0.0 && top == 0.0 && inside != 0.0 && inside != missing)
        return f.fail(kKey, "stands only within the scaling, where transformers does not read it "
                            "for this architecture; write it beside \"rope_theta\", too");
    agree(f, kKey, top, scaling.originalPositions);
    if (scaling.originalPositions == 0.0 && scaling.type == RopeType::LongRope)
        scaling.originalPositions = missing;
}

void readRope(JsonFields& f, const FamilySource& from, ModelConfig& c)
{
    const bool hasLocal = from.traits.missingLocalTheta > 0.0;
    Rope rope;
    rope.theta = f.number("rope_theta", 0.0);
    if (f.find("rope_theta") != nullptr && !(rope.theta > 0.0))
        return f.fail("rope_theta", "must be above 0");
    if (hasLocal && f.find("rope_local_base_freq") != nullptr &&
        !((rope.localTheta = f.number("rope_local_base_freq", 0.0)) > 0.0))
        return f.fail("rope_local_base_freq", "must be above 0");
    rope.share = readRotaryShare(f);
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
        const json* value = f.find(key);
        if (value != nullptr && hasLocal && isByLayerType(*value))
            addRopeByLayerType(f, key, *value, from.source, rope);
        else if (value != nullptr && hasLocal && std::string_view(key) == "rope_parameters")
            f.fail(key, "must hold \"full_attention\" and \"sliding_attention\": transformers "
                        "reads nothing of it otherwise; put what is there under full_attention");
        else if (value != nullptr)
            addRope(f, key, *value, from.source, rope);
    }
    if (!f.status().ok())
        return;
    c.ropeScaling = rope.scaling;
    c.ropeTheta = rope.theta != 0.0 ? rope.theta : from.traits.missingTheta;
    c.localTheta = rope.localTheta != 0.0 ? rope.localTheta : from.traits.missingLocalTheta;
    chooseRotaryDim(f, from, rope.share, c);
    readOriginalLength(f, from, c.ropeScaling);
    f.take(checkRope(c.ropeScaling, c.ropeShape(), from.source));
}

void readBiases(JsonFields& f, const ArchitectureTraits& traits, ModelConfig& c)
{
    if (traits.attentionBias == BiasRule::Field)
        c.attnOutBias = c.qkvBias = f.boolean("attention_bias", false);
    else
        c.qkvBias = traits.attentionBias == BiasRule::QkvOnly;
    if (traits.mlpBias == BiasRule::Field)
        c.mlpBias = f.boolean("mlp_bias", false);
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

// layer_types, where it is given, decides; else the rule of the architecture. firstWindowed and
// pattern are those of the rules.
void chooseWindowedBlocks(JsonFields& f, const ArchitectureTraits& traits,
    std::int64_t firstWindowed, std::int64_t pattern, ModelConfig& c)
{
    const json* types = f.find("layer_types");
    if (types == nullptr) {
        for (std::int64_t block = 0; block < c.layers; ++block)
            if (traits.window == WindowRule::UpperLayers)
                c.windowedBlocks.push_back(block >= firstWindowed ? 1 : 0);
            else if (traits.window == WindowRule::Pattern)
                c.windowedBlocks.push_back((block + 1) % pattern != 0 ? 1 : 0);
        return;
    }
    if (!types->is_array() || types->size() != static_cast<std::size_t>(c.layers))
        return f.fail("layer_types", "must be a list of one name for each layer");
    for (const json& type : *types) {
        if (type != "full_attention" && type != "sliding_attention")
            return f.fail("layer_types",
                "holds " + shown(type) + "; full_attention and sliding_attention are known");
        c.windowedBlocks.push_back(type == "sliding_attention" ? 1 : 0);
        const bool isSaid = c.windowedBlocks.back() != 0 || c.window == 0;
        if (traits.window == WindowRule::AllLayers && !isSaid)
            return f.fail("layer_types", "holds " + shown(type) +
                                             ", but sliding_window is of every layer of this "
                                             "architecture; remove one of the two");
    }
}

// Which layers see how far back.
void readWindow(JsonFields& f, const FamilySource& from, ModelConfig& c)
{
    const ArchitectureTraits& traits = from.traits;
    if (traits.window == WindowRule::None)
        return;
    const bool given = from.object.contains("sliding_window");
    c.window = f.integer("sliding_window", kLengths, given ? 0 : traits.missingWindow);
    if (traits.window == WindowRule::Pattern && // published Gemma 2 models say it twice
        f.integer("sliding_window_size", kLengths, c.window) != c.window)
        return f.fail("sliding_window_size", "says otherwise than sliding_window");
    std::int64_t firstWindowed = 0;
    if (traits.window == WindowRule::UpperLayers) {
        constexpr std::int64_t kDefaultFirst = 28;
        firstWindowed = f.integer("max_window_layers", {0, 10'000}, kDefaultFirst);
        if (!f.boolean("use_sliding_window", false))
            c.window = 0;
    }
    chooseWindowedBlocks(f, traits, firstWindowed, readPattern(f, traits), c);
    const auto& blocks = c.windowedBlocks;
    const bool anyWindowed =
        blocks.empty() || std::find(blocks.begin(), blocks.end(), 1) != blocks.end();
    if (c.window == 0 && !blocks.empty() && anyWindowed && f.find("layer_types") != nullptr)
        return f.fail("layer_types", "has sliding_attention, but there is no sliding_window");
    if (c.window == 0 && anyWindowed && traits.window == WindowRule::Pattern)
        return f.fail("sliding_window", "is null, but layers of this architecture have one");
    if (!anyWindowed || c.window == 0) {
        c.window = 0;
        c.windowedBlocks.clear();
    }
}

// hidden_activation is the newer name. Published Gemma configs say "gelu" under the older one and
// mean the tanh form.
void readGate(JsonFields& f, const FamilySource& from, ModelConfig& c)
{
    const auto refuseActivation = [&](const char* key, const std::string& name, const char* only) {
        f.take(refuseConfig(from.source,
            std::string(key) + " " + shownName(name) + " is not supported; only " + only + " is"));
    };
    const std::string act = f.text("hidden_act", "");
    const json* shape = f.find("activation"); // some Llama models name the class's activation
    if (shape != nullptr && *shape != "swiglu")
        f.take(checkOtherField("activation", *shape, from.source));
    c.geluGate = from.traits.geluGate;
    if (!c.geluGate) {
        if (!act.empty() && act != "silu" && act != "swish")
            refuseActivation("hidden_act", act, "silu");
        return;
    }
    constexpr const char* kTanhForm = "gelu_pytorch_tanh";
    const std::string newer = f.text("hidden_activation", "");
    if (!newer.empty() && newer != kTanhForm)
        refuseActivation("hidden_activation", newer, kTanhForm);
    if (!act.empty() && act != kTanhForm && act != "gelu")
        refuseActivation("hidden_act", act, kTanhForm);
}

// A number above 0; 0 for null; `missing` where the field is missing. Below 0 there is no field.
double readCap(JsonFields& f, const FamilySource& from, const char* key, double missing)
{
    if (missing < 0.0)
        return 0.0;
    const double cap = f.number(key, from.object.contains(key) ? 0.0 : missing);
    if (f.find(key) != nullptr && !(cap > 0.0 && cap <= 1e6))
        f.fail(key, "must be above 0 and at most 1000000");
    return cap;
}

void readScales(JsonFields& f, const FamilySource& from, ModelConfig& c)
{
    const ArchitectureTraits& traits = from.traits;
    if (traits.scaledEmbedding)
        c.embeddingScale = std::sqrt(static_cast<double>(c.hidden));
    c.attentionCap = readCap(f, from, "attn_logit_softcapping", traits.missingAttentionCap);
    c.logitCap = readCap(f, from, "final_logit_softcapping", traits.missingLogitCap);
    if (traits.missingQueryScalar == 0.0)
        return;
    c.queryScalar = f.number("query_pre_attn_scalar", traits.missingQueryScalar);
    if (!(c.queryScalar > 0.0 && c.queryScalar <= 1e9))
        f.fail("query_pre_attn_scalar", "must be above 0");
}

// The padding token's row of the embedding is not trained by being looked up: transformers says
// so to its embedding, for which -1 is the last row. A number that names no row means that there is
// none.
void readPadding(JsonFields& f, const FamilySource& from, ModelConfig& c)
{
    constexpr const char* kKey = "pad_token_id";
    const json* pad = f.find(kKey);
    std::int64_t token = from.object.contains(kKey) ? -1 : from.traits.missingPad;
    if (pad != nullptr && pad->is_number_integer())
        token = pad->get<std::int64_t>();
    const bool isBelow = pad != nullptr && pad->is_number_integer() && !pad->is_number_unsigned();
    token += isBelow && token < 0 ? c.vocab : 0;
    c.padToken = token >= 0 && token < c.vocab ? token : -1;
}

} // namespace

void readFamily(JsonFields& fields, const FamilySource& from, ModelConfig& config)
{
    const ArchitectureTraits& traits = from.traits;
    config.queryKeyNorm = traits.queryKeyNorm;
    config.fusedProjections = traits.fusedProjections;
    config.onePlusNorms = traits.onePlusNorms;
    config.branchNorms = traits.branchNorms;
    config.tiedEmbedding = fields.boolean("tie_word_embeddings", traits.tiedByDefault);
    readRope(fields, from, config);
    readBiases(fields, traits, config);
    readWindow(fields, from, config);
    readGate(fields, from, config);
    readScales(fields, from, config);
    readPadding(fields, from, config);
    if (traits.ownCode) // it points to code for work that this program does itself
        fields.find("auto_map");
}

} // namespace mr
