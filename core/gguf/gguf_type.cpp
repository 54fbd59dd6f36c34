#include "core/gguf/gguf_type.h"

#include <algorithm>
#include <array>

namespace mr {

namespace {

constexpr std::array<GgufTypeInfo, 13> kTypes = {{
    {GgufType::F32, "F32", 1, 4},
    {GgufType::F16, "F16", 1, 2},
    {GgufType::Q4_0, "Q4_0", 32, 18},
    {GgufType::Q4_1, "Q4_1", 32, 20},
    {GgufType::Q5_0, "Q5_0", 32, 22},
    {GgufType::Q5_1, "Q5_1", 32, 24},
    {GgufType::Q8_0, "Q8_0", 32, 34},
    {GgufType::Q2_K, "Q2_K", 256, 84},
    {GgufType::Q3_K, "Q3_K", 256, 110},
    {GgufType::Q4_K, "Q4_K", 256, 144},
    {GgufType::Q5_K, "Q5_K", 256, 176},
    {GgufType::Q6_K, "Q6_K", 256, 210},
    {GgufType::BF16, "BF16", 1, 2},
}};

struct UnreadType {
    std::uint32_t type;
    std::string_view name;
};

// Named in messages only.
constexpr std::array<UnreadType, 21> kUnreadTypes = {{{9, "Q8_1"}, {15, "Q8_K"}, {16, "IQ2_XXS"},
    {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},
    {23, "IQ4_XS"}, {24, "I8"}, {25, "I16"}, {26, "I32"}, {27, "I64"}, {28, "F64"}, {29, "IQ1_M"},
    {34, "TQ1_0"}, {35, "TQ2_0"}, {39, "MXFP4"}, {40, "NVFP4"}, {41, "Q1_0"}}};

} // namespace

const GgufTypeInfo* ggufTypeInfo(std::uint32_t type) noexcept
{
    const auto* at = std::find_if(kTypes.begin(), kTypes.end(),
        [&](const GgufTypeInfo& info) { return static_cast<std::uint32_t>(info.type) == type; });
    return at == kTypes.end() ? nullptr : at;
}

const GgufTypeInfo& ggufTypeInfo(GgufType type) noexcept
{
    return *ggufTypeInfo(static_cast<std::uint32_t>(type));
}

std::string ggufTypeName(std::uint32_t type)
{
    const std::string number = "type " + std::to_string(type);
    if (const GgufTypeInfo* info = ggufTypeInfo(type))
        return std::string(info->name) + " (" + number + ")";
    for (const UnreadType& unread : kUnreadTypes)
        if (unread.type == type)
            return std::string(unread.name) + " (" + number + ")";
    return number;
}

std::string ggufTypesRead()
{
    std::string names;
    for (const GgufTypeInfo& info : kTypes)
        names += (names.empty() ? "" : ", ") + std::string(info.name);
    return names;
}

} // namespace mr
