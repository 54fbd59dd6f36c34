#include "core/parquet/column_cursor.h"

#include "core/parquet/page_codec.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <string>

namespace mr {
namespace {

Status badColumn(const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
}

Status endsEarly()
{
    return badColumn("a page ends early or is damaged; write the file again");
}

std::string_view viewOf(const std::vector<char>& bytes)
{
    return {bytes.data(), bytes.size()};
}

unsigned widthOf(std::uint32_t most)
{
    return static_cast<unsigned>(std::bit_width(most));
}

} // namespace

Status ColumnCursor::open(const ColumnChunk& chunk)
{
    MR_TRY(checkPageCodec(chunk.codec));
    m_codec = chunk.codec;
    m_at = chunk.begin;
    m_end = chunk.begin + chunk.bytes;
    m_valuesLeft = chunk.values;
    m_inPage = 0;
    m_hasDictionary = false;
    m_atEnd = false;
    return advance();
}

Status ColumnCursor::advance()
{
    if (m_inPage == 0)
        MR_TRY(nextPage());
    if (m_atEnd)
        return {};
    --m_inPage;
    m_rep = 0;
    m_def = 0;
    if ((m_shape.mostRep > 0 && !m_reps.next(m_rep)) ||
        (m_shape.mostDef > 0 && !m_defs.next(m_def)))
        return endsEarly();
    if (m_rep > m_shape.mostRep || m_def > m_shape.mostDef)
        return badColumn("a level is above those of its column; write the file again");
    return m_def < m_shape.mostDef || m_values->next(m_value) ? Status() : endsEarly();
}

// Goes on to a page with values, or to the end.
Status ColumnCursor::nextPage()
{
    while (m_valuesLeft > 0) {
        PageHead head;
        MR_TRY(readHead(head));
        if (head.kind == PageKind::Index ||
            (head.kind != PageKind::Dictionary && head.values == 0)) {
            m_at += static_cast<std::uint64_t>(head.packedBytes);
            continue;
        }
        MR_TRY(readBody(head));
        if (head.kind != PageKind::Dictionary)
            return beginPage(head);
        MR_TRY(takeDictionary(head));
    }
    m_atEnd = true;
    return {};
}

Status ColumnCursor::readHead(PageHead& head)
{
    constexpr std::uint64_t kUsualBytes = 1024;
    constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20; // statistics hold whole values
    for (std::uint64_t bytes = kUsualBytes; bytes <= kMostBytes; bytes *= 8) {
        const std::uint64_t there = std::min(bytes, m_end - m_at);
        std::string text(static_cast<std::size_t>(there), '\0');
        MR_TRY(m_file.readAt(m_at, std::as_writable_bytes(std::span(text.data(), text.size()))));
        MR_ASSIGN(std::optional<PageHead> read, readPageHead(text));
        if (!read && there < bytes)
            break;
        if (!read)
            continue;
        head = *read;
        m_at += head.headBytes;
        if (static_cast<std::uint64_t>(head.packedBytes) > m_end - m_at)
            return badColumn("a page reaches beyond its column; write the file again");
        return {};
    }
    return badColumn("the pages end before all values are there; write the file again");
}

Status ColumnCursor::resize(Bytes& buffer, std::uint64_t bytes)
{
    const std::uint64_t before = buffer.capacity();
    if (bytes > PageBudget::kMostPageBytes ||
        m_budget.used - before + bytes > PageBudget::kMostBytes)
        return badColumn(
            fmt::format("a page of {} bytes is above the 256 MiB of a page or the 1 GiB "
                        "of all columns together; write the file with smaller pages",
                bytes));
    if (bytes > before) {
        Bytes().swap(buffer);
        m_budget.used -= before;
        buffer.reserve(static_cast<std::size_t>(bytes));
        m_budget.used += buffer.capacity();
    }
    buffer.resize(static_cast<std::size_t>(bytes));
    return {};
}

Status ColumnCursor::readBody(const PageHead& head)
{
    MR_TRY(resize(m_body, static_cast<std::uint64_t>(head.packedBytes)));
    MR_TRY(m_file.readAt(m_at, std::as_writable_bytes(std::span(m_body))));
    m_at += m_body.size();
    if (!head.crc)
        return {};
    const uLong crc = crc32(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(m_body.data()),
        static_cast<uInt>(m_body.size()));
    return crc == *head.crc ? Status()
                            : badColumn("a page is not what was written (its checksum differs); "
                                        "download or copy the file again");
}

// Levels of the second version of pages are in front and never packed.
Status ColumnCursor::unpack(const PageHead& head, Bytes& out)
{
    MR_TRY(resize(out, static_cast<std::uint64_t>(head.bytes)));
    const bool isSecond = head.kind == PageKind::DataV2;
    const std::size_t levels =
        isSecond ? static_cast<std::size_t>(head.repBytes) + static_cast<std::size_t>(head.defBytes)
                 : 0;
    if (levels > m_body.size() || levels > out.size())
        return endsEarly();
    std::copy_n(m_body.data(), levels, out.data());
    const std::span<char> values = std::span(out).subspan(levels);
    const std::string_view packed = viewOf(m_body).substr(levels);
    const bool isPacked = !isSecond || head.isPacked;
    // Some writers pack the values of a page of nulls, of which there are none, into nothing.
    if (values.empty() && (packed.empty() || isSecond))
        return {};
    return unpackPage(isPacked ? m_codec : 0, packed, values);
}

Status ColumnCursor::takeDictionary(const PageHead& head)
{
    if (m_hasDictionary || m_inPage > 0)
        return badColumn("it has two dictionaries; write the file again");
    MR_TRY(unpack(head, m_dictionaryPage));
    MR_TRY(m_dictionary.read(m_shape.storage, viewOf(m_dictionaryPage), head.values));
    m_hasDictionary = true;
    return {};
}

Status ColumnCursor::takeLevels(const PageHead& head, std::string_view& bytes)
{
    constexpr std::int32_t kRuns = 3;
    std::string_view reps;
    std::string_view defs;
    if (head.kind == PageKind::DataV2) {
        reps = bytes.substr(0, static_cast<std::size_t>(head.repBytes));
        defs = bytes.substr(reps.size(), static_cast<std::size_t>(head.defBytes));
        bytes.remove_prefix(reps.size() + defs.size());
    } else {
        if ((m_shape.mostRep > 0 && head.repEncoding != kRuns) ||
            (m_shape.mostDef > 0 && head.defEncoding != kRuns))
            return badColumn(
                "its levels are in an encoding that is not read (BIT_PACKED); write the "
                "file with a newer program");
        if ((m_shape.mostRep > 0 && !takeCounted(bytes, reps)) ||
            (m_shape.mostDef > 0 && !takeCounted(bytes, defs)))
            return endsEarly();
    }
    m_reps = HybridRuns(reps, widthOf(m_shape.mostRep));
    m_defs = HybridRuns(defs, widthOf(m_shape.mostDef));
    return {};
}

Status ColumnCursor::beginPage(const PageHead& head)
{
    if (head.values > m_valuesLeft)
        return badColumn("its pages hold more values than it has; write the file again");
    MR_TRY(unpack(head, m_page));
    std::string_view bytes = viewOf(m_page);
    MR_TRY(takeLevels(head, bytes));
    MR_ASSIGN(m_values, ParquetValueReader::create(head.encoding, m_shape.storage, bytes,
                            m_hasDictionary ? &m_dictionary : nullptr));
    m_valuesLeft -= head.values;
    m_inPage = head.values;
    return {};
}

} // namespace mr
