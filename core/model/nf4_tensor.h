// Nf4Tensor: one matrix of a checkpoint in 4 bits, as bitsandbytes writes it, read as the numbers
// it stands for.
//
// Beside `P` (two elements a byte, the first one in the high half) lie P.absmax, P.quant_map and
// P.quant_state.bitsandbytes__nf4; with double quantisation absmax is a code of P.nested_quant_map
// times P.nested_absmax, plus an offset. An element is map[code] * absmax of its block, in F32,
// then rounded once to the type that the state names. Blocks run over the ends of rows.
//
// Threads  One thread at a time; blocks on files.
// Memory   4 bytes for each block, of one matrix.
// Errors   InvalidArgument/DataCorrupt names the file, the tensor and what is wrong.
// Source   Dettmers et al., "QLoRA", arXiv 2305.14314; bitsandbytes 95f9af3 functional.py; checked
//          with bitsandbytes 0.50.2.

#pragma once

#include "core/model/safetensors.h"

#include <millrace/status.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// Behind the name of a matrix.
inline constexpr std::string_view kNf4State = ".quant_state.bitsandbytes__nf4";
inline constexpr std::array<std::string_view, 5> kNf4Parts = {
    ".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map", kNf4State};

class Nf4Tensor
{
public:
    // `find` gives the reader of a tensor's file; null: there is no such tensor.
    using Find = std::function<const SafetensorsReader*(const std::string& name)>;

    static Result<Nf4Tensor> open(
        const std::string& name, const std::vector<std::int64_t>& shape, const Find& find);

    // Elements [first, first + out.size()).
    Status read(std::int64_t first, std::span<float> out);
    // The codes in the layout of nf4_code.h, whose bytes `out` has. InvalidArgument: they are
    // other ones: of other blocks, without double quantisation, or of another type than BF16.
    Status pack(std::span<std::byte> out);

private:
    enum class Type : std::uint8_t { F32, F16, BF16 };

    Status readState(const SafetensorsReader& reader, const std::vector<std::int64_t>& shape);
    Status readMaps(const Find& find);
    Status restoreAbsmax(const Find& find);
    Status refuse(const std::string& why) const;
    Status floatsOf(const Find& find, const std::string& part, std::span<float> out) const;
    float rounded(float value) const noexcept;

    const SafetensorsReader* m_reader = nullptr;
    std::string m_name;
    std::int64_t m_elements = 0;
    std::int64_t m_block = 0;
    std::int64_t m_nestedBlock = 0; // 0: absmax are no codes
    double m_nestedOffset = 0.0;
    Type m_type = Type::BF16;
    std::array<float, 16> m_map{};
    std::vector<float> m_absmax;
    std::vector<std::uint8_t> m_absmaxCodes; // with double quantisation; else these are empty
    std::array<float, 256> m_nestedMap{};
    std::vector<float> m_nested;
    std::vector<std::byte> m_bytes;
};

} // namespace mr
