#include "core/model/rope_scaling.h"

#include "core/api/json_fields.h"
#include "core/model/config_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>

namespace mr {

using nlohmann::json;

namespace {

struct TypeName {
    std::string_view name;
    RopeType type;
};

// "su" is the first name of longrope.
constexpr std::array<TypeName, 8> kTypes = {
    {{"default", RopeType::Default}, {"linear", RopeType::Linear}, {"dynamic", RopeType::Dynamic},
        {"llama3", RopeType::Llama3}, {"yarn", RopeType::Yarn}, {"longrope", RopeType::LongRope},
        {"su", RopeType::LongRope}, {"proportional", RopeType::Proportional}}};

Status refuse(const std::string& source, const std::string& why)
{
    return Status::error(ErrorKind::InvalidArgument, source + ": " + why);
}

// Older configs say "type", newer ones "rope_type"; both may stand there and agree.
RopeType readType(JsonFields& fields, const std::string& source)
{
    const std::string older = fields.text("type", "");
    const std::string type = fields.text("rope_type", older.empty() ? "default" : older);
    if (!older.empty() && older != type)
        fields.take(refuse(source, "type is '" + older + "', but rope_type is '" + type + "'"));
    for (const TypeName& each : kTypes)
        if (each.name == type)
            return each.type;
    fields.take(refuse(source, "type '" + type + "' is not supported"));
    return RopeType::Default;
}

// Above 0, and finite: JSON has no other numbers.
double positive(JsonFields& fields, std::string_view key, double fallback)
{
    const bool given = fields.find(key) != nullptr;
    const double value = fields.number(key, fallback);
    if (given && !(value > 0.0 && value <= 1e15))
        fields.fail(key, "must be above 0");
    return value;
}

} // namespace

double readRotaryShare(JsonFields& fields)
{
    constexpr std::string_view kKey = "partial_rotary_factor";
    const double share = positive(fields, kKey, 0.0);
    if (share > 1.0)
        fields.fail(kKey, "must be at most 1");
    return share;
}

namespace {

double required(JsonFields& fields, std::string_view key)
{
    if (fields.find(key) == nullptr)
        fields.fail(key, "is missing");
    return positive(fields, key, 1.0);
}

std::vector<float> readFactors(JsonFields& fields, std::string_view key)
{
    std::vector<float> factors;
    const json* list = fields.find(key);
    if (list == nullptr || !list->is_array()) {
        fields.fail(key, "must be a list of numbers");
        return factors;
    }
    for (const json& item : *list) {
        const double value = item.is_number() ? item.get<double>() : 0.0;
        if (!(value > 0.0 && value <= 1e15)) {
            fields.fail(key, "holds " + shown(item) + "; numbers must be above 0");
            return factors;
        }
        factors.push_back(static_cast<float>(value));
    }
    return factors;
}

void readYarn(JsonFields& fields, RopeScaling& s)
{
    s.betaFast = positive(fields, "beta_fast", s.betaFast);
    s.betaSlow = positive(fields, "beta_slow", s.betaSlow);
    s.truncate = fields.boolean("truncate", true);
    for (const auto& [key, value] :
        {std::pair("mscale", &s.mscale), std::pair("mscale_all_dim", &s.mscaleAllDim)}) {
        *value = fields.number(key, 0.0); // 0 counts as not given
        if (!(*value >= 0.0 && *value <= 1e15))
            fields.fail(key, "must not be below 0");
    }
}

// Reads only the fields that the type knows; any other stays unknown and is judged by name.
void readOfType(JsonFields& fields, RopeScaling& s)
{
    s.originalPositions = positive(fields, "original_max_position_embeddings", 0.0);
    if (s.type == RopeType::Yarn || s.type == RopeType::LongRope)
        s.attentionFactor = positive(fields, "attention_factor", 0.0);
    switch (s.type) {
    case RopeType::Default:
        return;
    case RopeType::Linear:
    case RopeType::Dynamic:
        s.factor = required(fields, "factor");
        return;
    case RopeType::Llama3:
        s.factor = required(fields, "factor");
        s.lowFrequencyFactor = required(fields, "low_freq_factor");
        s.highFrequencyFactor = required(fields, "high_freq_factor");
        if (s.originalPositions == 0.0)
            fields.fail("original_max_position_embeddings", "is missing");
        return;
    case RopeType::Yarn:
        s.factor = required(fields, "factor");
        readYarn(fields, s);
        return;
    case RopeType::Proportional:
        s.factor = positive(fields, "factor", 1.0);
        return;
    case RopeType::LongRope:
        s.factor = positive(fields, "factor", 0.0); // 0: from the lengths
        s.shortFactors = readFactors(fields, "short_factor");
        s.longFactors = readFactors(fields, "long_factor");
        return;
    }
}

// Beside it, published models have fields that its class does not read.
void readAlpha(JsonFields& fields, RopeScaling& s)
{
    s.alpha = positive(fields, "alpha", 0.0);
    if (s.alpha > 0.0)
        for (const char* unread : {"beta_fast", "beta_slow", "mscale", "mscale_all_dim"})
            fields.find(unread);
}

void readQueryGrowth(JsonFields& fields, RopeScaling& s)
{
    constexpr const char* kKey = "llama_4_scaling_beta";
    s.queryGrowth = fields.number(kKey, 0.0);
    fields.find("max_position_embeddings"); // repeats that of the model
    if (!(s.queryGrowth >= 0.0 && s.queryGrowth <= 1e3))
        fields.fail(kKey, "must be from 0 to 1000");
    if (s.queryGrowth > 0.0 && s.originalPositions == 0.0)
        fields.fail("original_max_position_embeddings", "is missing");
}

// theta^(2i / rotaryDim), the exponent and the power rounded to F32 as published models do.
float powerOf(double theta, std::int64_t i, std::int64_t rotaryDim)
{
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotaryDim);
    return static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
}

std::vector<float> plainFrequencies(double theta, std::int64_t rotaryDim)
{
    std::vector<float> inverse(static_cast<std::size_t>(rotaryDim / 2));
    for (std::int64_t i = 0; i < rotaryDim / 2; ++i)
        inverse[static_cast<std::size_t>(i)] = 1.0F / powerOf(theta, i, rotaryDim);
    return inverse;
}

// The base grows with the length of the sequence beyond the model's own.
double dynamicTheta(const RopeScaling& s, const RopeShape& shape, std::int64_t longest)
{
    if (s.alpha > 0.0) {
        const auto dims = static_cast<double>(shape.rotaryDim);
        return shape.theta * std::pow(s.alpha, dims / (dims - 2.0));
    }
    const auto limit = static_cast<double>(shape.maxPositions);
    const double length = std::max(limit, static_cast<double>(longest));
    const auto d = static_cast<double>(shape.rotaryDim);
    const double stretch = s.factor * length / limit - (s.factor - 1.0);
    return shape.theta * std::pow(stretch, d / (d - 2.0));
}

double llama3Frequency(const RopeScaling& s, double inverse)
{
    const double wave = 2.0 * std::numbers::pi / inverse;
    if (wave < s.originalPositions / s.highFrequencyFactor)
        return inverse;
    if (wave > s.originalPositions / s.lowFrequencyFactor)
        return inverse / s.factor;
    const double smooth = (s.originalPositions / wave - s.lowFrequencyFactor) /
                          (s.highFrequencyFactor - s.lowFrequencyFactor);
    return (1.0 - smooth) * inverse / s.factor + smooth * inverse;
}

double originalLength(const RopeScaling& s, const RopeShape& shape)
{
    return s.originalPositions > 0.0 ? s.originalPositions
                                     : static_cast<double>(shape.maxPositions);
}

// The pair that turns `turns` times over the original length.
double yarnPair(double turns, const RopeScaling& s, const RopeShape& shape)
{
    const double waves = originalLength(s, shape) / (turns * 2.0 * std::numbers::pi);
    return static_cast<double>(shape.rotaryDim) * std::log(waves) / (2.0 * std::log(shape.theta));
}

void scaleYarn(const RopeScaling& s, const RopeShape& shape, std::vector<float>& inverse)
{
    double low = yarnPair(s.betaFast, s, shape);
    double high = yarnPair(s.betaSlow, s, shape);
    if (s.truncate) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(shape.rotaryDim - 1));
    if (low == high)
        high += 0.001;
    for (std::size_t i = 0; i < inverse.size(); ++i) {
        const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
        const auto plain = static_cast<double>(inverse[i]);
        inverse[i] = static_cast<float>(plain / s.factor * ramp + plain * (1.0 - ramp));
    }
}

