#include "core/model/nf4_tensor.h"

#include "core/api/json_fields.h"
#include "core/base/shown_text.h"
#include "core/model/nf4_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace mr {
namespace {

constexpr std::size_t kMostStateBytes = 4096;
constexpr std::int64_t kMostBlock = 4096;
constexpr std::int64_t kLeastBlock = 32;

// Numbers of half precision are multiples of 2^-24, with 11 digits at most.
float toHalf(float value) noexcept
{
    constexpr float kMost = 65504.0F;
    int exponent = 0;
    (void)std::frexp(value, &exponent);
    const int digits = std::max(exponent - 11, -24);
    const float half = std::ldexp(std::nearbyint(std::ldexp(value, -digits)), digits);
    return std::clamp(half, -kMost, kMost);
}

std::int64_t blocksOf(std::int64_t count, std::int64_t block)
{
    return (count + block - 1) / block;
}

} // namespace

Status Nf4Tensor::refuse(const std::string& why) const
{
    return Status::error(ErrorKind::InvalidArgument,
        m_reader->path().string() + ": tensor " + shownName(m_name) + ": " + why);
}

Result<Nf4Tensor> Nf4Tensor::open(
    const std::string& name, const std::vector<std::int64_t>& shape, const Find& find)
{
    Nf4Tensor tensor;
    tensor.m_name = name;
    tensor.m_reader = find(name);
    tensor.m_elements = 1;
    for (const std::int64_t n : shape)
        tensor.m_elements *= n;
    const SafetensorsReader* state = find(name + std::string(kNf4State));
    if (tensor.m_reader == nullptr || state == nullptr)
        return Status::error(ErrorKind::InvalidArgument,
            "tensor " + shownName(name) + " or the state of its quantisation is missing");
    const SafetensorEntry& packed = tensor.m_reader->entries().at(name);
    if (packed.dtype != "U8" ||
        packed.end - packed.begin != static_cast<std::uint64_t>((tensor.m_elements + 1) / 2))
        return tensor.refuse(
            fmt::format("is {} of {} bytes, and {} elements of 4 bits are expected", packed.dtype,
                packed.end - packed.begin, tensor.m_elements));
    MR_TRY(tensor.readState(*state, shape));
    MR_TRY(tensor.readMaps(find));
    MR_TRY(tensor.restoreAbsmax(find));
    return tensor;
}

Status Nf4Tensor::readState(const SafetensorsReader& reader, const std::vector<std::int64_t>& shape)
{
    const std::string name = m_name + std::string(kNf4State);
    const SafetensorEntry& entry = reader.entries().at(name);
    const std::uint64_t length = entry.end - entry.begin;
    if (length > kMostStateBytes)
        return refuse("its quantisation state is no short text");
    std::string text(static_cast<std::size_t>(length), '\0');
    MR_TRY(reader.readBytes(name, 0, std::as_writable_bytes(std::span(text))));
    const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
    JsonFields fields(object, reader.path().string() + ": " + shownName(name));
    const std::string kind = fields.text("quant_type", "");
    const std::string type = fields.text("dtype", "");
    m_block = fields.requiredInteger("blocksize", {kLeastBlock, kMostBlock});
    m_nestedBlock = fields.integer("nested_blocksize", {1, kMostBlock}, 0);
    m_nestedOffset = fields.number("nested_offset", 0.0);
    if (kind != "nf4")
        fields.fail("quant_type", "is " + kind + "; nf4 is read");
    if (type != "bfloat16" && type != "float16" && type != "float32")
        fields.fail("dtype", "is " + type + "; bfloat16, float16 and float32 are read");
    if (fields.text("nested_dtype", "float32") != "float32")
        fields.fail("nested_dtype", "must be float32");
    const nlohmann::json* stated = fields.find("shape");
    if (stated == nullptr || *stated != nlohmann::json(shape))
        fields.fail("shape", "is not that of config.json");
    m_type = type == "bfloat16" ? Type::BF16 : type == "float16" ? Type::F16 : Type::F32;
    return fields.status();
}

