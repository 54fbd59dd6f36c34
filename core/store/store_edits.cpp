#include "core/store/store_edits.h"

#include "core/store/process_identity.h"
#include "core/store/run_leftovers.h"
#include "core/store/run_rows.h"
#include "core/store/run_series.h"
#include "core/store/sqlite.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

namespace mr {
namespace {

constexpr std::size_t kMostNameBytes = 200;
constexpr std::size_t kMostTagBytes = 60;
constexpr std::size_t kMostNoteBytes = std::size_t{64} << 10;

std::int64_t nowMs()
{
    using namespace std::chrono;
    return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

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
    {
    }

    Result<std::string> rename(std::int64_t runId, std::string_view name) override;
    Result<std::string> setNote(std::int64_t runId, std::string_view note) override;
    Result<std::vector<std::int64_t>> addTag(Ids runs, std::string_view tag) override;
    Result<std::vector<std::int64_t>> removeTag(Ids runs, std::string_view tag) override;
    Result<std::vector<std::string>> tags() override;
    Result<std::vector<std::int64_t>> remove(Ids runs) override;
    Status restore(Ids runs) override;
    Result<RunFiles> filesOf(Ids runs) override;
    Status erase(Ids runs, std::uint64_t confirmedBytes) override;
    Status expire(std::int64_t ageMs) override;

private:
    // Of a run that exists; with the lock.
    Result<std::string> nameOf(std::int64_t runId);
    Result<bool> isGoingOn(std::int64_t runId);
    Status mustBeAtRest(std::int64_t runId);
    Status mustBeDeleted(std::int64_t runId);
    // `change` in a transaction, of a run that must exist; then what the search looks at.
    template <typename Change>
    Status changeRun(std::int64_t runId, Change&& change);
    Result<RunPlaces> placesOf(std::int64_t runId);
    Status addNeeds(Ids runs, RunFiles& files);
    Status removeSeries(std::int64_t runId);
    Status forget(std::int64_t runId, bool withCheckpoints);
    Status giveBackPages();

    StoreConnection& m_connection;
    Database& m_database; // guarded by the connection's mutex
};

Result<std::string> SqliteRunEdits::nameOf(std::int64_t runId)
{
    MR_TRY(runMustExist(m_database, runId));
    std::string name;
    MR_TRY(m_database.query(
        "SELECT name FROM run WHERE id=?", [&](const Row& row) { name = row.text(0); }, runId));
    return name;
}

Result<bool> SqliteRunEdits::isGoingOn(std::int64_t runId)
{
    Result<std::optional<OpenSegment>> open = openSegment(m_database, runId);
    MR_TRY(open.status());
    return open.value() && isAlive(open.value()->process);
}

Status SqliteRunEdits::mustBeAtRest(std::int64_t runId)
{
    Result<std::string> name = nameOf(runId);
    MR_TRY(name.status());
    Result<bool> active = isGoingOn(runId);
    MR_TRY(active.status());
    if (active.value())
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the run \"{}\" is going on; stop it before it is deleted", name.value()));
    return {};
}

Status SqliteRunEdits::mustBeDeleted(std::int64_t runId)
{
    MR_TRY(mustBeAtRest(runId));
    Result<std::int64_t> hidden =
        m_database.integer("SELECT count(*) FROM run WHERE id=? AND deleted_at IS NOT NULL", runId);
    MR_TRY(hidden.status());
    if (hidden.value() == 0)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format(
                "the run \"{}\" is not in the bin; delete it first", nameOf(runId).value()));
    return {};
}

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
        Result<std::string> old = nameOf(runId);
        MR_TRY(old.status());
        before = std::move(old).value();
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