double yarnMagnitude(double factor, double mscale)
{
    return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

// Published Phi-3 models give no factor: it is the ratio of the two lengths.
double longRopeFactor(const RopeScaling& s, const RopeShape& shape)
{
    return s.factor > 0.0 ? s.factor
                          : static_cast<double>(shape.maxPositions) / s.originalPositions;
}

double attentionFactor(const RopeScaling& s, const RopeShape& shape)
{
    if (s.attentionFactor > 0.0)
        return s.attentionFactor;
    if (s.type == RopeType::Yarn) {
        if (s.mscale > 0.0 && s.mscaleAllDim > 0.0)
            return yarnMagnitude(s.factor, s.mscale) / yarnMagnitude(s.factor, s.mscaleAllDim);
        return yarnMagnitude(s.factor, 1.0);
    }
    if (s.type != RopeType::LongRope)
        return 1.0;
    const double factor = longRopeFactor(s, shape);
    return factor <= 1.0 ? 1.0
                         : std::sqrt(1.0 + std::log(factor) / std::log(originalLength(s, shape)));
}

} // namespace

Result<RopeFields> readRopeFields(
    const json& value, const RopeExtras& extras, const std::string& source)
{
    JsonFields fields(value, source);
    MR_TRY(fields.status());
    RopeFields read;
    read.scaling.type = readType(fields, source);
    read.theta = positive(fields, "rope_theta", 0.0);
    read.rotaryShare = readRotaryShare(fields);
    if (fields.status().ok())
        readOfType(fields, read.scaling);
    if (read.scaling.type == RopeType::Proportional)
        read.scaling.share = std::exchange(read.rotaryShare, 0.0);
    if (read.scaling.share == 0.0)
        read.scaling.share = 1.0;
    if (extras.alpha && read.scaling.type == RopeType::Dynamic)
        readAlpha(fields, read.scaling);
    if (extras.queryGrowth)
        readQueryGrowth(fields, read.scaling);
    if (extras.mrope)
        for (const char* unread : {"mrope_section", "mrope_interleaved"})
            fields.find(unread);
    MR_TRY(fields.status());
    for (const std::string& name : fields.unknown())
        MR_TRY(checkOtherField(name, value[name], source));
    return read;
}

