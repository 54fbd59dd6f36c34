// One target as a libFuzzer program; MR_FUZZ_TARGET is its function.

#include "fuzz/targets.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    mr::fuzz::MR_FUZZ_TARGET({reinterpret_cast<const char*>(data), bytes});
    return 0;
}
