#include "core/parquet/value_reader.h"

#include "core/parquet/delta_values.h"

#include <fmt/format.h>

namespace mr {
namespace {

class PlainFixed final : public ParquetValueReader
{
public:
    PlainFixed(const ParquetStorage& storage, std::string_view bytes)
        : m_storage(storage)
        , m_bytes(bytes)
    {
    }
    bool next(ParquetValue& out) override
    {
        if (m_bytes.size() < m_storage.bytes)
            return false;
        out = fixedAt(m_storage, m_bytes, 0);
        m_bytes.remove_prefix(m_storage.bytes);
        return true;
    }

private:
    ParquetStorage m_storage;
    std::string_view m_bytes;
};

class PlainBooleans final : public ParquetValueReader
{
public:
    explicit PlainBooleans(std::string_view bytes)
        : m_bytes(bytes)
    {
    }
    bool next(ParquetValue& out) override
    {
        if (m_at / 8 >= m_bytes.size())
            return false;
        out.whole = static_cast<std::int64_t>(bitsAt(m_bytes, m_at++, 1));
        return true;
    }

private:
    std::string_view m_bytes;
    std::uint64_t m_at = 0;
};

class PlainTexts final : public ParquetValueReader
{
public:
    explicit PlainTexts(std::string_view bytes)
        : m_bytes(bytes)
    {
    }
    bool next(ParquetValue& out) override { return takeCounted(m_bytes, out.bytes); }

private:
    std::string_view m_bytes;
};

class RunBooleans final : public ParquetValueReader
{
public:
    explicit RunBooleans(std::string_view bytes)
        : m_runs(bytes, 1)
    {
    }
    bool next(ParquetValue& out) override
    {
        std::uint32_t value = 0;
        const bool isThere = m_runs.next(value);
        out.whole = value;
        return isThere;
    }

private:
    HybridRuns m_runs;
};

class Numbered final : public ParquetValueReader
{
public:
    Numbered(std::string_view bytes, unsigned width, const ParquetDictionary& dictionary)
        : m_runs(bytes, width)
        , m_dictionary(dictionary)
    {
    }
    bool next(ParquetValue& out) override
    {
        std::uint32_t index = 0;
        return m_runs.next(index) && m_dictionary.at(index, out);
    }

private:
    HybridRuns m_runs;
    const ParquetDictionary& m_dictionary;
};

using MadeReader = std::unique_ptr<ParquetValueReader>;

MadeReader makePlain(const ParquetStorage& storage, std::string_view bytes)
{
    if (storage.type == ParquetType::Boolean)
        return std::make_unique<PlainBooleans>(bytes);
    if (storage.type == ParquetType::ByteArray)
        return std::make_unique<PlainTexts>(bytes);
    return std::make_unique<PlainFixed>(storage, bytes);
}

MadeReader makeRuns(const ParquetStorage& storage, std::string_view bytes)
{
    std::string_view runs;
    if (storage.type != ParquetType::Boolean || !takeCounted(bytes, runs))
        return nullptr;
    return std::make_unique<RunBooleans>(runs);
}

MadeReader makeNumbered(std::string_view bytes, const ParquetDictionary* dictionary)
{
    constexpr unsigned kMostWidth = 32;
    const unsigned width = bytes.empty() ? 0 : static_cast<unsigned char>(bytes.front());
    if (dictionary == nullptr || width > kMostWidth)
        return nullptr;
    return std::make_unique<Numbered>(bytes.substr(bytes.empty() ? 0 : 1), width, *dictionary);
}

MadeReader makeDelta(const ParquetStorage& storage, std::string_view bytes)
{
    DeltaRuns runs;
    const bool isShort = storage.type == ParquetType::Int32;
    if ((!isShort && storage.type != ParquetType::Int64) || !runs.open(bytes))
        return nullptr;
    return std::make_unique<DeltaWholes>(runs, isShort);
}

template <typename T>
MadeReader makeTexts(const ParquetStorage& storage, std::string_view bytes)
{
    auto out = std::make_unique<T>();
    const bool isBytes =
        storage.type == ParquetType::ByteArray || storage.type == ParquetType::FixedBytes;
    if (!isBytes || !out->open(bytes))
        return nullptr;
    return out;
}

MadeReader makeSplit(const ParquetStorage& storage, std::string_view bytes)
{
    if (storage.bytes == 0 || bytes.size() % storage.bytes != 0)
        return nullptr;
    return std::make_unique<SplitBytes>(storage, bytes);
}

enum class PageEncoding : std::uint8_t {
    Plain = 0,
    PlainDictionary = 2,
    Runs = 3,
    Delta = 5,
    DeltaLength = 6,
    DeltaBytes = 7,
    Dictionary = 8,
    Split = 9,
};

} // namespace

Result<MadeReader> ParquetValueReader::create(std::int32_t encoding, const ParquetStorage& storage,
    std::string_view bytes, const ParquetDictionary* dictionary)
{
    constexpr std::int32_t kNone = 255;
    MadeReader out;
    switch (static_cast<PageEncoding>(encoding >= 0 && encoding < kNone ? encoding : kNone)) {
    case PageEncoding::Plain:
        out = makePlain(storage, bytes);
        break;
    case PageEncoding::PlainDictionary:
    case PageEncoding::Dictionary:
        out = makeNumbered(bytes, dictionary);
        break;
    case PageEncoding::Runs:
        out = makeRuns(storage, bytes);
        break;
    case PageEncoding::Delta:
        out = makeDelta(storage, bytes);
        break;
    case PageEncoding::DeltaLength:
        out = makeTexts<DeltaLengthTexts>(storage, bytes);
        break;
    case PageEncoding::DeltaBytes:
        out = makeTexts<DeltaTexts>(storage, bytes);
        break;
    case PageEncoding::Split:
        out = makeSplit(storage, bytes);
        break;
    default:
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("values in encoding {} are not read; write the file with plain or "
                        "dictionary encoding",
                encoding));
    }
    if (out == nullptr)
        return Status::error(
            ErrorKind::InvalidArgument, fmt::format("a page in encoding {} is damaged", encoding));
    return out;
}

} // namespace mr
