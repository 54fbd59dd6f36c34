#include "core/store/run_store.h"

#include "core/store/process_identity.h"
#include "core/store/run_rows.h"
#include "core/store/run_series.h"
#include "core/store/schema.h"
#include "core/store/sqlite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

namespace mr {
namespace {

std::int64_t nowMs()
{
    using namespace std::chrono;
    return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

class SqliteRunStore final : public RunStore
{
public:
    explicit SqliteRunStore(std::unique_ptr<Database> database)
        : m_path(database->path())
        , m_database(std::move(database))
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
    Status setStatus(std::int64_t runId, std::string_view status) override;
    Status endRun(std::int64_t runId, std::string_view status, int exitCode,
        std::string_view reason) override;
    Status addCheckpoint(
        std::int64_t runId, const CheckpointRow& row, std::string_view hash) override;
    Status setCheckpointState(std::string_view path, std::string_view state) override;
    Status addTrace(std::int64_t runId, const TraceRow& row) override;
    Status setName(std::int64_t runId, std::string_view name) override;
    Status setNotes(std::int64_t runId, std::string_view notes) override;
    Status setDeleted(std::int64_t runId, bool deleted) override;
    Status purge() override;

private:
    // The last segment of a run, if it was never closed.
    struct OpenSegment {
        std::int64_t number = 0;
        ProcessIdentity process;
        bool begun = false; // beginSegment() was called
    };

    // Runs `change` (a callable giving Status) as one transaction.
    template <typename Change>
    Status transact(Durability durability, Change&& change)
    {
        const std::lock_guard lock(m_mutex);
        Result<Transaction> transaction = Transaction::begin(*m_database, durability);
        MR_TRY(transaction.status());
        MR_TRY(change());
        return transaction.value().commit();
    }

    Status mustExist(std::int64_t runId);
    Result<std::optional<OpenSegment>> openSegment(std::int64_t runId);
    Status takeSegment(std::int64_t runId, std::int64_t fromStep);
    Status purgeRun(std::int64_t runId);

    const std::string m_path;
    std::mutex m_mutex;
    std::unique_ptr<Database> m_database; // guarded by m_mutex
};

Status SqliteRunStore::mustExist(std::int64_t runId)
{
    Result<std::int64_t> count = m_database->integer("SELECT count(*) FROM run WHERE id=?", runId);
    MR_TRY(count.status());
    if (count.value() == 0)
        return Status::error(
            ErrorKind::InvalidArgument, fmt::format("history {} has no run {}", m_path, runId));
    return {};
}

Result<std::int64_t> SqliteRunStore::beginRun(const NewRun& run)
{
    std::int64_t runId = 0;
    const Status done = transact(Durability::Full, [&]() -> Status {
        Result<std::int64_t> inserted = insertRun(*m_database, run, nowMs());
        MR_TRY(inserted.status());
        runId = inserted.value();
        MR_TRY(insertParameters(*m_database, runId, run.configJson));
        // Opened now, so that a process that dies while it starts leaves a lost run.
        const ProcessIdentity self = thisProcess();
        MR_TRY(m_database->execute(
            "INSERT INTO segment(run_id,seg,started_at,pid,boot_id) VALUES(?,1,?,?,?)", runId,
            nowMs(), self.pid, self.boot));
        return refreshSearch(*m_database, runId);
    });
    MR_TRY(done);
    return runId;
}

Result<std::int64_t> SqliteRunStore::findRun(std::string_view uuid)
{
    const std::lock_guard lock(m_mutex);
    Result<std::int64_t> id = m_database->integer("SELECT id FROM run WHERE uuid=?", uuid);
    MR_TRY(id.status());
    if (id.value() == 0)
        return Status::error(
            ErrorKind::InvalidArgument, fmt::format("history {} has no run {}", m_path, uuid));
    return id;
}

Result<std::optional<SqliteRunStore::OpenSegment>> SqliteRunStore::openSegment(std::int64_t runId)
{
    std::optional<OpenSegment> open;
    MR_TRY(m_database->query(
        "SELECT seg,pid,boot_id,first_step IS NOT NULL FROM segment WHERE run_id=? AND"
        " end_reason IS NULL ORDER BY seg DESC LIMIT 1",
        [&](const Row& row) {
            open = OpenSegment{row.integer(0), {row.integer(1), row.text(2)}, row.integer(3) != 0};
        },
        runId));
    return open;
}

// Takes over the segment that beginRun() opened, or closes a lost one and opens the next.
Status SqliteRunStore::takeSegment(std::int64_t runId, std::int64_t fromStep)
{
    Result<std::optional<OpenSegment>> found = openSegment(runId);
    MR_TRY(found.status());
    const ProcessIdentity self = thisProcess();
    if (const auto& open = found.value()) {
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
        runId, nowMs(), fromStep + 1, self.pid, self.boot);
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
            runId, nowMs());
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

Status SqliteRunStore::setStatus(std::int64_t runId, std::string_view status)
{
    return transact(Durability::Full, [&]() -> Status {
        MR_TRY(mustExist(runId));
        return m_database->execute("UPDATE run SET status=? WHERE id=?", status, runId);
    });
}

Status SqliteRunStore::endRun(
    std::int64_t runId, std::string_view status, int exitCode, std::string_view reason)
{
    return transact(Durability::Full, [&]() -> Status {
        MR_TRY(mustExist(runId));
        MR_TRY(m_database->execute(
            "UPDATE run SET status=?, ended_at=?, exit_code=?, exit_reason=? WHERE id=?", status,
            nowMs(), exitCode, reason, runId));
        return m_database->execute(
            "UPDATE segment SET ended_at=?2, end_reason=?3, last_step=(SELECT last_step FROM run"
            " WHERE id=?1) WHERE run_id=?1 AND end_reason IS NULL",
            runId, nowMs(), status);
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

Status SqliteRunStore::addTrace(std::int64_t runId, const TraceRow& row)
{
    return transact(Durability::Normal, [&]() -> Status {
        MR_TRY(mustExist(runId));
        return m_database->execute(
            "INSERT OR REPLACE INTO trace(run_id,step,path,bytes,why) VALUES(?,?,?,?,?)", runId,
            row.step, row.path, row.bytes, row.why);
    });
}

Status SqliteRunStore::setName(std::int64_t runId, std::string_view name)
{
    return transact(Durability::Normal, [&]() -> Status {
        MR_TRY(mustExist(runId));
        MR_TRY(m_database->execute("UPDATE run SET name=? WHERE id=?", name, runId));
        return refreshSearch(*m_database, runId);
    });
}

Status SqliteRunStore::setNotes(std::int64_t runId, std::string_view notes)
{
    return transact(Durability::Normal, [&]() -> Status {
        MR_TRY(mustExist(runId));
        MR_TRY(m_database->execute("UPDATE run SET notes=? WHERE id=?", notes, runId));
        return refreshSearch(*m_database, runId);
    });
}

Status SqliteRunStore::setDeleted(std::int64_t runId, bool deleted)
{
    return transact(Durability::Normal, [&]() -> Status {
        MR_TRY(mustExist(runId));
        return m_database->execute("UPDATE run SET deleted_at=nullif(?,0) WHERE id=?",
            deleted ? nowMs() : std::int64_t{0}, runId);
    });
}

// The run itself goes too, unless a checkpoint of it still lies on the disk: then the hidden row
// stays as the record of whose it is.
Status SqliteRunStore::purgeRun(std::int64_t runId)
{
    for (bool more = true; more;) {
        const Status done = transact(Durability::Normal, [&]() -> Status {
            Result<bool> removed = removeSeriesBatch(*m_database, runId);
            MR_TRY(removed.status());
            more = removed.value();
            return {};
        });
        MR_TRY(done);
    }
    return transact(Durability::Normal, [&]() -> Status {
        std::vector<std::string> gone;
        MR_TRY(m_database->query(
            "SELECT path FROM checkpoint WHERE run_id=?",
            [&](const Row& row) {
                std::error_code failed;
                const bool isThere = std::filesystem::exists(row.text(0), failed);
                if (!isThere && !failed)
                    gone.push_back(row.text(0));
            },
            runId));
        for (const std::string& path : gone)
            MR_TRY(m_database->execute("DELETE FROM checkpoint WHERE path=?", path));
        MR_TRY(m_database->execute("DELETE FROM run_fts WHERE rowid=?", runId));
        return m_database->execute("DELETE FROM run WHERE id=?1 AND NOT EXISTS"
                                   " (SELECT 1 FROM checkpoint WHERE run_id=?1)",
            runId);
    });
}

Status SqliteRunStore::purge()
{
    std::vector<std::int64_t> hidden;
    {
        const std::lock_guard lock(m_mutex);
        MR_TRY(m_database->query("SELECT id FROM run WHERE deleted_at IS NOT NULL",
            [&](const Row& row) { hidden.push_back(row.integer(0)); }));
        // A run that is being trained is left alone until it has ended.
        for (std::int64_t& runId : hidden) {
            Result<std::optional<OpenSegment>> open = openSegment(runId);
            MR_TRY(open.status());
            if (open.value() && isAlive(open.value()->process))
                runId = 0;
        }
    }
    std::erase(hidden, 0);
    for (const std::int64_t runId : hidden)
        MR_TRY(purgeRun(runId));
    const std::lock_guard lock(m_mutex);
    return m_database->query("PRAGMA incremental_vacuum", [](const Row&) {});
}

} // namespace

Result<std::unique_ptr<RunStore>> RunStore::open(const std::string& database)
{
    Result<std::unique_ptr<Database>> opened = openForWriting(database);
    MR_TRY(opened.status());
    return std::unique_ptr<RunStore>(std::make_unique<SqliteRunStore>(std::move(opened).value()));
}

} // namespace mr
