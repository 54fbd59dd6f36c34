#include "core/store/run_bin.h"

#include "core/base/clock.h"
#include "core/store/process_identity.h"
#include "core/store/run_rows.h"
#include "core/store/run_series.h"
#include "core/store/sqlite.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

namespace mr {
RunBin::RunBin(StoreConnection& connection)
    : m_connection(connection)
    , m_database(*connection.database)
{
}

Result<bool> RunBin::isGoingOn(std::int64_t runId)
{
    MR_ASSIGN(std::optional<OpenSegment> open, openSegment(m_database, runId));
    return open && isAlive(open->process);
}

Status RunBin::mustBeAtRest(std::int64_t runId)
{
    MR_ASSIGN(std::string name, nameOfRun(m_database, runId));
    MR_ASSIGN(bool active, isGoingOn(runId));
    if (active)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the run \"{}\" is going on; stop it before it is deleted", name));
    return {};
}

Status RunBin::mustBeDeleted(std::int64_t runId)
{
    MR_TRY(mustBeAtRest(runId));
    MR_ASSIGN(std::int64_t hidden,
        m_database.integer(
            "SELECT count(*) FROM run WHERE id=? AND deleted_at IS NOT NULL", runId));
    if (hidden == 0)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the run \"{}\" is not in the bin; delete it first",
                nameOfRun(m_database, runId).value()));
    return {};
}

Result<std::vector<std::int64_t>> RunBin::remove(Ids runs)
{
    std::vector<std::int64_t> changed;
    const Status done = m_connection.transact(Durability::Normal, [&]() -> Status {
        for (const std::int64_t runId : runs) {
            MR_TRY(mustBeAtRest(runId));
            MR_TRY(m_database.execute(
                "UPDATE run SET deleted_at=? WHERE id=? AND deleted_at IS NULL", unixMs(), runId));
            if (m_database.changes() > 0)
                changed.push_back(runId);
        }
        return {};
    });
    MR_TRY(done);
    return changed;
}

Status RunBin::restore(Ids runs)
{
    return m_connection.transact(Durability::Normal, [&]() -> Status {
        for (const std::int64_t runId : runs) {
            MR_TRY(runMustExist(m_database, runId));
            MR_TRY(m_database.execute("UPDATE run SET deleted_at=NULL WHERE id=?", runId));
        }
        return {};
    });
}

Result<RunPlaces> RunBin::placesOf(std::int64_t runId)
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

// Adds other runs that train a model in one of the folders.
Status RunBin::addNeeds(Ids runs, RunFiles& files)
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

Result<RunFiles> RunBin::filesOf(Ids runs)
{
    RunFiles files;
    for (const std::int64_t runId : runs) {
        MR_ASSIGN(RunPlaces places, placesOf(runId));
        measureLeftovers(places, files);
    }
    MR_TRY(addNeeds(runs, files));
    return files;
}

Status RunBin::removeSeries(std::int64_t runId)
{
    for (bool more = true; more;) {
        const Status done = m_connection.transact(Durability::Normal, [&]() -> Status {
            MR_ASSIGN(more, removeSeriesBatch(m_database, runId));
            return {};
        });
        MR_TRY(done);
    }
    return {};
}

// The run itself goes, too. Unless its checkpoints are to go with it, those that still lie on the
// disk keep the hidden row: it records their owner.
Status RunBin::forget(std::int64_t runId, bool withCheckpoints)
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
        MR_TRY(m_database.execute("DELETE FROM export WHERE run_id=?", runId));
        MR_TRY(m_database.execute("DELETE FROM run_fts WHERE rowid=?", runId));
        MR_TRY(m_database.execute("DELETE FROM run WHERE id=?1 AND NOT EXISTS"
                                  " (SELECT 1 FROM checkpoint WHERE run_id=?1)",
            runId));
        return dropUnusedTags(m_database);
    });
}

Status RunBin::giveBackPages()
{
    const std::lock_guard lock(m_connection.mutex);
    return m_database.query("PRAGMA incremental_vacuum", [](const Row&) {});
}

Status RunBin::erase(Ids runs, std::uint64_t confirmedBytes)
{
    {
        const std::lock_guard lock(m_connection.mutex);
        for (const std::int64_t runId : runs)
            MR_TRY(mustBeDeleted(runId));
    }
    MR_ASSIGN(RunFiles files, filesOf(runs));
    if (files.bytes > confirmedBytes)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the runs have {} bytes on the disk by now, {} were agreed to; nothing was"
                        " deleted",
                files.bytes, confirmedBytes));
    for (const std::int64_t runId : runs) {
        MR_ASSIGN(RunPlaces places, placesOf(runId));
        MR_TRY(removeLeftovers(places));
        MR_TRY(forget(runId, true));
    }
    return giveBackPages();
}

Status RunBin::expire(std::int64_t ageMs)
{
    std::vector<std::int64_t> old;
    {
        const std::lock_guard lock(m_connection.mutex);
        std::vector<std::int64_t> hidden;
        MR_TRY(m_database.query(
            "SELECT id FROM run WHERE deleted_at<=?",
            [&](const Row& row) { hidden.push_back(row.integer(0)); }, unixMs() - ageMs));
        // A run that is being trained is left alone until it has ended.
        for (const std::int64_t runId : hidden) {
            MR_ASSIGN(bool active, isGoingOn(runId));
            if (!active)
                old.push_back(runId);
        }
    }
    for (const std::int64_t runId : old)
        MR_TRY(forget(runId, false));
    return old.empty() ? Status() : giveBackPages();
}

} // namespace mr
