#include "core/store/store_edits.h"

#include "core/store/export_rows.h"
#include "core/store/run_bin.h"
#include "core/store/run_rows.h"
#include "core/store/sqlite.h"

#include <fmt/format.h>

#include <algorithm>

namespace mr {
namespace {

constexpr std::size_t kMostNameBytes = 200;
constexpr std::size_t kMostTagBytes = 60;
constexpr std::size_t kMostNoteBytes = std::size_t{64} << 10;

std::string_view trimmed(std::string_view text)
{
    constexpr std::string_view kBlank = " \t\r\n";
    const std::size_t first = text.find_first_not_of(kBlank);
    if (first == std::string_view::npos)
        return {};
    return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

Status checkLine(std::string_view what, std::string_view text, std::size_t mostBytes)
{
    const auto isControl = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    const auto wrong = [what](std::string_view why) {
        return Status::error(ErrorKind::InvalidArgument, fmt::format("the {} {}", what, why));
    };
    if (text.empty())
        return wrong("is empty; write at least one letter");
    if (std::any_of(text.begin(), text.end(), isControl))
        return wrong("has more than one line, or a character that cannot be shown");
    if (text.size() > mostBytes)
        return wrong(fmt::format("has {} bytes; at most {} fit", text.size(), mostBytes));
    return {};
}

Status checkTag(std::string_view tag)
{
    MR_TRY(checkLine("tag", tag, kMostTagBytes));
    if (tag.find(',') != std::string_view::npos)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format(
                "the tag \"{}\" has a comma, which divides tags; add them one by one", tag));
    return {};
}

class SqliteRunEdits final : public RunEdits
{
public:
    explicit SqliteRunEdits(StoreConnection& connection)
        : m_connection(connection)
        , m_database(*connection.database)
        , m_bin(connection)
    {
    }

    Result<std::string> rename(std::int64_t runId, std::string_view name) override;
    Result<std::string> setNote(std::int64_t runId, std::string_view note) override;
    Result<std::vector<std::int64_t>> addTag(Ids runs, std::string_view tag) override;
    Result<std::vector<std::int64_t>> removeTag(Ids runs, std::string_view tag) override;
    Result<std::vector<std::string>> tags() override;
    Status addExport(std::int64_t runId, const ExportRow& row) override;
    Result<std::vector<std::int64_t>> remove(Ids runs) override { return m_bin.remove(runs); }
    Status restore(Ids runs) override { return m_bin.restore(runs); }
    Result<RunFiles> filesOf(Ids runs) override { return m_bin.filesOf(runs); }
    Status erase(Ids runs, std::uint64_t confirmedBytes) override
    {
        return m_bin.erase(runs, confirmedBytes);
    }
    Status expire(std::int64_t ageMs) override { return m_bin.expire(ageMs); }

private:
    // Makes `change` in a transaction, for a run that must exist; then refreshes the search.
    template <typename Change>
    Status changeRun(std::int64_t runId, Change&& change);
    // The tag of each run by `sql` of its parameters run and name; those that were changed.
    Status changeTag(
        Ids runs, std::string_view sql, std::string_view tag, std::vector<std::int64_t>& changed);

    StoreConnection& m_connection;
    Database& m_database; // guarded by the connection's mutex
    RunBin m_bin;
};

template <typename Change>
Status SqliteRunEdits::changeRun(std::int64_t runId, Change&& change)
{
    return m_connection.transact(Durability::Normal, [&]() -> Status {
        MR_TRY(runMustExist(m_database, runId));
        MR_TRY(change());
        return refreshSearch(m_database, runId);
    });
}

Result<std::string> SqliteRunEdits::rename(std::int64_t runId, std::string_view name)
{
    const std::string_view line = trimmed(name);
    MR_TRY(checkLine("name of a run", line, kMostNameBytes));
    std::string before;
    const Status done = changeRun(runId, [&]() -> Status {
        MR_ASSIGN(before, nameOfRun(m_database, runId));
        return m_database.execute("UPDATE run SET name=? WHERE id=?", line, runId);
    });
    MR_TRY(done);
    return before;
}

Result<std::string> SqliteRunEdits::setNote(std::int64_t runId, std::string_view note)
{
    if (note.size() > kMostNoteBytes)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the note has {} bytes; at most {} fit", note.size(), kMostNoteBytes));
    std::string before;
    const Status done = changeRun(runId, [&]() -> Status {
        MR_TRY(m_database.query(
            "SELECT notes FROM run WHERE id=?", [&](const Row& row) { before = row.text(0); },
            runId));
        return m_database.execute("UPDATE run SET notes=? WHERE id=?", note, runId);
    });
    MR_TRY(done);
    return before;
}

Status SqliteRunEdits::changeTag(
    Ids runs, std::string_view sql, std::string_view tag, std::vector<std::int64_t>& changed)
{
    for (const std::int64_t runId : runs) {
        MR_TRY(runMustExist(m_database, runId));
        MR_TRY(m_database.execute(sql, runId, tag));
        if (m_database.changes() > 0)
            changed.push_back(runId);
        MR_TRY(refreshSearch(m_database, runId));
    }
    return {};
}

Result<std::vector<std::int64_t>> SqliteRunEdits::addTag(Ids runs, std::string_view tag)
{
    const std::string_view name = trimmed(tag);
    MR_TRY(checkTag(name));
    std::vector<std::int64_t> changed;
    const Status done = m_connection.transact(Durability::Normal, [&]() -> Status {
        MR_TRY(m_database.execute("INSERT OR IGNORE INTO tag(name) VALUES(?)", name));
        return changeTag(runs,
            "INSERT OR IGNORE INTO run_tag(run_id,tag_id) SELECT ?1,id FROM tag WHERE name=?2",
            name, changed);
    });
    MR_TRY(done);
    return changed;
}

Result<std::vector<std::int64_t>> SqliteRunEdits::removeTag(Ids runs, std::string_view tag)
{
    const std::string_view name = trimmed(tag);
    std::vector<std::int64_t> changed;
    const Status done = m_connection.transact(Durability::Normal, [&]() -> Status {
        MR_TRY(changeTag(runs,
            "DELETE FROM run_tag WHERE run_id=?1 AND tag_id=(SELECT id FROM tag WHERE name=?2)",
            name, changed));
        return dropUnusedTags(m_database);
    });
    MR_TRY(done);
    return changed;
}

Result<std::vector<std::string>> SqliteRunEdits::tags()
{
    const std::lock_guard lock(m_connection.mutex);
    std::vector<std::string> names;
    MR_TRY(m_database.query("SELECT DISTINCT name FROM tag JOIN run_tag ON tag_id=tag.id"
                            " ORDER BY name COLLATE NOCASE",
        [&](const Row& row) { names.push_back(row.text(0)); }));
    return names;
}

Status SqliteRunEdits::addExport(std::int64_t runId, const ExportRow& row)
{
    return m_connection.transact(Durability::Normal, [&]() -> Status {
        MR_TRY(runMustExist(m_database, runId));
        return insertExport(m_database, runId, row);
    });
}

} // namespace

std::unique_ptr<RunEdits> makeRunEdits(StoreConnection& connection)
{
    return std::make_unique<SqliteRunEdits>(connection);
}

} // namespace mr
