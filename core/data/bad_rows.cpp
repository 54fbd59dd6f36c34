#include "core/data/bad_rows.h"

#include "core/base/shown_text.h"
#include "core/data/sequence_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

namespace mr {
namespace {

constexpr std::int64_t kRowsReadOn = 1'000'000; // some seconds
constexpr std::size_t kBufferedBytes = std::size_t{1} << 20;

std::int64_t sum(const std::map<std::string, std::int64_t>& counts)
{
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0},
        [](std::int64_t n, const auto& count) { return n + count.second; });
}

Status enough()
{
    return Status::error(ErrorKind::Cancelled, "enough rows were counted");
}

} // namespace

std::string faultList(const std::map<std::string, std::int64_t>& counts)
{
    std::string out;
    for (const auto& [name, count] : counts)
        out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, count);
    return out;
}

Status BadRows::skip(const DataSource& source, const BadRow& row)
{
    if (row.fault == RowFault::Excluded)
        ++m_excluded;
    else
        ++m_skipped[std::string(name(row.fault))];
    nlohmann::ordered_json line{{"file", source.path}};
    if (row.line > 0)
        line["line"] = row.line;
    line["row"] = row.row;
    line["reason"] = name(row.fault);
    line["message"] = row.message;
    m_lines += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (m_lines.size() < kBufferedBytes)
        return {};
    if (!m_log.isOpen()) {
        MR_ASSIGN(m_log, makeSpillFile({}));
    }
    MR_TRY(m_log.write(std::as_bytes(std::span(m_lines))));
    m_logged += m_lines.size();
    m_lines.clear();
    return {};
}

Status BadRows::add(const DataSource& source, const BadRow& row)
{
    if (source.skipBadRows || row.fault == RowFault::Excluded)
        return skip(source, row);
    if (m_first && m_firstPath != source.path)
        return {};
    // Rows are read ahead of the threads that encode them, so an earlier one may come later.
    if (!m_first || row.row < m_first->row) {
        m_first = row;
        m_firstPath = source.path;
    }
    ++m_refused[std::string(name(row.fault))];
    return rowRead();
}

Status BadRows::rowRead()
{
    if (!m_first)
        return {};
    m_all = ++m_readOn <= kRowsReadOn;
    return m_all ? Status() : enough();
}

RefusedRows BadRows::refused() const
{
    return {m_first ? m_first->message : std::string(), m_refused, m_all};
}

Status BadRows::refusal() const
{
    if (!m_first)
        return {};
    const std::int64_t count = sum(m_refused);
    std::string text = m_first->message + "; ";
    if (!m_all)
        text += fmt::format(
            "at least {} rows of this file cannot be read ({})", count, faultList(m_refused));
    else if (count > 1)
        text +=
            fmt::format("{} rows of this file cannot be read ({})", count, faultList(m_refused));
    else
        text += "all other rows of this file can be read";
    text += count > 1 ? "; --skip-bad-rows leaves them out" : "; --skip-bad-rows leaves it out";
    return Status::error(ErrorKind::InvalidArgument, std::move(text));
}

Status BadRows::readLog(const LogSink& sink) const
{
    std::vector<std::byte> piece(std::min<std::uint64_t>(m_logged, kBufferedBytes));
    for (std::uint64_t at = 0; at < m_logged; at += piece.size()) {
        piece.resize(std::min<std::uint64_t>(piece.size(), m_logged - at));
        MR_TRY(m_log.readAt(at, piece));
        MR_TRY(sink(piece));
    }
    return sink(std::as_bytes(std::span(m_lines)));
}

} // namespace mr
