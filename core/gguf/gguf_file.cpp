#include "core/gguf/gguf_file.h"

#include "core/base/shown_text.h"
#include "core/gguf/block_codes.h"
#include "core/gguf/gguf_header.h"

#include <fmt/format.h>

#include <algorithm>

namespace mr {

namespace {

constexpr std::uint64_t kPieceBytes = 256U << 10; // read and decoded at once: fits into a cache

// `first` and `out` in whole blocks.
Status readBlocks(
    const GgufFile& file, const GgufTensor& tensor, std::int64_t first, std::span<float> out)
{
    const GgufTypeInfo& info = ggufTypeInfo(tensor.type);
    const auto elements = static_cast<std::uint64_t>(info.elements);
    const auto bytes = static_cast<std::uint64_t>(info.bytes);
    const std::uint64_t firstBlock = static_cast<std::uint64_t>(first) / elements;
    const std::uint64_t blocks = out.size() / elements;
    const std::uint64_t pieceBlocks = std::min(blocks, kPieceBytes / bytes);
    std::vector<std::byte> piece(pieceBlocks * bytes);
    for (std::uint64_t done = 0; done < blocks; done += pieceBlocks) {
        const std::uint64_t count = std::min(pieceBlocks, blocks - done);
        const auto part = std::span(piece).first(count * bytes);
        MR_TRY(file.readBytes(tensor, (firstBlock + done) * bytes, part));
        decodeBlocks(tensor.type, part, out.subspan(done * elements, count * elements));
    }
    return {};
}

} // namespace

std::int64_t GgufTensor::count() const noexcept
{
    std::int64_t count = 1;
    for (const std::int64_t n : ne)
        count *= n;
    return count;
}

Result<GgufFile> GgufFile::open(const std::filesystem::path& file)
{
    GgufFile result;
    MR_ASSIGN(result.m_file, File::openRead(file));
    MR_ASSIGN(const std::uint64_t bytes, result.m_file.bytes());
    MR_ASSIGN(GgufHeader header, readGgufHeader(result.m_file, bytes));
    result.m_values = std::move(header.values);
    result.m_tensors = std::move(header.tensors);
    result.m_keys = std::move(header.keys);
    result.m_names = std::move(header.names);
    return result;
}

const GgufValue* GgufFile::find(std::string_view key) const
{
    const auto at = m_keys.find(key);
    return at == m_keys.end() ? nullptr : &m_values[at->second].second;
}

const GgufTensor* GgufFile::tensor(std::string_view name) const
{
    const auto at = m_names.find(name);
    return at == m_names.end() ? nullptr : &m_tensors[at->second];
}

Status GgufFile::readBytes(
    const GgufTensor& tensor, std::uint64_t offset, std::span<std::byte> out) const
{
    if (offset > tensor.bytes || out.size() > tensor.bytes - offset)
        return Status::error(
            ErrorKind::InvalidArgument, fmt::format("{}: tensor {} has only {} bytes",
                                            path().string(), shownName(tensor.name), tensor.bytes));
    return m_file.readAt(tensor.offset + offset, out);
}

Status GgufFile::readFloats(
    const GgufTensor& tensor, std::int64_t first, std::span<float> out) const
{
    const std::int64_t count = tensor.count();
    if (first < 0 || first > count || out.size() > static_cast<std::uint64_t>(count - first))
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("{}: tensor {} has {} elements, not {} from {} on", path().string(),
                shownName(tensor.name), count, out.size(), first));
    const std::int64_t elements = ggufTypeInfo(tensor.type).elements;
    const auto readPart = [&](std::int64_t at, std::span<float> part) -> Status {
        std::vector<float> block(static_cast<std::size_t>(elements));
        MR_TRY(readBlocks(*this, tensor, at / elements * elements, block));
        std::copy_n(block.begin() + at % elements, part.size(), part.begin());
        return {};
    };
    const auto toBoundary = static_cast<std::size_t>((elements - first % elements) % elements);
    const auto head = out.first(std::min(out.size(), toBoundary));
    const auto rest = out.subspan(head.size());
    const std::size_t tail = rest.size() % static_cast<std::size_t>(elements);
    const std::int64_t wholeFirst = first + static_cast<std::int64_t>(head.size());
    if (!head.empty())
        MR_TRY(readPart(first, head));
    MR_TRY(readBlocks(*this, tensor, wholeFirst, rest.first(rest.size() - tail)));
    const std::int64_t tailFirst = first + static_cast<std::int64_t>(out.size() - tail);
    return tail == 0 ? Status() : readPart(tailFirst, rest.last(tail));
}

} // namespace mr
