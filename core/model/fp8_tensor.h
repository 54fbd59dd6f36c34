// Fp8Tensor: one matrix of a checkpoint in E4M3, as FP8 editions of models are published, read as
// the numbers it stands for.
//
// Beside `P` lies P with "_scale_inv" behind it: one factor of the whole matrix, or one of each
// block of 128 x 128. An element is code * factor, in F32. A factor of activations may lie there,
// too; it serves computing in FP8 and is not read.
//
// Threads  One thread at a time; blocks on files.
// Memory   4 bytes a block.
// Errors   InvalidArgument/DataCorrupt names the file, the tensor and what is wrong.
// Source   DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv 2412.19437, section 3.3 (blocks);
//          transformers 5.23 integrations/finegrained_fp8.py.

#pragma once

#include "core/model/safetensors.h"

#include <millrace/status.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// Behind the name of a matrix.
inline constexpr std::string_view kFp8Scale = "_scale_inv";
// In place of ".weight" at its end: factors of activations.
inline constexpr std::array<std::string_view, 2> kFp8Activations = {
    ".activation_scale", ".input_scale"};

class Fp8Tensor
{
public:
    // `scales` holds the factors of the matrix that `codes` holds.
    static Result<Fp8Tensor> open(const std::string& name, const std::vector<std::int64_t>& shape,
        const SafetensorsReader& codes, const SafetensorsReader& scales);

    // Elements [first, first + out.size()).
    Status read(std::int64_t first, std::span<float> out);

private:
    float factorOf(std::int64_t row, std::int64_t col) const noexcept;

    const SafetensorsReader* m_codes = nullptr;
    std::string m_name;
    std::int64_t m_cols = 0;
    std::int64_t m_blockCols = 0; // blocks in a row; 0: one factor
    std::vector<float> m_factors;
    std::vector<std::byte> m_bytes;
};

} // namespace mr
