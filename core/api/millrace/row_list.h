// Rows of a file as a short text, ascending: "2,5,8-11".
//
// Threads  A value.
// Errors   parse(): InvalidArgument names the part that is no row.
// Units    Rows count from 1, as a reader of the file counts them.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mr {

class RowList
{
public:
    RowList() = default;
    explicit RowList(std::vector<std::int64_t> rows); // in any order

    // In any order, white space between the parts; an empty text is no row.
    static Result<RowList> parse(std::string_view text);
    std::string text() const;

    bool empty() const noexcept { return m_ranges.empty(); }
    std::int64_t count() const noexcept;
    std::int64_t last() const noexcept { return m_ranges.empty() ? 0 : m_ranges.back().last; }
    bool contains(std::int64_t row) const noexcept;
    void add(const RowList& other);

    bool operator==(const RowList&) const = default;

private:
    struct Range {
        std::int64_t first = 0;
        std::int64_t last = 0;

        auto operator<=>(const Range&) const = default;
    };

    void join();

    std::vector<Range> m_ranges; // ascending and apart
};

} // namespace mr
