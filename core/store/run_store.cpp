#include "core/store/run_store.h"

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/store/process_identity.h"
#include "core/store/run_rows.h"
#include "core/store/run_series.h"
#include "core/store/schema.h"
#include "core/store/sqlite.h"
#include "core/store/store_connection.h"
#include "core/store/store_edits.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace mr {
namespace {

using FileId = std::pair<dev_t, ino_t>;

// Id of the file that bears the name now; zeros: none does.
FileId idOf(const std::string& path) noexcept
{
    struct stat info {
    };
    return ::stat(path.c_str(), &info) == 0 ? FileId{info.st_dev, info.st_ino} : FileId{};
}

class SqliteRunStore final : public RunStore
{
public:
    explicit SqliteRunStore(std::unique_ptr<Database> database)
        : m_path(database->path())
        , m_database(database.get())
        , m_connection{{}, std::move(database)}
        , m_edits(makeRunEdits(m_connection))
    {
    }

    ~SqliteRunStore() override
    {
        // Leaves one file behind; fails harmlessly while somebody reads.
        try {
            (void)m_database->query("PRAGMA wal_checkpoint(TRUNCATE)", [](const Row&) {});
        } catch (...) {
            return; // no memory left: as harmless
        }
    }

    const std::string& path() const noexcept override { return m_path; }

    Result<std::int64_t> beginRun(const NewRun& run) override;
    Result<std::int64_t> findRun(std::string_view uuid) override;
    Status beginSegment(std::int64_t runId, std::int64_t fromStep) override;
    Status append(std::int64_t runId, const StoreBatch& batch) override;
    Status setPlan(std::int64_t runId, std::string_view planJson, std::int64_t totalSteps) override;
    Status setConfig(std::int64_t runId, std::string_view configJson) override;
    Status rewind(std::int64_t runId, std::int64_t toStep) override;
    Status setStatus(std::int64_t runId, RunStatus status) override;
    Status endRun(
        std::int64_t runId, RunStatus status, int exitCode, std::string_view reason) override;
    Status addCheckpoint(
        std::int64_t runId, const CheckpointRow& row, std::string_view hash) override;
    Status setCheckpointState(std::string_view path, std::string_view state) override;
    Status sync() override;
    Result<std::int64_t> countSteps(std::int64_t runId, std::int64_t toStep) override;
    bool isGone() const noexcept override { return idOf(m_path) != m_file; }
    Status addTrace(std::int64_t runId, const TraceRow& row) override;
    RunEdits& edits() noexcept override { return *m_edits; }

private:
    template <typename Change>
    Status transact(Durability durability, Change&& change)
    {
        return m_connection.transact(durability, std::forward<Change>(change));
    }

    Status mustExist(std::int64_t runId) { return runMustExist(*m_database, runId); }
    Status takeSegment(std::int64_t runId, std::int64_t fromStep);

    const std::string m_path;
    const FileId m_file = idOf(m_path); // as it was opened
    Database* const m_database;         // the connection's
    StoreConnection m_connection;
    std::unique_ptr<RunEdits> m_edits; // borrows the connection
};

Result<std::int64_t> SqliteRunStore::beginRun(const NewRun& run)
{
    std::int64_t runId = 0;
    const Status done = transact(Durability::Full, [&]() -> Status {
        MR_ASSIGN(runId, insertRun(*m_database, run, unixMs()));
        MR_TRY(insertParameters(*m_database, runId, run.configJson));
        // Opened now, so that a process that dies while it starts leaves a lost run.
        const ProcessIdentity self = thisProcess();
        MR_TRY(m_database->execute(
            "INSERT INTO segment(run_id,seg,started_at,pid,boot_id) VALUES(?,1,?,?,?)", runId,
            unixMs(), self.pid, self.boot));
        return refreshSearch(*m_database, runId);
    });
    MR_TRY(done);
    return runId;
}

Result<std::int64_t> SqliteRunStore::findRun(std::string_view uuid)
{
    const std::lock_guard lock(m_connection.mutex);
    Result<std::int64_t> id = m_database->integer("SELECT id FROM run WHERE uuid=?", uuid);
    MR_TRY(id.status());
    if (id.value() == 0)
        return Status::error(
            ErrorKind::InvalidArgument, fmt::format("history {} has no run {}", m_path, uuid));
    return id;
}

// Takes over the segment that beginRun() opened, or closes a lost one and opens the next.
Status SqliteRunStore::takeSegment(std::int64_t runId, std::int64_t fromStep)
{
    MR_ASSIGN(std::optional<OpenSegment> found, openSegment(*m_database, runId));
    const ProcessIdentity self = thisProcess();
    if (const auto& open = found) {
        const bool isOurs = open->process.pid == self.pid && open->process.boot == self.boot;
        if (!isOurs && isAlive(open->process))
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("run {} is being trained by process {}; stop it first", runId,
                    open->process.pid));
        if (isOurs && !open->begun)
            return m_database->execute("UPDATE segment SET first_step=? WHERE run_id=? AND seg=?",
                fromStep + 1, runId, open->number);
        MR_TRY(m_database->execute(
            "UPDATE segment SET end_reason='lost', last_step=(SELECT last_step FROM run WHERE"
            " id=?1) WHERE run_id=?1 AND end_reason IS NULL",
            runId));
    }
    return m_database->execute(
        "INSERT INTO segment(run_id,seg,started_at,first_step,pid,boot_id)"
        " SELECT ?1,coalesce(max(seg),0)+1,?2,?3,?4,?5 FROM segment WHERE run_id=?1",
        runId, unixMs(), fromStep + 1, self.pid, self.boot);
}

