// The table of families as GGUF files name them: general.architecture, and what llama.cpp loads and
// computes under that name.
//
// Threads  Pure functions over constants.
// Source   reference: export sections 3 and 5, families_2026 section 5.1; src/models of llama.cpp.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace mr {

// Products that may have a bias.
enum class GgufBiases : std::uint8_t {
    Qkv,       // q, k and v
    Attention, // q, k, v and o
    All
};

struct GgufFamily {
    std::string_view family;       // ArchitectureTraits::name
    std::string_view architecture; // general.architecture
    GgufBiases biases = GgufBiases::Qkv;
    bool turnsNeighbours = false; // rows of q and k of a head are stored as neighbouring pairs
    bool splitsGateUp = false;    // gate and up in one tensor become two
    bool ropeFactors = false;     // a tensor of factors of the frequencies is loaded
    bool squareOut = false;       // the heads of a token are as long as its row of the stream
    bool ownHead = false;         // a head is loaded even where it is the embedding
    std::string_view mlpNorm = "ffn_norm"; // the norm that the MLP reads
};

std::span<const GgufFamily> ggufFamilies() noexcept;

// Null: none. Of several with one architecture the first.
const GgufFamily* ggufFamilyOf(std::string_view family) noexcept;
const GgufFamily* ggufFamilyOfArchitecture(std::string_view architecture) noexcept;

} // namespace mr