namespace {

std::size_t turningPairs(const RopeScaling& s, const RopeShape& shape)
{
    return static_cast<std::size_t>(s.share * static_cast<double>(shape.rotaryDim) / 2.0);
}

} // namespace

Status checkRope(const RopeScaling& s, const RopeShape& shape, const std::string& source)
{
    const auto half = static_cast<std::size_t>(shape.rotaryDim / 2);
    if (!(shape.theta > 1.0) && s.type != RopeType::Default)
        return refuse(source, "a scaled rope_theta must be above 1");
    if (s.type == RopeType::Dynamic && shape.rotaryDim <= 2)
        return refuse(source, "type 'dynamic' needs heads of more than two dimensions");
    if (s.type == RopeType::Llama3 && !(s.highFrequencyFactor > s.lowFrequencyFactor))
        return refuse(source, "high_freq_factor must be above low_freq_factor");
    if (s.type != RopeType::LongRope)
        return {};
    if (s.shortFactors.size() != half || s.longFactors.size() != half)
        return refuse(source, fmt::format("short_factor and long_factor must have {} numbers each, "
                                          "one for each pair that turns",
                                  half));
    if (s.originalPositions == 0.0 && s.factor == 0.0)
        return refuse(source, "type 'longrope' needs factor or original_max_position_embeddings");
    if (!(originalLength(s, shape) > 1.0))
        return refuse(source, "original_max_position_embeddings must be above 1");
    return {};
}

double queryFactor(const RopeScaling& s, std::int64_t position) noexcept
{
    if (s.queryGrowth == 0.0)
        return 1.0;
    const double turns = std::floor(static_cast<double>(position) / s.originalPositions);
    return 1.0 + s.queryGrowth * std::log(1.0 + turns);
}

RopeFrequencies ropeFrequencies(const RopeScaling& s, const RopeShape& shape, std::int64_t longest)
{
    const double theta =
        s.type == RopeType::Dynamic ? dynamicTheta(s, shape, longest) : shape.theta;
    RopeFrequencies out{plainFrequencies(theta, shape.rotaryDim), attentionFactor(s, shape)};
    const bool isLong = static_cast<double>(longest) > originalLength(s, shape);
    const std::vector<float>& factors = isLong ? s.longFactors : s.shortFactors;
    for (std::size_t i = 0; i < out.inverse.size(); ++i) {
        float& inverse = out.inverse[i];
        if (s.type == RopeType::Proportional && i >= turningPairs(s, shape))
            inverse = 0.0F;
        else if (s.type == RopeType::Linear || s.type == RopeType::Proportional)
            inverse = static_cast<float>(static_cast<double>(inverse) / s.factor);
        else if (s.type == RopeType::Llama3)
            inverse = static_cast<float>(llama3Frequency(s, static_cast<double>(inverse)));
        else if (s.type == RopeType::LongRope)
            inverse =
                1.0F / (factors[i] * powerOf(theta, static_cast<std::int64_t>(i), shape.rotaryDim));
    }
    if (s.type == RopeType::Yarn)
        scaleYarn(s, shape, out.inverse);
    return out;
}

} // namespace mr
