// Scaling of rotary positions in a GGUF file, in the words of config.json.
//
// Threads  Pure functions; they read small tensors of the file.

#pragma once

#include "core/exchange/gguf_config.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace mr {

// "rope_scaling" without rope_theta; an empty object: plain positions. `positions`:
// max_position_embeddings.
nlohmann::json ggufRopeScaling(const GgufKeys& keys, std::int64_t positions);

// The share of the pairs of a head that turn, by the divisors of their frequencies.
double ggufTurningShare(const GgufKeys& keys);

} // namespace mr
