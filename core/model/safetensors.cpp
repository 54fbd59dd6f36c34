#include "core/model/safetensors.h"

#include "core/base/half.h"
#include "core/base/shown_text.h"
#include "core/base/whole_file.h"
#include "core/model/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace mr {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMostHeaderBytes = 100'000'000; // the format's own limit
constexpr std::uint64_t kReadBytes = 8U << 20;
constexpr std::size_t kPieceElements = 1U << 14;              // on the stack
constexpr std::int64_t kMostElements = std::int64_t{1} << 60; // times 4 bytes does not overflow
constexpr std::size_t kHeadBytes = 64;                        // enough to recognise another format

Status corrupt(const std::filesystem::path& file, const std::string& why)
{
    return Status::error(ErrorKind::DataCorrupt, file.string() + ": " + why);
}

Status endsEarly(const std::filesystem::path& file, std::uint64_t bytes, std::uint64_t wanted)
{
    return corrupt(file, fmt::format("ends early ({} of {} bytes); fetch it again", bytes, wanted));
}

// Looks at the first bytes; the length of the header if they can be those of a safetensors file.
Result<std::uint64_t> headerBytes(const File& file, std::uint64_t fileBytes)
{
    std::array<char, kHeadBytes> head{};
    const std::size_t count = std::min<std::uint64_t>(kHeadBytes, fileBytes);
    MR_TRY(file.readAt(0, std::as_writable_bytes(std::span(head)).first(count)));
    std::uint64_t length = 0;
    std::memcpy(&length, head.data(), kLengthBytes);
    const bool fits = count >= kLengthBytes + 2 && length >= 2 && length <= kMostHeaderBytes;
    if (fits && head[kLengthBytes] == '{')
        return length;
    const std::string known = describeForeignFile({head.data(), count});
    if (!known.empty())
        return corrupt(file.path(), known);
    if (count < kLengthBytes + 2)
        return corrupt(
            file.path(), fmt::format("not a safetensors file: it has only {} bytes", count));
    if (!fits)
        return corrupt(file.path(),
            fmt::format(
                "not a safetensors file: its header would have {} bytes (2 to 100000000 allowed)",
                length));
    return corrupt(file.path(), "not a safetensors file: the header does not begin with {");
}

std::uint64_t alignedHeader(std::string& header)
{
    header.append((8 - header.size() % 8) % 8, ' '); // so that the data begins aligned
    return header.size();
}

// The header of tensors laid one after the other; `total` becomes the bytes of the data.
Result<std::string> makeHeader(const std::vector<SafetensorSource>& tensors, std::uint64_t& total)
{
    std::string header = R"({"__metadata__":{"format":"pt"})";
    for (const SafetensorSource& t : tensors) {
        auto bits = static_cast<std::uint64_t>(safetensorBits(t.dtype));
        std::string shape;
        for (const std::int64_t n : t.shape) {
            bits *= static_cast<std::uint64_t>(n);
            shape += (shape.empty() ? "" : ",") + std::to_string(n);
        }
        if (bits == 0 ? t.bytes != 0 : bits / 8 != t.bytes)
            return Status::error(ErrorKind::Internal,
                "tensor " + shownName(t.name) + ": shape and bytes to write disagree");
        header += "," + nlohmann::json(t.name).dump() + R"(:{"dtype":")" + t.dtype +
                  R"(","shape":[)" + shape + R"(],"data_offsets":[)" + std::to_string(total) + "," +
                  std::to_string(total + t.bytes) + "]}";
        total += t.bytes;
    }
    header += "}";
    return header;
}

} // namespace

