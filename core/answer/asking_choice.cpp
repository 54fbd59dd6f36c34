#include "core/answer/asking_choice.h"

#include "core/base/bytes.h"

#include <fmt/format.h>

namespace mr {

AskingChoice chooseAsking(const AskingRoom& f32, const AskingRoom& bf16) noexcept
{
    if (f32.fits())
        return {DType::F32, f32};
    if (bf16.fits())
        return {DType::BF16, bf16};
    return {std::nullopt, bf16};
}

std::string unaskedNote(const AskingRoom& room)
{
    return fmt::format("It was not asked: asking needs {} of memory, and {} are free. Close other "
                       "programs and export again, or ask it on a PC with more memory.",
        formatBytes(room.neededBytes), formatBytes(room.freeBytes));
}

} // namespace mr
