#include "core/exchange/gguf_rope.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <utility>
#include <vector>

namespace mr {

using nlohmann::json;

namespace {

constexpr std::int64_t kMostPairs = 10'000;
constexpr const char* kDivisors = "rope_freqs.weight";
constexpr const char* kLongFactors = "rope_factors_long.weight";

std::vector<float> floatsOf(const GgufKeys& keys, const char* name)
{
    const GgufTensor* tensor = keys.file().tensor(name);
    if (tensor == nullptr || tensor->count() > kMostPairs)
        return {};
    std::vector<float> values(static_cast<std::size_t>(tensor->count()));
    return keys.file().readFloats(*tensor, 0, values).ok() ? values : std::vector<float>();
}

json yarn(const GgufKeys& keys, double factor, std::int64_t positions)
{
    json rope{{"rope_type", "yarn"}, {"factor", factor},
        {"original_max_position_embeddings",
            keys.count("rope.scaling.original_context_length", positions)},
        {"beta_fast", keys.number("rope.scaling.yarn_beta_fast", 32.0)},
        {"beta_slow", keys.number("rope.scaling.yarn_beta_slow", 1.0)}};
    const double all = keys.number("rope.scaling.yarn_log_multiplier", 0.0);
    if (all > 0.0) {
        rope["mscale"] = 1.0;
        rope["mscale_all_dim"] = all;
    }
    if (const double own = keys.number("rope.scaling.attn_factor", 0.0); own > 0.0)
        rope["attention_factor"] = own * (1.0 + 0.1 * std::log(factor));
    if (const double growth = keys.number("attention.temperature_scale", 0.0); growth != 0.0)
        rope["llama_4_scaling_beta"] = growth;
    return rope;
}

// A pair between those that stay and those that are stretched whole.
struct Between {
    double inverse = 0.0; // of the wavelength
    double share = 0.0;   // that stays
};

std::vector<Between> pairsBetween(const std::vector<float>& divisors, double factor, double theta)
{
    constexpr double kEdge = 1e-4;
    std::vector<Between> pairs;
    for (std::size_t i = 0; i < divisors.size(); ++i) {
        const double wave =
            2.0 * std::numbers::pi *
            std::pow(theta, static_cast<double>(i) / static_cast<double>(divisors.size()));
        const double share = (1.0 / divisors[i] - 1.0 / factor) / (1.0 - 1.0 / factor);
        if (share > kEdge && share < 1.0 - kEdge)
            pairs.push_back({1.0 / wave, share});
    }
    return pairs;
}

// The settings that the divisors follow from. Between the wavelengths that stay and those that are
// stretched whole, the share that stays is a line over 1 / wavelength:
//     divisor = 1 / ((1 - share) / factor + share)
//     share = (original / wavelength - low) / (high - low)
// Ratios of original, low and high can be told alone, so low is 1. Whether the file's divisors
// follow from them is checked when its weights are opened.
json llama3(const GgufKeys& keys)
{
    const std::vector<float> divisors = floatsOf(keys, kDivisors);
    const double factor =
        divisors.empty() ? 1.0 : *std::max_element(divisors.begin(), divisors.end());
    const auto pairs = pairsBetween(divisors, factor, keys.number("rope.freq_base", 10000.0));
    double high = 4.0; // as published
    double original = 8192.0;
    if (pairs.size() == 1)
        original = (pairs[0].share * (high - 1.0) + 1.0) / pairs[0].inverse;
    if (pairs.size() > 1) {
        const Between& first = pairs.front();
        const Between& last = pairs.back();
        const double slope = (last.share - first.share) / (last.inverse - first.inverse);
        const double low = slope * first.inverse - first.share; // low / (high - low)
        high = 1.0 + 1.0 / low;
        original = slope / low;
    }
    return {{"rope_type", "llama3"}, {"factor", factor}, {"low_freq_factor", 1.0},
        {"high_freq_factor", high}, {"original_max_position_embeddings", std::round(original)}};
}

} // namespace

json ggufRopeScaling(const GgufKeys& keys, std::int64_t positions)
{
    const std::string type = keys.text("rope.scaling.type");
    const double factor = keys.number("rope.scaling.factor", 1.0);
    if (type == "linear" && factor != 1.0)
        return {{"rope_type", "linear"}, {"factor", factor}};
    if (type == "yarn")
        return yarn(keys, factor, positions);
    if (type == "longrope" || keys.file().tensor(kLongFactors) != nullptr)
        return {{"rope_type", "longrope"},
            {"short_factor", floatsOf(keys, "rope_factors_short.weight")},
            {"long_factor", floatsOf(keys, kLongFactors)}};
    return keys.file().tensor(kDivisors) != nullptr ? llama3(keys) : json::object();
}

double ggufTurningShare(const GgufKeys& keys)
{
    constexpr float kStill = 1e20F; // divisors of pairs that do not turn are above
    const std::vector<float> divisors = floatsOf(keys, kDivisors);
    if (divisors.empty())
        return 1.0;
    const auto turning =
        std::ranges::count_if(divisors, [](float divisor) { return divisor < kStill; });
    return static_cast<double>(turning) / static_cast<double>(divisors.size());
}

} // namespace mr
