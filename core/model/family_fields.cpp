#include "core/model/family_fields.h"

#include "core/base/shown_text.h"
#include "core/model/config_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mr {

using nlohmann::json;

namespace {

void readBiases(JsonFields& f, BiasRule rule, BlockKind& b)
{
    switch (rule) {
    case BiasRule::None:
        return;
    case BiasRule::Qkv:
        b.qkvBias = true;
        return;
    case BiasRule::QkvField:
        b.qkvBias = f.boolean("attention_bias", true);
        return;
    case BiasRule::Whole:
        b.qkvBias = b.attnOutBias = b.mlpBias = f.boolean("use_bias", false);
        return;
    case BiasRule::Attention:
        b.qkvBias = b.attnOutBias = f.boolean("attention_bias", false);
        return;
    case BiasRule::All:
        b.qkvBias = b.attnOutBias = f.boolean("attention_bias", false);
        b.mlpBias = f.boolean("mlp_bias", false);
        return;
    case BiasRule::Apart:
        b.qkvBias = f.boolean("attention_bias", true);
        b.attnOutBias = f.boolean("attention_out_bias", false);
        b.mlpBias = f.boolean("mlp_bias", false);
        return;
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
    c.block.geluGate = from.traits.geluGate;
    if (!c.block.geluGate) {
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

// Above 0, and no larger than makes sense.
double readMultiplier(JsonFields& f, const char* key)
{
    const double factor = f.number(key, 1.0);
    if (!(factor > 0.0 && factor <= 1e6))
        f.fail(key, "must be above 0 and at most 1000000");
    return factor;
}

// Granite's four.
void readMultipliers(JsonFields& f, ModelConfig& c)
{
    c.embeddingScale = readMultiplier(f, "embedding_multiplier");
    c.block.scoreScale = readMultiplier(f, "attention_multiplier");
    c.block.branchScale = readMultiplier(f, "residual_multiplier");
    c.logitScale = 1.0 / readMultiplier(f, "logits_scaling");
}

void readScales(JsonFields& f, const FamilySource& from, ModelConfig& c)
{
    const ArchitectureTraits& traits = from.traits;
    if (traits.scaledEmbedding)
        c.embeddingScale = std::sqrt(static_cast<double>(c.hidden));
    c.block.attentionCap = readCap(f, from, "attn_logit_softcapping", traits.missingAttentionCap);
    c.logitCap = readCap(f, from, "final_logit_softcapping", traits.missingLogitCap);
    if (traits.multipliers)
        readMultipliers(f, c);
    if (traits.plainScores)
        c.block.scoreScale = 1.0;
    if (traits.missingQueryScalar == 0.0)
        return;
    const double scalar = f.number("query_pre_attn_scalar", traits.missingQueryScalar);
    if (!(scalar > 0.0 && scalar <= 1e9))
        f.fail("query_pre_attn_scalar", "must be above 0");
    c.block.scoreScale = 1.0 / std::sqrt(scalar);
}

// The class has other mixers and experts, which its config asks for where it does not say
// otherwise.
void checkAttentionOnly(JsonFields& f, const FamilySource& from, std::int64_t layers)
{
    constexpr IntRange kCounts{0, 1 << 16};
    if (f.integer("num_local_experts", kCounts, 8) > 0)
        return f.fail("num_local_experts", "is not 0: mixtures of experts are not supported; take "
                                           "a dense edition, such as Granite 4.0 350M or 1B");
    f.integer("num_experts_per_tok", kCounts, 0);
    const json* types = nullptr;
    for (const char* key : {"layers_block_type", "layer_types"})
        if (const json* found = f.find(key))
            types = found;
    const auto isAttention = [](const json& type) {
        return type == "full_attention" || type == "attention";
    };
    if (types == nullptr || !types->is_array() || std::ssize(*types) != layers ||
        !std::all_of(types->begin(), types->end(), isAttention))
        return f.fail("layer_types",
            "must name attention for every layer: Mamba layers, which are "
            "meant where it is missing, are not supported; take an edition "
            "without \"h\" in its name, such as Granite 4.0 1B");
    for (const auto& item : from.object.items()) // of mixers and routers that are not there
        if (item.key().starts_with("mamba_") || item.key() == "time_step_limit" ||
            item.key() == "router_aux_loss_coef" || item.key() == "intermediate_size")
            f.find(item.key());
}

// Published with dropout, which evaluation and every other program that serves the model leave out.
void leaveDropoutOut(JsonFields& f, ModelConfig& config)
{
    double most = 0.0;
    for (const char* key : {"attention_dropout", "residual_dropout"})
        most = std::max(most, f.number(key, 0.1));
    if (most > 0.0)
        config.notes.push_back(
            "config.json asks for dropout (attention_dropout, residual_dropout); "
            "this program trains without it.");
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
    BlockKind& block = config.block;
    config.names = traits.names;
    block.queryKeyNorm = traits.queryKeyNorm;
    block.inputNorms = traits.norms != NormPlace::After;
    block.branchNorms = traits.norms != NormPlace::Before;
    block.pairs = traits.pairs;
    block.gatesAttention = traits.gatesAttention;
    block.normsValues = traits.normsValues;
    config.carries = traits.carried;
    config.layerScalars = traits.layerScalars;
    config.onePlusNorms = traits.onePlusNorms;
    config.tiedEmbedding = fields.boolean("tie_word_embeddings", traits.tiedByDefault);
    if (traits.attentionOnly)
        checkAttentionOnly(fields, from, config.layers);
    readRopes(fields, from, config);
    readBiases(fields, traits.bias, block);
    readGate(fields, from, config);
    readScales(fields, from, config);
    readPadding(fields, from, config);
    readBlockKinds(fields, from, config); // copies what the others read
    if (traits.leavesDropoutOut)
        leaveDropoutOut(fields, config);
    if (traits.ownCode) // it points to code for work that this program does itself
        fields.find("auto_map");
}

} // namespace mr