Result<std::vector<std::int64_t>> SqliteRunEdits::addTag(Ids runs, std::string_view tag)
{
    const std::string_view name = trimmed(tag);
    MR_TRY(checkTag(name));
    std::vector<std::int64_t> changed;
    const Status done = m_connection.transact(Durability::Normal, [&]() -> Status {
        MR_TRY(m_database.execute("INSERT OR IGNORE INTO tag(name) VALUES(?)", name));
        for (const std::int64_t runId : runs) {
            MR_TRY(runMustExist(m_database, runId));
            MR_TRY(m_database.execute("INSERT OR IGNORE INTO run_tag(run_id,tag_id)"
                                      " SELECT ?1,id FROM tag WHERE name=?2",
                runId, name));
            if (m_database.changes() > 0)
                changed.push_back(runId);
            MR_TRY(refreshSearch(m_database, runId));
        }
        return {};
    });
    MR_TRY(done);
    return changed;
}

Result<std::vector<std::int64_t>> SqliteRunEdits::removeTag(Ids runs, std::string_view tag)
{
    const std::string_view name = trimmed(tag);
    std::vector<std::int64_t> changed;
    const Status done = m_connection.transact(Durability::Normal, [&]() -> Status {
        for (const std::int64_t runId : runs) {
            MR_TRY(runMustExist(m_database, runId));
            MR_TRY(m_database.execute("DELETE FROM run_tag WHERE run_id=? AND tag_id="
                                      "(SELECT id FROM tag WHERE name=?)",
                runId, name));
            if (m_database.changes() > 0)
                changed.push_back(runId);
            MR_TRY(refreshSearch(m_database, runId));
        }
        // A tag that nobody has is not offered.
        return m_database.execute(
            "DELETE FROM tag WHERE NOT EXISTS (SELECT 1 FROM run_tag WHERE tag_id=tag.id)");
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

Result<std::vector<std::int64_t>> SqliteRunEdits::remove(Ids runs)
{
    std::vector<std::int64_t> changed;
    const Status done = m_connection.transact(Durability::Normal, [&]() -> Status {
        for (const std::int64_t runId : runs) {
            MR_TRY(mustBeAtRest(runId));
            MR_TRY(m_database.execute(
                "UPDATE run SET deleted_at=? WHERE id=? AND deleted_at IS NULL", nowMs(), runId));
            if (m_database.changes() > 0)
                changed.push_back(runId);
        }
        return {};
    });
    MR_TRY(done);
    return changed;
}

Status SqliteRunEdits::restore(Ids runs)
{
    return m_connection.transact(Durability::Normal, [&]() -> Status {
        for (const std::int64_t runId : runs) {
            MR_TRY(runMustExist(m_database, runId));
            MR_TRY(m_database.execute("UPDATE run SET deleted_at=NULL WHERE id=?", runId));
        }
        return {};
    });
}

Result<RunPlaces> SqliteRunEdits::placesOf(std::int64_t runId)
{
    const std::lock_guard lock(m_connection.mutex);
    MR_TRY(runMustExist(m_database, runId));
    RunPlaces places;
    MR_TRY(m_database.query(
        "SELECT uuid,coalesce(dir,'') FROM run WHERE id=?",
        [&](const Row& row) {
            places.uuid = row.text(0);
            places.runFolder = row.text(1);
        },
        runId));
    MR_TRY(m_database.query(
        "SELECT path FROM checkpoint WHERE run_id=? AND state<>'deleted'",
        [&](const Row& row) { places.checkpoints.emplace_back(row.text(0)); }, runId));
    return places;
}

// Other runs whose model lies in one of the folders.
Status SqliteRunEdits::addNeeds(Ids runs, RunFiles& files)
{
    const std::lock_guard lock(m_connection.mutex);
    return m_database.query(
        "SELECT run.id,run.name,model.path FROM run JOIN model ON model.id=model_id"
        " WHERE run.deleted_at IS NULL ORDER BY run.id",
        [&](const Row& row) {
            const bool isOneOfThem =
                std::find(runs.begin(), runs.end(), row.integer(0)) != runs.end();
            const std::string model = row.text(2) + "/";
            const bool liesThere = std::any_of(files.folders.begin(), files.folders.end(),
                [&model](const std::string& folder) { return model.starts_with(folder + "/"); });
            if (!isOneOfThem && liesThere)
                files.neededBy.push_back(row.text(1));
        });
}

Result<RunFiles> SqliteRunEdits::filesOf(Ids runs)
{
    RunFiles files;
    for (const std::int64_t runId : runs) {
        Result<RunPlaces> places = placesOf(runId);
        MR_TRY(places.status());
        measureLeftovers(places.value(), files);
    }
    MR_TRY(addNeeds(runs, files));
    return files;
}

Status SqliteRunEdits::removeSeries(std::int64_t runId)
{
    for (bool more = true; more;) {
        const Status done = m_connection.transact(Durability::Normal, [&]() -> Status {
            Result<bool> removed = removeSeriesBatch(m_database, runId);
            MR_TRY(removed.status());
            more = removed.value();
            return {};
        });
        MR_TRY(done);
    }
    return {};
}

// The run itself goes, too. Unless its checkpoints are to go with it, those that still lie on the
// disk keep the hidden row: it is the record of whose they are.
Status SqliteRunEdits::forget(std::int64_t runId, bool withCheckpoints)
{
    MR_TRY(removeSeries(runId));
    return m_connection.transact(Durability::Normal, [&]() -> Status {
        std::vector<std::string> gone;
        MR_TRY(m_database.query(
            "SELECT path FROM checkpoint WHERE run_id=?",
            [&](const Row& row) {
                std::error_code failed;
                const bool isThere = std::filesystem::exists(row.text(0), failed);
                if (withCheckpoints || (!isThere && !failed))
                    gone.push_back(row.text(0));
            },
            runId));
        for (const std::string& path : gone)
            MR_TRY(m_database.execute("DELETE FROM checkpoint WHERE path=?", path));
        MR_TRY(m_database.execute("DELETE FROM run_fts WHERE rowid=?", runId));
        MR_TRY(m_database.execute("DELETE FROM run WHERE id=?1 AND NOT EXISTS"
                                  " (SELECT 1 FROM checkpoint WHERE run_id=?1)",
            runId));
        return m_database.execute(
            "DELETE FROM tag WHERE NOT EXISTS (SELECT 1 FROM run_tag WHERE tag_id=tag.id)");
    });
}

Status SqliteRunEdits::giveBackPages()
{
    const std::lock_guard lock(m_connection.mutex);
    return m_database.query("PRAGMA incremental_vacuum", [](const Row&) {});
}

Status SqliteRunEdits::erase(Ids runs, std::uint64_t confirmedBytes)
{
    {
        const std::lock_guard lock(m_connection.mutex);
        for (const std::int64_t runId : runs)
            MR_TRY(mustBeDeleted(runId));
    }
    Result<RunFiles> files = filesOf(runs);
    MR_TRY(files.status());
    if (files.value().bytes > confirmedBytes)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the runs have {} bytes on the disk by now, {} were agreed to; nothing was"
                        " deleted",
                files.value().bytes, confirmedBytes));
    for (const std::int64_t runId : runs) {
        Result<RunPlaces> places = placesOf(runId);
        MR_TRY(places.status());
        MR_TRY(removeLeftovers(places.value()));
        MR_TRY(forget(runId, true));
    }
    return giveBackPages();
}

Status SqliteRunEdits::expire(std::int64_t ageMs)
{
    std::vector<std::int64_t> old;
    {
        const std::lock_guard lock(m_connection.mutex);
        std::vector<std::int64_t> hidden;
        MR_TRY(m_database.query(
            "SELECT id FROM run WHERE deleted_at<=?",
            [&](const Row& row) { hidden.push_back(row.integer(0)); }, nowMs() - ageMs));
        // A run that is being trained is left alone until it has ended.
        for (const std::int64_t runId : hidden) {
            Result<bool> active = isGoingOn(runId);
            MR_TRY(active.status());
            if (!active.value())
                old.push_back(runId);
        }
    }
    for (const std::int64_t runId : old)
        MR_TRY(forget(runId, false));
    return old.empty() ? Status() : giveBackPages();
}

} // namespace

std::unique_ptr<RunEdits> makeRunEdits(StoreConnection& connection)
{
    return std::make_unique<SqliteRunEdits>(connection);
}

} // namespace mr
