#include <millrace/row_list.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace mr {
namespace {

std::string_view trimmed(std::string_view text) noexcept
{
    constexpr std::string_view kSpace = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos)
        return {};
    return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool readRow(std::string_view text, std::int64_t& row) noexcept
{
    const std::string_view digits = trimmed(text);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), row);
    return read.ec == std::errc() && read.ptr == digits.data() + digits.size() && row >= 1;
}

} // namespace

RowList::RowList(std::vector<std::int64_t> rows)
{
    for (const std::int64_t row : rows)
        m_ranges.push_back({row, row});
    join();
}

// Sorts ranges, and makes one of those that touch.
void RowList::join()
{
    std::sort(m_ranges.begin(), m_ranges.end());
    std::vector<Range> joined;
    for (const Range& range : m_ranges) {
        if (!joined.empty() && range.first <= joined.back().last + 1)
            joined.back().last = std::max(joined.back().last, range.last);
        else
            joined.push_back(range);
    }
    m_ranges = std::move(joined);
}

Result<RowList> RowList::parse(std::string_view text)
{
    RowList out;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string_view part = trimmed(text.substr(begin, end - begin));
        begin = end + 1;
        if (part.empty())
            continue;
        Range range;
        const std::size_t dash = part.find('-');
        const bool isRead = readRow(part.substr(0, dash), range.first);
        range.last = range.first;
        const bool hasEnd = dash != std::string_view::npos;
        if (!isRead || (hasEnd && !readRow(part.substr(dash + 1), range.last)) ||
            range.last < range.first)
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("'{}' is no row; rows are written as 2,5,8-11 and count from 1",
                    part.substr(0, 40)));
        out.m_ranges.push_back(range);
    }
    out.join();
    return out;
}

std::string RowList::text() const
{
    std::string out;
    for (const Range& range : m_ranges) {
        out += out.empty() ? "" : ",";
        out += range.first == range.last ? fmt::format("{}", range.first)
                                         : fmt::format("{}-{}", range.first, range.last);
    }
    return out;
}

std::int64_t RowList::count() const noexcept
{
    std::int64_t rows = 0;
    for (const Range& range : m_ranges)
        rows += range.last - range.first + 1;
    return rows;
}

bool RowList::contains(std::int64_t row) const noexcept
{
    const auto behind = std::upper_bound(m_ranges.begin(), m_ranges.end(), row,
        [](std::int64_t value, const Range& range) { return value < range.first; });
    return behind != m_ranges.begin() && row <= std::prev(behind)->last;
}

void RowList::add(const RowList& other)
{
    m_ranges.insert(m_ranges.end(), other.m_ranges.begin(), other.m_ranges.end());
    join();
}

} // namespace mr
