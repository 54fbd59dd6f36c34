// BadRows: rows of a dataset that cannot be read. Those of a source with DataSource::skipBadRows
// are left out and listed; of any other the first one is an error that counts them all. Rows that
// DataSource::excluded names are left out and listed in any case.
//
// Threads    Confined to its owner.
// Errors     add(), rowRead(): Cancelled once enough rows were looked at behind the first error.
//            Io: the list grew beyond memory and its file cannot be written.
// Units      Rows.

#pragma once

#include "core/base/file.h"
#include "core/data/record_reader.h"

#include <millrace/library.h>

#include <map>
#include <optional>
#include <string>

namespace mr {

class BadRows
{
public:
    Status add(const DataSource& source, const BadRow& row);
    // A row that can be read. Once there is an error the rest is only counted, and not for ever.
    Status rowRead();

    // Whether some row is an error, which the rest of the data cannot mend.
    bool refuses() const noexcept { return m_first.has_value(); }
    // The first such row with how many there are, and the option that leaves them out; or ok.
    Status refusal() const;
    RefusedRows refused() const;

    // Rows left out, by name(RowFault).
    const std::map<std::string, std::int64_t>& skipped() const noexcept { return m_skipped; }
    std::int64_t excluded() const noexcept { return m_excluded; }
    // A line of JSON for each row left out, in pieces: {"file", "line", "row", "reason",
    // "message"}.
    using LogSink = std::function<Status(std::span<const std::byte>)>;
    Status readLog(const LogSink& sink) const;

private:
    Status skip(const DataSource& source, const BadRow& row);

    std::int64_t m_excluded = 0;
    std::map<std::string, std::int64_t> m_skipped;
    File m_log;                 // a file without a name, once there is much
    std::uint64_t m_logged = 0; // bytes in it
    std::string m_lines;        // lines behind the logged ones
    std::optional<BadRow> m_first;
    std::string m_firstPath;
    std::map<std::string, std::int64_t> m_refused; // in the source of m_first, by name(RowFault)
    std::int64_t m_readOn = 0;
    bool m_all = true; // the source was read to its end
};

// "json 3, cells 1"
std::string faultList(const std::map<std::string, std::int64_t>& counts);

} // namespace mr
