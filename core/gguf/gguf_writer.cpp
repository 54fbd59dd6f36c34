#include "core/gguf/gguf_writer.h"

#include "core/base/parallel.h"
#include "core/base/shown_text.h"
#include "core/base/thread.h"
#include "core/base/whole_file.h"
#include "core/gguf/block_codes.h"
#include "core/gguf/gguf_header.h"
#include "core/gguf/value_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

namespace mr {

namespace {

constexpr std::int64_t kPieceElements = 1 << 20; // 4 MiB of F32
constexpr std::int64_t kShareElements = 1 << 14; // encoded by one thread at a time; whole blocks
constexpr int kMostThreads = 16;

Status refused(std::string_view kind, std::string_view name, const std::string& why)
{
    return Status::error(
        ErrorKind::InvalidArgument, fmt::format("{} {} {}", kind, shownName(name), why));
}

// The header, the places of tensors in the data, and all bytes of the data.
struct FilePlan {
    std::string header;
    std::uint64_t alignment = kGgufAlignment;
    std::vector<std::uint64_t> bytes; // of each tensor
    std::uint64_t dataBytes = 0;
};

Result<std::uint64_t> alignmentOf(const GgufValues& values)
{
    for (const auto& [key, value] : values) {
        if (key != kGgufAlignmentKey)
            continue;
        const auto* alignment = std::get_if<std::uint64_t>(&value.data);
        if (value.type == GgufValueType::U32 && alignment && std::has_single_bit(*alignment))
            return *alignment;
        return refused("key", key, "is not a power of two of type u32");
    }
    return std::uint64_t{kGgufAlignment};
}

Status addTensor(FilePlan& plan, const GgufSource& tensor)
{
    if (tensor.name.size() > kMostTensorNameBytes)
        return refused("tensor", tensor.name,
            fmt::format("has a name of more than {} bytes", kMostTensorNameBytes));
    if (tensor.ne.empty() || tensor.ne.size() > kMostDimensions)
        return refused("tensor", tensor.name, "has not 1 to 4 dimensions");
    if (!canEncodeBlocks(tensor.type))
        return refused("tensor", tensor.name,
            fmt::format("is to be {}, which is not written", ggufTypeInfo(tensor.type).name));
    Result<std::uint64_t> bytes = ggufTensorBytes(tensor.type, tensor.ne);
    if (!bytes.ok())
        return refused("tensor", tensor.name, bytes.status().message());
    appendText(plan.header, tensor.name);
    appendNumber(plan.header, static_cast<std::uint32_t>(tensor.ne.size()));
    for (const std::int64_t n : tensor.ne)
        appendNumber(plan.header, n);
    appendNumber(plan.header, static_cast<std::uint32_t>(tensor.type));
    appendNumber(plan.header, plan.dataBytes);
    plan.bytes.push_back(bytes.value());
    plan.dataBytes = alignedOffset(plan.dataBytes + bytes.value(), plan.alignment);
    return {};
}

Result<FilePlan> planFile(const GgufValues& values, const std::vector<GgufSource>& tensors)
{
    FilePlan plan;
    MR_ASSIGN(plan.alignment, alignmentOf(values));
    plan.header = "GGUF";
    appendNumber(plan.header, kGgufVersion);
    appendNumber<std::uint64_t>(plan.header, tensors.size());
    appendNumber<std::uint64_t>(plan.header, values.size());
    std::set<std::string_view> keys;
    for (const auto& [key, value] : values) {
        if (!keys.insert(key).second)
            return refused("key", key, "appears twice");
        MR_TRY(appendValue(plan.header, key, value));
    }
    std::set<std::string_view> names;
    for (const GgufSource& tensor : tensors) {
        if (!names.insert(tensor.name).second)
            return refused("tensor", tensor.name, "appears twice");
        MR_TRY(addTensor(plan, tensor));
    }
    plan.header.resize(alignedOffset(plan.header.size(), plan.alignment), '\0');
    return plan;
}

class TensorWriter
{
public:
    TensorWriter(WholeFile& file, std::uint64_t dataBytes, const WriteProgress& progress)
        : m_pool(std::clamp(static_cast<int>(physicalCores().size()), 1, kMostThreads), "gguf")
        , m_file(file)
        , m_meter(dataBytes, progress)
    {
    }

    Status write(const GgufSource& tensor, std::uint64_t bytes, std::uint64_t alignment);

private:
    void encode(GgufType type, std::span<const float> values, std::span<std::byte> out);
    Status put(std::span<const std::byte> bytes);

    ThreadPool m_pool;
    WholeFile& m_file;
    WriteMeter m_meter;
    std::vector<float> m_values;
    std::vector<std::byte> m_bytes;
};

Status TensorWriter::write(const GgufSource& tensor, std::uint64_t bytes, std::uint64_t alignment)
{
    const GgufTypeInfo& info = ggufTypeInfo(tensor.type);
    const auto count = static_cast<std::int64_t>(bytes) / info.bytes * info.elements;
    const std::int64_t row = tensor.ne.front();
    const std::int64_t piece =
        std::min(count, std::max<std::int64_t>(kPieceElements / row, 1) * row);
    m_values.resize(static_cast<std::size_t>(piece));
    m_bytes.resize(static_cast<std::size_t>(piece / info.elements * info.bytes));
    for (std::int64_t first = 0; first < count; first += piece) {
        const std::int64_t part = std::min(piece, count - first);
        const auto values = std::span(m_values).first(static_cast<std::size_t>(part));
        const auto encoded =
            std::span(m_bytes).first(static_cast<std::size_t>(part / info.elements * info.bytes));
        MR_TRY(tensor.fill(first, values));
        encode(tensor.type, values, encoded);
        MR_TRY(put(encoded));
    }
    m_bytes.assign(alignedOffset(bytes, alignment) - bytes, std::byte{0});
    return put(m_bytes);
}

void TensorWriter::encode(GgufType type, std::span<const float> values, std::span<std::byte> out)
{
    const GgufTypeInfo& info = ggufTypeInfo(type);
    const auto count = static_cast<std::int64_t>(values.size());
    const std::int64_t shares = (count + kShareElements - 1) / kShareElements;
    m_pool.parallelFor(shares, [&](std::int64_t share) {
        const std::int64_t first = share * kShareElements;
        const std::int64_t part = std::min(kShareElements, count - first);
        const auto bytesOf = [&](std::int64_t elements) {
            return static_cast<std::size_t>(elements / info.elements * info.bytes);
        };
        encodeBlocks(type,
            values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(part)),
            out.subspan(bytesOf(first), bytesOf(part)));
    });
}

Status TensorWriter::put(std::span<const std::byte> bytes)
{
    MR_TRY(m_file.write(bytes));
    return bytes.empty() ? Status() : m_meter.add(bytes.size());
}

} // namespace

Status writeGguf(const std::filesystem::path& file, const GgufValues& values,
    const std::vector<GgufSource>& tensors, const WriteProgress& progress)
{
    MR_ASSIGN(const FilePlan plan, planFile(values, tensors));
    MR_ASSIGN(WholeFile target, WholeFile::create(file));
    MR_TRY(target.write(std::as_bytes(std::span(plan.header))));
    TensorWriter writer(target, plan.dataBytes, progress);
    for (std::size_t i = 0; i < tensors.size(); ++i)
        MR_TRY(writer.write(tensors[i], plan.bytes[i], plan.alignment));
    return target.commit();
}

} // namespace mr
