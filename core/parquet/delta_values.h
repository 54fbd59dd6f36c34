// Readers of values that pages store as differences, as shared beginnings, or byte by byte.
//
// Threads  Confined to their owner.
// Errors   open() and next() are false where the bytes end early or make no sense.
// Source   github.com/apache/parquet-format, Encodings.md.

#pragma once

#include "core/parquet/bit_runs.h"
#include "core/parquet/value_reader.h"

#include <string>

namespace mr {

class DeltaWholes final : public ParquetValueReader
{
public:
    DeltaWholes(const DeltaRuns& runs, bool isShort)
        : m_runs(runs)
        , m_isShort(isShort)
    {
    }
    bool next(ParquetValue& out) override
    {
        if (!m_runs.next(out.whole))
            return false;
        if (m_isShort) // differences of 32 bits wrap around at 32
            out.whole = static_cast<std::int32_t>(out.whole);
        return true;
    }

private:
    DeltaRuns m_runs;
    bool m_isShort;
};

class DeltaLengthTexts final : public ParquetValueReader
{
public:
    bool open(std::string_view bytes)
    {
        return m_lengths.open(bytes) && m_lengths.skipAll(m_bytes);
    }
    bool next(ParquetValue& out) override
    {
        std::int64_t length = 0;
        if (!m_lengths.next(length) || length < 0 ||
            static_cast<std::uint64_t>(length) > m_bytes.size())
            return false;
        out.bytes = m_bytes.substr(0, static_cast<std::size_t>(length));
        m_bytes.remove_prefix(static_cast<std::size_t>(length));
        return true;
    }

private:
    DeltaRuns m_lengths;
    std::string_view m_bytes;
};

// Each text begins as the one before it.
class DeltaTexts final : public ParquetValueReader
{
public:
    bool open(std::string_view bytes)
    {
        std::string_view behind;
        return m_kept.open(bytes) && m_kept.skipAll(behind) && m_rest.open(behind);
    }
    bool next(ParquetValue& out) override
    {
        std::int64_t kept = 0;
        if (!m_kept.next(kept) || kept < 0 || static_cast<std::uint64_t>(kept) > m_text.size() ||
            !m_rest.next(out))
            return false;
        m_text.resize(static_cast<std::size_t>(kept));
        m_text += out.bytes;
        out.bytes = m_text;
        return true;
    }

private:
    DeltaRuns m_kept;
    DeltaLengthTexts m_rest;
    std::string m_text;
};

// All first bytes of the values, then all second ones ...
class SplitBytes final : public ParquetValueReader
{
public:
    SplitBytes(const ParquetStorage& storage, std::string_view bytes)
        : m_storage(storage)
        , m_bytes(bytes)
        , m_count(bytes.size() / storage.bytes)
        , m_value(storage.bytes, '\0')
    {
    }
    bool next(ParquetValue& out) override
    {
        if (m_at == m_count)
            return false;
        for (std::size_t i = 0; i < m_value.size(); ++i)
            m_value[i] = m_bytes[i * m_count + m_at];
        ++m_at;
        out = fixedAt(m_storage, m_value, 0);
        return true;
    }

private:
    ParquetStorage m_storage;
    std::string_view m_bytes;
    std::size_t m_count;
    std::size_t m_at = 0;
    std::string m_value;
};

} // namespace mr
