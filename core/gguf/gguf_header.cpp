#include "core/gguf/gguf_header.h"

#include "core/base/shown_text.h"
#include "core/base/utf8.h"
#include "core/gguf/header_bytes.h"
#include "core/gguf/value_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace mr {

namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint64_t kLeastKeyBytes = 13;    // length, type and value of one byte
constexpr std::uint64_t kLeastTensorBytes = 32; // length, one dimension, type and offset

struct ForeignStart {
    std::string_view bytes;
    const char* what;
};

constexpr const char* kBeforeGguf =
    "a GGML file from before GGUF, which is not read; convert the model anew";
constexpr std::array<ForeignStart, 6> kForeign = {
    {{"version https://git-lfs", "git-lfs pointer: run `git lfs pull` in the "
                                 "folder to fetch the file itself"},
        {"lmgg", kBeforeGguf}, {"fmgg", kBeforeGguf}, {"tjgg", kBeforeGguf}, {"algg", kBeforeGguf},
        {"<", "a web page or XML, not a model; the download went wrong, fetch it again"}}};

// Before anything is parsed: a file of another kind is named.
Status checkMagic(const File& file, std::uint64_t fileBytes)
{
    std::array<char, 24> bytes{};
    const std::size_t count = std::min<std::uint64_t>(bytes.size(), fileBytes);
    MR_TRY(file.readAt(0, std::as_writable_bytes(std::span(bytes)).first(count)));
    const std::string_view start(bytes.data(), count);
    if (start.starts_with(kMagic))
        return {};
    std::string what = "not a GGUF file: it does not begin with GGUF";
    if (start.empty())
        what = "the file is empty; fetch it again";
    for (const ForeignStart& foreign : kForeign)
        if (start.starts_with(foreign.bytes))
            what = foreign.what;
    return Status::error(ErrorKind::DataCorrupt, file.path().string() + ": byte 0: " + what);
}

class HeaderParser
{
public:
    HeaderParser(const File& file, std::uint64_t fileBytes)
        : m_in(file, fileBytes)
    {
    }

    Result<GgufHeader> parse();

private:
    Status readStart();
    Status readKey();
    Status readTensor();
    Status readShape(GgufTensor& tensor);
    Status readType(GgufTensor& tensor);
    Status takeAlignment();
    Status refuseParts();
    Status placeTensors();
    Result<std::string> readName(const char* what);

    HeaderBytes m_in;
    GgufHeader m_header;
    std::uint64_t m_tensorCount = 0;
    std::uint64_t m_keyCount = 0;
    std::uint64_t m_alignment = kGgufAlignment;
    std::map<std::string, std::uint64_t> m_keyOffsets; // of the two keys that have a meaning here
    std::vector<std::uint64_t> m_offsetFields;         // where the offsets of tensors lie
};

Result<GgufHeader> HeaderParser::parse()
{
    MR_TRY(readStart());
    for (std::uint64_t i = 0; i < m_keyCount; ++i)
        MR_TRY(readKey());
    MR_TRY(takeAlignment());
    MR_TRY(refuseParts());
    for (std::uint64_t i = 0; i < m_tensorCount; ++i)
        MR_TRY(readTensor());
    MR_TRY(placeTensors());
    return std::move(m_header);
}

Status HeaderParser::readStart()
{
    MR_TRY(m_in.number<std::uint32_t>().status()); // checked by checkMagic()
    const std::uint64_t offset = m_in.position();
    MR_ASSIGN(const auto version, m_in.number<std::uint32_t>());
    if ((version & 0xFFFFU) == 0 && version != 0)
        return m_in.error(offset,
            "a big-endian GGUF file, which is not read; `gguf-convert-endian FILE little` of the "
            "Python package gguf turns it round");
    if (version != 2 && version != kGgufVersion)
        return m_in.error(offset, fmt::format("version {} of GGUF; 2 and 3 are read{}", version,
                                      version == 1 ? ", so convert the model anew" : ""));
    const std::uint64_t tensors = m_in.position();
    MR_ASSIGN(m_tensorCount, m_in.number<std::uint64_t>());
    const std::uint64_t keys = m_in.position();
    MR_ASSIGN(m_keyCount, m_in.number<std::uint64_t>());
    MR_TRY(m_in.checkRoom(
        tensors, m_tensorCount, kLeastTensorBytes, fmt::format("{} tensors", m_tensorCount)));
    return m_in.checkRoom(keys, m_keyCount, kLeastKeyBytes, fmt::format("{} keys", m_keyCount));
}

Result<std::string> HeaderParser::readName(const char* what)
{
    const std::uint64_t offset = m_in.position();
    MR_ASSIGN(std::string name, m_in.text());
    if (validBytes(name, 0) != name.size())
        return m_in.error(offset,
            fmt::format("the name {} of a {} is not UTF-8", shownName(terminalText(name)), what));
    return name;
}

Status HeaderParser::readKey()
{
    const std::uint64_t offset = m_in.position();
    MR_ASSIGN(std::string key, readName("key"));
    if (!m_header.keys.emplace(key, m_header.values.size()).second)
        return m_in.error(offset, fmt::format("key {} appears twice", shownName(key)));
    MR_ASSIGN(GgufValue value, readGgufValue(m_in, key));
    if (key == kGgufAlignmentKey || key == kGgufPartsKey)
        m_keyOffsets.emplace(key, offset);
    m_header.values.emplace_back(std::move(key), std::move(value));
    return {};
}

