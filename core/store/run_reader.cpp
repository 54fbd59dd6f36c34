#include "core/store/answer_rows.h"
#include "core/store/export_rows.h"
#include "core/store/machine_chunks.h"
#include "core/store/process_identity.h"
#include "core/store/resume_answer.h"
#include "core/store/run_series.h"
#include "core/store/schema.h"
#include "core/store/sqlite.h"
#include "core/store/trace_reader.h"

#include <millrace/run_reader.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

namespace mr {
namespace {

// The last segment tells whether the process that writes the run still lives. The base, step 0, is
// no result of a run: earlier programs kept it as the best evaluation where nothing was better. {}:
// the column of the spec asked for, which a history of an earlier program does not have until
// somebody writes to it.
constexpr std::string_view kSelectRuns =
    "SELECT run.id,uuid,run.name,status,model.name,model.path,dataset.name,dataset.path,"
    "config_json,plan_json,host_json,engine_version,created_at,run.started_at,run.ended_at,"
    "active_us,compute_us,stall_us,run.last_step,total_steps,tokens,last_loss,"
    "CASE best_eval_step WHEN 0 THEN (SELECT value FROM scalar e WHERE e.run_id=run.id"
    " AND e.metric_id=m.id AND step>0 AND value IS NOT NULL ORDER BY value,step LIMIT 1)"
    " ELSE best_eval END,"
    "coalesce(CASE best_eval_step WHEN 0 THEN (SELECT step FROM scalar e WHERE e.run_id=run.id"
    " AND e.metric_id=m.id AND step>0 AND value IS NOT NULL ORDER BY value,step LIMIT 1)"
    " ELSE best_eval_step END,-1),device_peak_bytes,host_peak_bytes,simulated_link,exit_reason,"
    "dir,notes,"
    "(SELECT count(*) FROM checkpoint c WHERE c.run_id=run.id AND state IN"
    " ('complete','verified')),"
    "s.pid,s.boot_id,s.run_id IS NOT NULL AND s.end_reason IS NULL,energy_j,"
    "coalesce((SELECT step FROM checkpoint c WHERE c.run_id=run.id AND state IN"
    " ('complete','verified') AND eval_loss IS NOT NULL"
    " ORDER BY eval_loss,step DESC LIMIT 1),-1),"
    "(SELECT group_concat(name,char(10)) FROM (SELECT tag.name FROM run_tag JOIN tag ON"
    " tag.id=tag_id WHERE run_id=run.id ORDER BY tag.name COLLATE NOCASE)),run.deleted_at,"
    "(SELECT group_concat(path,char(10)) FROM checkpoint c WHERE c.run_id=run.id AND"
    " state<>'deleted'),"
    "(SELECT value FROM scalar e WHERE e.run_id=run.id AND e.metric_id=m.id AND step=0),"
    "(SELECT value FROM scalar e WHERE e.run_id=run.id AND e.metric_id=m.id AND step>0"
    " ORDER BY step DESC LIMIT 1),"
    "coalesce((SELECT max(step) FROM scalar e WHERE e.run_id=run.id AND e.metric_id=m.id"
    " AND step>0),-1),{} "
    "FROM run LEFT JOIN model ON model.id=model_id LEFT JOIN dataset ON dataset.id=dataset_id "
    "LEFT JOIN metric m ON m.name='eval_loss' "
    "LEFT JOIN segment s ON s.run_id=run.id AND s.seg="
    "(SELECT max(seg) FROM segment WHERE run_id=run.id) "
    "WHERE (run.deleted_at IS NOT NULL)=?2 AND (?1=0 OR run.id=?1) "
    "ORDER BY run.deleted_at DESC, created_at DESC, run.id DESC";

void readNumbers(const Row& row, RunRow& run)
{
    run.createdMs = row.integer(12);
    run.startedMs = row.integer(13);
    run.endedMs = row.integer(14);
    run.activeUs = row.integer(15);
    run.computeUs = row.integer(16);
    run.stallUs = row.integer(17);
    run.lastStep = row.integer(18);
    run.totalSteps = row.integer(19);
    run.tokens = row.integer(20);
    run.lastLoss = row.real(21);
    run.bestEval = row.real(22);
    run.bestEvalStep = row.integer(23);
    run.devicePeakBytes = row.integer(24);
    run.hostPeakBytes = row.integer(25);
    run.simulatedLink = row.integer(26) != 0;
    run.energyJ = row.real(34);
    run.bestCheckpointStep = row.integer(35);
    run.firstEval = row.real(39);
    run.lastEval = row.real(40);
    run.lastEvalStep = row.integer(41);
}

std::vector<std::string> linesOf(const std::string& text)
{
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

ResumeFacts factsOf(const RunRow& run, const Row& row)
{
    ResumeFacts facts;
    facts.status = run.status;
    facts.hasCheckpoint = row.integer(30) > 0;
    facts.places = {run.uuid, run.dir, {}};
    for (std::string& path : linesOf(row.text(38)))
        facts.places.checkpoints.emplace_back(std::move(path));
    facts.configJson = run.configJson;
    return facts;
}

RunRow runFrom(const Row& row)
{
    RunRow run;
    run.id = row.integer(0);
    run.uuid = row.text(1);
    run.name = row.text(2);
    run.status = runStatusOf(row.text(3)).value_or(RunStatus::Lost);
    run.modelName = row.text(4);
    run.modelPath = row.text(5);
    run.datasetName = row.text(6);
    run.datasetPath = row.text(7);
    run.configJson = row.text(8);
    run.askedJson = row.text(42);
    run.planJson = row.text(9);
    run.hostJson = row.text(10);
    run.engineVersion = row.text(11);
    readNumbers(row, run);
    run.exitReason = row.text(27);
    run.dir = row.text(28);
    run.notes = row.text(29);
    run.tags = linesOf(row.text(36));
    run.deletedMs = row.integer(37);
    const bool isOpen = row.integer(33) != 0;
    if (isLive(run.status) && isOpen && !isAlive({row.integer(31), row.text(32)})) {
        run.status = RunStatus::Lost;
        run.exitReason = "the program ended without closing the run";
    }
    const ResumeAnswer answer = resumeAnswer(factsOf(run, row));
    run.resumable = answer != ResumeAnswer::Refused;
    run.startsAgain = answer == ResumeAnswer::StartsAgain;
    return run;
}

class SqliteRunReader final : public RunReader
{
public:
    SqliteRunReader(std::unique_ptr<Database> database, bool hasAsked)
        : m_database(std::move(database))
        , m_selectRuns(fmt::format(kSelectRuns, hasAsked ? "asked_json" : "NULL"))
    {
    }

    Result<std::vector<RunRow>> runs() override { return select(0, false); }
    Result<std::vector<RunRow>> deletedRuns() override { return select(0, true); }

    Result<RunRow> run(std::int64_t id) override
    {
        if (id <= 0)
            return unknown(id);
        MR_ASSIGN(std::vector<RunRow> rows, select(id, false));
        if (rows.empty())
            return unknown(id);
        return std::move(rows.front());
    }

    Result<std::vector<StepRow>> steps(
        std::int64_t runId, std::int64_t afterStep, std::int64_t limit) override
    {
        MR_TRY(mustExist(runId));
        return readSteps(*m_database, runId, afterStep, limit);
    }

    Result<std::vector<IntervalRow>> intervals(std::int64_t runId, std::int64_t afterUs) override
    {
        return readIntervals(*m_database, runId, afterUs);
    }

    Result<std::vector<ScalarRow>> scalars(
        std::int64_t runId, std::string_view metric, std::int64_t afterStep) override
    {
        MR_TRY(mustExist(runId));
        std::vector<ScalarRow> rows;
        MR_TRY(m_database->query(
            "SELECT step,t_ms,value FROM scalar WHERE run_id=? AND metric_id="
            "(SELECT id FROM metric WHERE name=?) AND step>? ORDER BY step",
            [&](const Row& row) {
                rows.push_back({row.integer(0), row.integer(1), row.real(2)});
            },
            runId, metric, afterStep));
        return rows;
    }

    Result<std::vector<EventRow>> events(std::int64_t runId, std::int64_t afterId) override
    {
        MR_TRY(mustExist(runId));
        std::vector<EventRow> rows;
        MR_TRY(m_database->query(
            "SELECT id,step,t_ms,level,code,text,coalesce(data_json,'') FROM event"
            " WHERE run_id=? AND id>? ORDER BY id",
            [&](const Row& row) {
                const std::int64_t level = std::clamp<std::int64_t>(row.integer(3), 0, 2);
                rows.push_back({row.integer(0), row.integer(1), row.integer(2),
                    static_cast<EventLevel>(level), row.text(4), row.text(5), row.text(6)});
            },
            runId, afterId));
        return rows;
    }

    Result<std::vector<CheckpointRow>> checkpoints(std::int64_t runId) override
    {
        MR_TRY(mustExist(runId));
        std::vector<CheckpointRow> rows;
        MR_TRY(m_database->query(
            "SELECT step,path,bytes,state,created_at,write_ms,eval_loss,"
            "id IS (SELECT id FROM checkpoint WHERE run_id=?1 AND state IN ('complete','verified')"
            " AND eval_loss IS NOT NULL ORDER BY eval_loss,step DESC,id DESC LIMIT 1)"
            " FROM checkpoint WHERE run_id=?1 ORDER BY step,id",
            [&](const Row& row) {
                rows.push_back({row.integer(0), row.text(1), row.integer(2), row.text(3),
                    row.integer(4), row.integer(5), row.real(6), row.integer(7) != 0});
            },
            runId));
        return rows;
    }

    Result<std::vector<ExportRow>> exports(std::int64_t runId) override
    {
        MR_TRY(mustExist(runId));
        return readExports(*m_database, runId);
    }

    Result<std::vector<CounterInfo>> counters(std::int64_t runId) override
    {
        MR_TRY(mustExist(runId));
        return readCounters(*m_database, runId);
    }

    Result<CounterSeries> counter(
        std::int64_t runId, std::string_view metric, const CounterWindow& window) override
    {
        MR_TRY(mustExist(runId));
        return readCounter(*m_database, runId, metric, window);
    }

    Result<std::vector<AnswerRow>> answers(std::int64_t runId) override
    {
        MR_TRY(mustExist(runId));
        return readAnswers(*m_database, runId);
    }

    Result<std::vector<TraceInfo>> traces(std::int64_t runId) override
    {
        MR_TRY(mustExist(runId));
        return readTraces(*m_database, runId);
    }

    Result<StepTimeline> timeline(std::int64_t runId, std::int64_t step) override
    {
        MR_TRY(mustExist(runId));
        return readTimeline(*m_database, runId, step);
    }

private:
    Status unknown(std::int64_t id) const
    {
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("history {} has no run {}", m_database->path(), id));
    }

    // Hidden runs count as not there.
    Status mustExist(std::int64_t id)
    {
        MR_ASSIGN(std::int64_t count,
            m_database->integer("SELECT count(*) FROM run WHERE id=? AND deleted_at IS NULL", id));
        return count == 0 ? unknown(id) : Status();
    }

    // `id` 0: all of them.
    Result<std::vector<RunRow>> select(std::int64_t id, bool deleted)
    {
        std::vector<RunRow> rows;
        MR_TRY(m_database->query(
            m_selectRuns, [&](const Row& row) { rows.push_back(runFrom(row)); }, id, deleted));
        return rows;
    }

    std::unique_ptr<Database> m_database;
    std::string m_selectRuns;
};

std::filesystem::path dataFolder()
{
    // The XDG base directory specification: relative paths are to be ignored.
    const char* xdg = std::getenv("XDG_DATA_HOME");
    if (xdg != nullptr && std::filesystem::path(xdg).is_absolute())
        return std::filesystem::path(xdg) / "millrace";
    const char* home = std::getenv("HOME");
    if (home != nullptr && *home != '\0')
        return std::filesystem::path(home) / ".local/share/millrace";
    return {"millrace-data"};
}

} // namespace

Result<std::unique_ptr<RunReader>> RunReader::open(const std::string& database)
{
    MR_ASSIGN(std::unique_ptr<Database> opened, openForReading(database));
    MR_ASSIGN(std::int64_t hasAsked,
        opened->integer("SELECT count(*) FROM pragma_table_info('run') WHERE name='asked_json'"));
    return std::unique_ptr<RunReader>(
        std::make_unique<SqliteRunReader>(std::move(opened), hasAsked > 0));
}

std::string defaultDatabasePath()
{
    return (dataFolder() / "history.db").string();
}

std::string defaultRunsFolder()
{
    return (dataFolder() / "runs").string();
}

} // namespace mr
