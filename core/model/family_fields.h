// The fields of config.json in which families differ: rotary positions, biases, windows, gates,
// norms and soft-caps, by the row of the table of architectures.
//
// Threads  Pure.
// Errors   Kept in the JsonFields: InvalidArgument names the field, its value and the supported
//          ones.
// Source   reference: model_semantics sections 1.3 to 1.9.

#pragma once

#include "core/api/json_fields.h"
#include "core/model/architecture.h"
#include "core/model/model_config.h"

#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace mr {

struct FamilySource {
    const ArchitectureTraits& traits;
    const nlohmann::json& object; // config.json: tells a missing field from one that is null
    const std::string& source;
};

inline constexpr IntRange kLayerCounts{1, 10'000};
inline constexpr IntRange kLengths{1, std::numeric_limits<std::int32_t>::max()};

inline Status refuseConfig(const std::string& source, const std::string& why)
{
    return Status::error(ErrorKind::InvalidArgument, source + ": " + why);
}

// Precondition of these: the geometry of `config` is read.
void readFamily(JsonFields& fields, const FamilySource& from, ModelConfig& config);
// ModelConfig::ropes.
void readRopes(JsonFields& fields, const FamilySource& from, ModelConfig& config);
// Windows, and which blocks turn: ModelConfig::blocks, copies of `block`, or nothing if all are it.
void readBlockKinds(JsonFields& fields, const FamilySource& from, ModelConfig& config);
// Sizes, keys and inputs that layers have of their own beside that. Precondition: `blocks` has all
// of them.
void readLayerSizes(JsonFields& fields, const FamilySource& from, ModelConfig& config);

} // namespace mr
