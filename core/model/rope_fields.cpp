// readRopes: how the positions of a model turn, from its config. See family_fields.h.

#include "core/model/config_fields.h"
#include "core/model/family_fields.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

namespace mr {

using nlohmann::json;

namespace {

// Fields of "rope_scaling" and "rope_parameters"; some configs carry both forms, which must agree.
struct GivenRope {
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
void addRope(JsonFields& f, const FamilySource& from, const char* key, const json& value,
    const std::string& source, GivenRope& rope)
{
    Result<RopeFields> read = readRopeFields(value, from.traits.rope, source);
    if (!read.ok())
        return f.take(read.status());
    const RopeFields& fields = read.value();
    agree(f, "rope_theta", fields.theta, rope.theta);
    agree(f, "partial_rotary_factor", fields.rotaryShare, rope.share);
    if (rope.hasScaling && !(fields.scaling == rope.scaling))
        f.fail(key, "says otherwise than rope_scaling");
    if (from.traits.missingLocalTheta > 0.0 && !fields.scaling.truncate)
        f.fail(key,
            "has \"truncate\": false, which transformers does not read where layers turn by "
            "their type; remove it");
    rope.scaling = fields.scaling;
    rope.hasScaling = true;
}

// Positions of windowed layers are never scaled in published models.
void addLocalRope(JsonFields& f, const json& value, const std::string& source, GivenRope& rope)
{
    Result<RopeFields> read = readRopeFields(value, {}, source);
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
    JsonFields& f, const FamilySource& from, const char* key, const json& value, GivenRope& rope)
{
    const std::string inside = from.source + ", " + key;
    JsonFields types(value, inside);
    if (const json* full = types.find("full_attention"))
        addRope(f, from, key, *full, inside + ", full_attention", rope);
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
std::int64_t rotaryDim(JsonFields& f, const FamilySource& from, double given, std::int64_t headDim)
{
    const double share = given != 0.0 ? given : from.traits.missingRotaryShare;
    if (share == 1.0)
        return 0;
    if (!from.traits.partialRotary) {
        f.take(checkOtherField("partial_rotary_factor", json(share), from.source));
        return 0;
    }
    const auto turning = static_cast<std::int64_t>(static_cast<double>(headDim) * share);
    if (turning < 2 || turning % 2 != 0)
        f.fail("partial_rotary_factor",
            fmt::format("makes {} of {} dimensions turn; it must be an even number above 0, "
                        "because positions turn pairs",
                turning, headDim));
    return turning;
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

// Versions of transformers differ in what layers with a window take from a theta at the top.
void checkLocalTheta(JsonFields& f, const FamilySource& from, const GivenRope& rope)
{
    if (!from.traits.missingRope.empty() || rope.localTheta != 0.0 || rope.theta == 0.0)
        return;
    if (from.traits.missingTheta == from.traits.missingLocalTheta &&
        rope.theta != from.traits.missingTheta)
        f.fail("rope_theta", "does not say how sliding layers turn; write rope_parameters with "
                             "\"full_attention\" and \"sliding_attention\", a rope_theta in each");
}

void readScaling(JsonFields& f, const FamilySource& from, bool hasLocal, GivenRope& rope)
{
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
        const json* value = f.find(key);
        if (value != nullptr && hasLocal && isByLayerType(*value))
            addRopeByLayerType(f, from, key, *value, rope);
        else if (value != nullptr && hasLocal && std::string_view(key) == "rope_parameters")
            f.fail(key, "must hold \"full_attention\" and \"sliding_attention\": transformers "
                        "reads nothing of it otherwise; put what is there under full_attention");
        else if (value != nullptr)
            addRope(f, from, key, *value, from.source + ", " + key, rope);
    }
    if (!rope.hasScaling && !from.traits.missingRope.empty())
        addRope(
            f, from, "rope_parameters", json::parse(from.traits.missingRope), from.source, rope);
}

} // namespace

void readRopes(JsonFields& f, const FamilySource& from, ModelConfig& c)
{
    const ArchitectureTraits& traits = from.traits;
    const bool hasLocal = traits.missingLocalTheta > 0.0;
    GivenRope given;
    given.theta = f.number("rope_theta", 0.0);
    if (f.find("rope_theta") != nullptr && !(given.theta > 0.0))
        return f.fail("rope_theta", "must be above 0");
    if (hasLocal && f.find("rope_local_base_freq") != nullptr &&
        !((given.localTheta = f.number("rope_local_base_freq", 0.0)) > 0.0))
        return f.fail("rope_local_base_freq", "must be above 0");
    given.share = readRotaryShare(f);
    readScaling(f, from, hasLocal, given);
    if (hasLocal)
        checkLocalTheta(f, from, given);
    if (!f.status().ok())
        return;
    Rope& rope = c.ropes.front();
    rope.scaling = given.scaling;
    rope.theta = given.theta != 0.0 ? given.theta : traits.missingTheta;
    rope.rotaryDim = rotaryDim(f, from, given.share, c.block.headDim);
    readOriginalLength(f, from, rope.scaling);
    f.take(checkRope(rope.scaling, c.shapeOf(rope), from.source));
    if (hasLocal)
        c.ropes.push_back({given.localTheta != 0.0 ? given.localTheta : traits.missingLocalTheta,
            rope.rotaryDim, {}});
}

} // namespace mr