Status Nf4Tensor::floatsOf(const Find& find, const std::string& part, std::span<float> out) const
{
    const SafetensorsReader* reader = find(m_name + part);
    const auto* entry = reader ? &reader->entries().at(m_name + part) : nullptr;
    if (entry == nullptr || entry->dtype != "F32" || entry->end - entry->begin != out.size_bytes())
        return refuse(
            fmt::format("{} is missing, or is not F32 of {} elements", part.substr(1), out.size()));
    MR_TRY(reader->readFloats(m_name + part, 0, out));
    const bool isUsable =
        std::ranges::all_of(out, [](float value) { return std::isfinite(value); });
    return isUsable ? Status() : refuse(part.substr(1) + " holds NaN or infinity");
}

Status Nf4Tensor::readMaps(const Find& find)
{
    return floatsOf(find, ".quant_map", m_map);
}

Status Nf4Tensor::restoreAbsmax(const Find& find)
{
    const auto blocks = static_cast<std::size_t>(blocksOf(m_elements, m_block));
    m_absmax.resize(blocks);
    if (m_nestedBlock == 0)
        return floatsOf(find, ".absmax", m_absmax);
    const std::string name = m_name + ".absmax";
    const SafetensorsReader* reader = find(name);
    if (reader == nullptr || reader->entries().at(name).dtype != "U8" ||
        reader->entries().at(name).end - reader->entries().at(name).begin != blocks)
        return refuse(fmt::format("absmax is missing, or is not U8 of {} elements", blocks));
    m_absmaxCodes.resize(blocks);
    MR_TRY(reader->readBytes(name, 0, std::as_writable_bytes(std::span(m_absmaxCodes))));
    MR_TRY(floatsOf(find, ".nested_quant_map", m_nestedMap));
    m_nested.resize(
        static_cast<std::size_t>(blocksOf(static_cast<std::int64_t>(blocks), m_nestedBlock)));
    MR_TRY(floatsOf(find, ".nested_absmax", m_nested));
    const auto offset = static_cast<float>(m_nestedOffset);
    for (std::size_t i = 0; i < blocks; ++i)
        m_absmax[i] =
            m_nestedMap[m_absmaxCodes[i]] * m_nested[i / static_cast<std::size_t>(m_nestedBlock)] +
            offset;
    return {};
}

Status Nf4Tensor::pack(std::span<std::byte> out)
{
    if (m_block != kNf4Block || m_nestedBlock != kNf4Nested || m_type != Type::BF16)
        return refuse(fmt::format("--method qlora holds NF4 in blocks of {} with double "
                                  "quantisation in blocks of {}, of bfloat16; this is other NF4. "
                                  "Use --method lora, which holds the model in 16 bit",
            kNf4Block, kNf4Nested));
    const Nf4Layout layout = nf4Layout(m_elements);
    const auto put = [&](std::size_t at, const auto& values) {
        const auto bytes = std::as_bytes(std::span(values));
        std::ranges::copy(bytes, out.begin() + static_cast<std::ptrdiff_t>(at));
        return at + bytes.size();
    };
    std::ranges::fill(out, std::byte{0});
    const std::array<float, 1> offset = {static_cast<float>(m_nestedOffset)};
    put(put(put(put(0, m_map), m_nestedMap), offset), m_nested);
    put(layout.absmaxAt, m_absmaxCodes);
    return m_reader->readBytes(
        m_name, 0, out.subspan(layout.codesAt, static_cast<std::size_t>((m_elements + 1) / 2)));
}

float Nf4Tensor::rounded(float value) const noexcept
{
    return m_type == Type::BF16  ? nearestBfloat(value)
           : m_type == Type::F16 ? toHalf(value)
                                 : value;
}

Status Nf4Tensor::read(std::int64_t first, std::span<float> out)
{
    if (out.empty())
        return {};
    const std::int64_t end = first + std::ssize(out);
    m_bytes.resize(static_cast<std::size_t>((end + 1) / 2 - first / 2));
    MR_TRY(m_reader->readBytes(m_name, static_cast<std::uint64_t>(first / 2), m_bytes));
    for (std::int64_t i = first; i < end; ++i) {
        const auto byte =
            std::to_integer<unsigned>(m_bytes[static_cast<std::size_t>(i / 2 - first / 2)]);
        const unsigned code = i % 2 == 0 ? byte >> 4 : byte & 0xFU;
        out[static_cast<std::size_t>(i - first)] =
            rounded(m_map[code] * m_absmax[static_cast<std::size_t>(i / m_block)]);
    }
    return {};
}

} // namespace mr