Status SqliteRunStore::beginSegment(std::int64_t runId, std::int64_t fromStep)
{
    return transact(Durability::Full, [&]() -> Status {
        MR_TRY(mustExist(runId));
        MR_TRY(takeSegment(runId, fromStep));
        MR_TRY(removeAfter(*m_database, runId, fromStep));
        return m_database->execute(
            "UPDATE run SET status='running', started_at=coalesce(started_at,?2), ended_at=NULL,"
            " exit_code=NULL, exit_reason=NULL WHERE id=?1",
            runId, unixMs());
    });
}

Status SqliteRunStore::append(std::int64_t runId, const StoreBatch& batch)
{
    return transact(Durability::Normal, [&] { return appendBatch(*m_database, runId, batch); });
}

Status SqliteRunStore::setPlan(
    std::int64_t runId, std::string_view planJson, std::int64_t totalSteps)
{
    return transact(Durability::Normal, [&]() -> Status {
        MR_TRY(mustExist(runId));
        return m_database->execute(
            "UPDATE run SET plan_json=?, total_steps=? WHERE id=?", planJson, totalSteps, runId);
    });
}

Status SqliteRunStore::setConfig(std::int64_t runId, std::string_view configJson)
{
    return transact(Durability::Normal, [&]() -> Status {
        MR_TRY(mustExist(runId));
        return replaceConfig(*m_database, runId, std::string(configJson));
    });
}

Status SqliteRunStore::rewind(std::int64_t runId, std::int64_t toStep)
{
    return transact(Durability::Normal, [&]() -> Status {
        MR_TRY(mustExist(runId));
        return removeAfter(*m_database, runId, toStep);
    });
}

Status SqliteRunStore::setStatus(std::int64_t runId, RunStatus status)
{
    return transact(Durability::Full, [&]() -> Status {
        MR_TRY(mustExist(runId));
        return m_database->execute("UPDATE run SET status=? WHERE id=?", name(status), runId);
    });
}

Status SqliteRunStore::endRun(
    std::int64_t runId, RunStatus status, int exitCode, std::string_view reason)
{
    return transact(Durability::Full, [&]() -> Status {
        MR_TRY(mustExist(runId));
        MR_TRY(m_database->execute(
            "UPDATE run SET status=?, ended_at=?, exit_code=?, exit_reason=? WHERE id=?",
            name(status), unixMs(), exitCode, reason, runId));
        return m_database->execute(
            "UPDATE segment SET ended_at=?2, end_reason=?3, last_step=(SELECT last_step FROM run"
            " WHERE id=?1) WHERE run_id=?1 AND end_reason IS NULL",
            runId, unixMs(), name(status));
    });
}

Status SqliteRunStore::addCheckpoint(
    std::int64_t runId, const CheckpointRow& row, std::string_view hash)
{
    return transact(Durability::Full, [&]() -> Status {
        MR_TRY(mustExist(runId));
        // A resumed run writes some of its checkpoints again, at the same place.
        return m_database->execute(
            "INSERT INTO checkpoint(run_id,step,kind,path,bytes,hash,has_optimizer,state,"
            "created_at,write_ms,eval_loss) VALUES(?,?,'full',?,?,?,1,?,?,?,?) ON CONFLICT(path) DO"
            " UPDATE SET run_id=excluded.run_id, step=excluded.step, bytes=excluded.bytes,"
            " hash=excluded.hash, state=excluded.state, created_at=excluded.created_at,"
            " write_ms=excluded.write_ms, eval_loss=excluded.eval_loss",
            runId, row.step, row.path, row.bytes, hash, row.state, row.createdMs, row.writeMs,
            row.evalLoss);
    });
}

Status SqliteRunStore::setCheckpointState(std::string_view path, std::string_view state)
{
    return transact(Durability::Full, [&]() -> Status {
        MR_TRY(m_database->execute("UPDATE checkpoint SET state=? WHERE path=?", state, path));
        if (m_database->changes() == 0)
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("history {} has no checkpoint {}", m_path, path));
        return {};
    });
}

// SQLite's log, in which commits are that did not wait for the disk. SQLite holds its locks on
// other files, so closing this one gives none of them back. Considered: a commit that waits; but
// one that changes nothing writes nothing, and waits for nothing.
Status SqliteRunStore::sync()
{
    const std::string log = m_path + "-wal";
    std::error_code error;
    if (!std::filesystem::exists(log, error))
        return {}; // all of it is in the database
    MR_ASSIGN(File file, File::openRead(log));
    return file.sync();
}

Result<std::int64_t> SqliteRunStore::countSteps(std::int64_t runId, std::int64_t toStep)
{
    const std::lock_guard lock(m_connection.mutex);
    return m_database->integer(
        "SELECT count(*) FROM step WHERE id>? AND id<=?", stepId(runId, 0), stepId(runId, toStep));
}

Status SqliteRunStore::addTrace(std::int64_t runId, const TraceRow& row)
{
    return transact(Durability::Normal, [&]() -> Status {
        MR_TRY(mustExist(runId));
        return m_database->execute(
            "INSERT OR REPLACE INTO trace(run_id,step,path,bytes,why) VALUES(?,?,?,?,?)", runId,
            row.step, row.path, row.bytes, row.why);
    });
}

} // namespace

Result<std::unique_ptr<RunStore>> RunStore::open(const std::string& database)
{
    MR_ASSIGN(std::unique_ptr<Database> opened, openForWriting(database));
    return std::unique_ptr<RunStore>(std::make_unique<SqliteRunStore>(std::move(opened)));
}

} // namespace mr