Status HeaderParser::takeAlignment()
{
    const auto at = m_header.keys.find(kGgufAlignmentKey);
    if (at == m_header.keys.end())
        return {};
    const GgufValue& value = m_header.values[at->second].second;
    const std::uint64_t* alignment = std::get_if<std::uint64_t>(&value.data);
    if (value.type == GgufValueType::U32 && std::has_single_bit(*alignment)) {
        m_alignment = *alignment;
        return {};
    }
    return m_in.error(m_keyOffsets.at(at->first),
        fmt::format("{} is {}, where a power of two of type u32 is allowed", at->first,
            alignment ? std::to_string(*alignment) : "of another type"));
}

Status HeaderParser::refuseParts()
{
    const auto at = m_header.keys.find(kGgufPartsKey);
    if (at == m_header.keys.end())
        return {};
    const auto* parts = std::get_if<std::uint64_t>(&m_header.values[at->second].second.data);
    if (parts && *parts <= 1)
        return {};
    return m_in.error(m_keyOffsets.at(at->first),
        fmt::format("one of {} files of a split model, which is not read in parts; merge them with "
                    "`llama-gguf-split --merge FIRST_PART WHOLE_FILE`",
            parts ? std::to_string(*parts) : "several"));
}

Status HeaderParser::readTensor()
{
    const std::uint64_t offset = m_in.position();
    GgufTensor tensor;
    MR_ASSIGN(tensor.name, readName("tensor"));
    if (tensor.name.size() > kMostTensorNameBytes)
        return m_in.error(
            offset, fmt::format("tensor {} has a name of {} bytes; {} are allowed",
                        shownName(tensor.name), tensor.name.size(), kMostTensorNameBytes));
    if (!m_header.names.emplace(tensor.name, m_header.tensors.size()).second)
        return m_in.error(offset, fmt::format("tensor {} appears twice", shownName(tensor.name)));
    const std::uint64_t shape = m_in.position();
    MR_TRY(readShape(tensor));
    MR_TRY(readType(tensor));
    Result<std::uint64_t> bytes = ggufTensorBytes(tensor.type, tensor.ne);
    if (!bytes.ok())
        return m_in.error(
            shape, fmt::format("tensor {} {}", shownName(tensor.name), bytes.status().message()));
    tensor.bytes = bytes.value();
    m_offsetFields.push_back(m_in.position());
    MR_ASSIGN(tensor.offset, m_in.number<std::uint64_t>());
    m_header.tensors.push_back(std::move(tensor));
    return {};
}

Status HeaderParser::readShape(GgufTensor& tensor)
{
    const std::uint64_t offset = m_in.position();
    MR_ASSIGN(const auto dimensions, m_in.number<std::uint32_t>());
    if (dimensions < 1 || dimensions > kMostDimensions)
        return m_in.error(offset, fmt::format("tensor {} has {} dimensions; 1 to {} are allowed",
                                      shownName(tensor.name), dimensions, kMostDimensions));
    for (std::uint32_t i = 0; i < dimensions; ++i) {
        MR_ASSIGN(const auto count, m_in.number<std::int64_t>());
        tensor.ne.push_back(count);
    }
    return {};
}

Status HeaderParser::readType(GgufTensor& tensor)
{
    const std::uint64_t offset = m_in.position();
    MR_ASSIGN(const auto number, m_in.number<std::uint32_t>());
    const GgufTypeInfo* info = ggufTypeInfo(number);
    if (!info)
        return m_in.error(
            offset, fmt::format("tensor {} is {}; {} are read, so take another "
                                "quantisation of the model",
                        shownName(tensor.name), ggufTypeName(number), ggufTypesRead()));
    tensor.type = info->type;
    return {};
}

// Every tensor lies where the one before it ends, at the next multiple of the alignment.
Status HeaderParser::placeTensors()
{
    const std::uint64_t begin = alignedOffset(m_in.position(), m_alignment);
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < m_header.tensors.size(); ++i) {
        GgufTensor& tensor = m_header.tensors[i];
        if (tensor.offset != expected)
            return m_in.error(m_offsetFields[i],
                fmt::format(
                    "tensor {} begins at byte {} of the data, but the one before it ends at "
                    "{}",
                    shownName(tensor.name), tensor.offset, expected));
        const std::uint64_t at = begin + expected;
        if (at > m_in.fileBytes() || tensor.bytes > m_in.fileBytes() - at)
            return m_in.error(m_offsetFields[i],
                fmt::format(
                    "tensor {} has {} bytes from byte {} on, but the file only {}; fetch it "
                    "again",
                    shownName(tensor.name), tensor.bytes, at, m_in.fileBytes()));
        tensor.offset = at;
        expected = alignedOffset(expected + tensor.bytes, m_alignment);
    }
    return {};
}

} // namespace

Result<GgufHeader> readGgufHeader(const File& file, std::uint64_t fileBytes)
{
    MR_TRY(checkMagic(file, fileBytes));
    return HeaderParser(file, fileBytes).parse();
}

Result<std::uint64_t> ggufTensorBytes(GgufType type, const std::vector<std::int64_t>& ne)
{
    const auto bad = [](const std::string& why) {
        return Status::error(ErrorKind::InvalidArgument, why);
    };
    const GgufTypeInfo& info = ggufTypeInfo(type);
    std::int64_t count = 1;
    for (const std::int64_t n : ne) {
        if (n <= 0)
            return bad(fmt::format("has the impossible dimension {}", n));
        if (__builtin_mul_overflow(count, n, &count))
            return bad("has a shape whose size overflows");
    }
    if (ne.front() % info.elements != 0)
        return bad(fmt::format("has rows of {} elements, but {} has blocks of {}", ne.front(),
            info.name, info.elements));
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(count / info.elements, info.bytes, &bytes))
        return bad("has a shape whose size overflows");
    return static_cast<std::uint64_t>(bytes);
}

std::uint64_t alignedOffset(std::uint64_t offset, std::uint64_t alignment) noexcept
{
    return (offset + alignment - 1) / alignment * alignment;
}

} // namespace mr
