// The precision in which an exported model is asked: F32, or BF16 where F32 needs more memory than
// is free; without memory for either it is not asked.
//
// Threads  Pure functions.
// Errors   None.
// Units    Bytes.

#pragma once

#include "core/device/tensor.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mr {

// Memory for the questions in one precision.
struct AskingRoom {
    std::uint64_t neededBytes = 0;
    std::uint64_t freeBytes = 0;

    bool fits() const noexcept { return neededBytes <= freeBytes; }
};

struct AskingChoice {
    std::optional<DType> compute; // empty: it is not asked
    AskingRoom room;              // of that precision; of BF16 where there is none
};

AskingChoice chooseAsking(const AskingRoom& f32, const AskingRoom& bf16) noexcept;

// A sentence for who exports: why it was not asked, and the way out.
std::string unaskedNote(const AskingRoom& room);

} // namespace mr
