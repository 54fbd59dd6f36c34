#include "core/base/cpu_features.h"

#include <fstream>

namespace mr {

Status checkProcessor()
{
    __builtin_cpu_init();
    const char* missing = nullptr;
    if (!__builtin_cpu_supports("avx2"))
        missing = "AVX2";
    else if (!__builtin_cpu_supports("fma"))
        missing = "FMA";
    else if (!__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2"))
        missing = "BMI";
    if (!missing)
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        std::string("this processor has no ") + missing +
            ": Millrace needs x86-64-v3 (Intel from 2013 on, AMD from 2015 on)");
}

std::string_view instructionSetName() noexcept
{
    __builtin_cpu_init();
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (!avx512)
        return "avx2";
    return __builtin_cpu_supports("avx512bf16") ? "avx512_bf16" : "avx512";
}

std::string processorName()
{
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos)
            return line.substr(colon + 2);
    }
    return "x86-64 processor";
}

} // namespace mr