Result<SafetensorsReader> SafetensorsReader::open(const std::filesystem::path& file)
{
    SafetensorsReader reader;
    reader.m_path = file;
    MR_ASSIGN(reader.m_file, File::openRead(file));
    Result<std::uint64_t> bytes = reader.m_file.bytes();
    MR_TRY(bytes.status());
    MR_ASSIGN(std::uint64_t length, headerBytes(reader.m_file, bytes.value()));
    const std::uint64_t dataBegin = kLengthBytes + length;
    if (dataBegin > bytes.value())
        return endsEarly(file, bytes.value(), dataBegin);
    std::string header(length, '\0');
    MR_TRY(reader.m_file.readAt(kLengthBytes, std::as_writable_bytes(std::span(header))));
    MR_ASSIGN(reader.m_entries, parseSafetensorsHeader(header, file.string()));
    // Spans tile from 0, so the data of the file must be exactly the last end.
    std::uint64_t dataBytes = 0;
    for (auto& [name, entry] : reader.m_entries)
        dataBytes = std::max(dataBytes, entry.end);
    const std::uint64_t present = bytes.value() - dataBegin;
    if (dataBytes > present)
        return endsEarly(file, bytes.value(), dataBegin + dataBytes);
    if (dataBytes < present)
        return corrupt(
            file, fmt::format("has {} bytes after its last tensor that belong to nothing",
                      present - dataBytes));
    for (auto& [name, entry] : reader.m_entries) {
        entry.begin += dataBegin;
        entry.end += dataBegin;
    }
    return reader;
}

Status SafetensorsReader::readBytes(
    const std::string& name, std::uint64_t offset, std::span<std::byte> out) const
{
    const auto at = m_entries.find(name);
    if (at == m_entries.end())
        return Status::error(
            ErrorKind::InvalidArgument, m_path.string() + ": has no tensor " + shownName(name));
    const std::uint64_t bytes = at->second.end - at->second.begin;
    if (offset > bytes || out.size() > bytes - offset)
        return Status::error(
            ErrorKind::InvalidArgument, fmt::format("{}: tensor {} has only {} bytes",
                                            m_path.string(), shownName(name), bytes));
    return m_file.readAt(at->second.begin + offset, out);
}

Status SafetensorsReader::readFloats(
    const std::string& name, std::int64_t first, std::span<float> out) const
{
    const auto at = m_entries.find(name);
    const std::string dtype = at == m_entries.end() ? "F32" : at->second.dtype;
    if (first < 0 || first > kMostElements)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("tensor {}: no element {}", shownName(name), first));
    const auto position = static_cast<std::uint64_t>(first);
    if (dtype == "F32")
        return readBytes(name, position * sizeof(float), std::as_writable_bytes(out));
    if (dtype != "F16" && dtype != "BF16")
        return Status::error(
            ErrorKind::InvalidArgument, m_path.string() + ": tensor " + shownName(name) +
                                            " has dtype " + dtype + "; F32, F16 and BF16 are read");
    std::array<std::uint16_t, kPieceElements> piece;
    for (std::size_t done = 0; done < out.size(); done += piece.size()) {
        const auto part = std::span(piece).first(std::min(piece.size(), out.size() - done));
        MR_TRY(readBytes(name, (position + done) * 2, std::as_writable_bytes(part)));
        std::transform(part.begin(), part.end(), out.begin() + static_cast<std::ptrdiff_t>(done),
            dtype == "F16" ? halfValue : bfloatValue);
    }
    return {};
}

Status writeSafetensors(
    const std::filesystem::path& file, const std::vector<SafetensorSource>& tensors)
{
    std::uint64_t total = 0;
    MR_ASSIGN(std::string header, makeHeader(tensors, total));
    MR_ASSIGN(WholeFile target, WholeFile::create(file));
    const std::uint64_t length = alignedHeader(header);
    MR_TRY(target.write(std::as_bytes(std::span(&length, 1))));
    MR_TRY(target.write(std::as_bytes(std::span(header))));
    std::vector<std::byte> piece(std::min(kReadBytes, total));
    for (const SafetensorSource& t : tensors) {
        for (std::uint64_t at = 0; at < t.bytes; at += piece.size()) {
            const auto part =
                std::span(piece).first(std::min<std::uint64_t>(piece.size(), t.bytes - at));
            MR_TRY(t.fill(at, part));
            MR_TRY(target.write(part));
        }
    }
    return target.commit();
}

} // namespace mr
