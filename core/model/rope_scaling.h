// Rotary positions: their scaling in config.json, and the frequencies that follow.
//
// Training makes the frequencies once per run, for the longest sequence it can hold: `dynamic` and
// `longrope` depend on a length, and a choice by micro-batch would change the model under way.
// Evaluation and generation make them for the tokens that are there (ConstantTables::turnFor).
//
// Threads  Values and pure functions.
// Errors   InvalidArgument names source and field.
// Source   reference: model_semantics sections 1.3 and 1.4. Peng et al., "YaRN" (yarn); Ding et
//          al., "LongRoPE" (longrope).

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace mr {

class JsonFields;

enum class RopeType : std::uint8_t {
    Default,
    Linear,
    Dynamic,
    Llama3,
    Yarn,
    LongRope,
    Proportional
};

struct RopeScaling {
    RopeType type = RopeType::Default;
    double factor = 1.0;
    double originalPositions = 0.0;   // length the unscaled model was trained for; 0: not given
    double lowFrequencyFactor = 1.0;  // llama3
    double highFrequencyFactor = 4.0; // llama3
    double betaFast = 32.0;           // yarn: turns over the original length
    double betaSlow = 1.0;
    bool truncate = true;         // yarn: whole bounds of the ramp
    double attentionFactor = 0.0; // factor of cos and sin; 0: that of the type
    double mscale = 0.0;          // yarn; 0: not given
    double mscaleAllDim = 0.0;
    double share = 1.0; // proportional: of the pairs of a head; the others do not turn
    double alpha = 0.0; // theta becomes theta alpha^(d / (d - 2)); 0: not given
    // Queries are multiplied by 1 + queryGrowth ln(1 + floor(position / originalPositions)).
    double queryGrowth = 0.0;
    std::vector<float> shortFactors; // longrope, (rotaryDim / 2)
    std::vector<float> longFactors;

    // Whether the frequencies depend on how long a sequence is.
    bool dependsOnLength() const noexcept
    {
        return (type == RopeType::Dynamic && alpha == 0.0) || type == RopeType::LongRope;
    }

    bool operator==(const RopeScaling&) const = default;
};

// How the positions of some blocks turn.
struct Rope {
    double theta = 10000.0;
    std::int64_t rotaryDim = 0; // elements of a head that turn; 0: all
    RopeScaling scaling;
};

// Content of "rope_scaling" or, newer, "rope_parameters".
struct RopeFields {
    RopeScaling scaling;
    double theta = 0.0;       // 0: not given there
    double rotaryShare = 0.0; // partial_rotary_factor; the same
};
// partial_rotary_factor in (0, 1]; 0 if it is not given.
double readRotaryShare(JsonFields& fields);

// Fields that some families alone understand.
struct RopeExtras {
    bool alpha = false;       // "alpha" beside type "dynamic"
    bool queryGrowth = false; // "llama_4_scaling_beta"
    bool mrope = false;       // axes of pictures, which are equal for text
};

Result<RopeFields> readRopeFields(
    const nlohmann::json& value, const RopeExtras& extras, const std::string& source);

// Inputs of the frequencies. maxPositions: max_position_embeddings.
struct RopeShape {
    double theta = 10000.0;
    std::int64_t rotaryDim = 0; // elements of a head that turn
    std::int64_t maxPositions = 0;
};

// InvalidArgument if the scaling lacks a field that its type needs, or does not fit the shape.
Status checkRope(const RopeScaling& scaling, const RopeShape& shape, const std::string& source);

struct RopeFrequencies {
    std::vector<float> inverse;   // (rotaryDim / 2): radians per position
    double attentionFactor = 1.0; // factor of cos and sin
};

// The factor of the queries of a position.
double queryFactor(const RopeScaling& scaling, std::int64_t position) noexcept;

// `longest`: tokens of the longest sequence of the run. Precondition: checkRope() is ok.
RopeFrequencies ropeFrequencies(
    const RopeScaling& scaling, const RopeShape& shape, std::int64_t longest);

} // namespace mr
