#include "core/store/run_series.h"

#include "core/store/answer_rows.h"
#include "core/store/machine_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

namespace mr {
namespace {

constexpr std::string_view kInsertStep =
    "INSERT INTO step(id,t_ms,dt_us,tokens,loss_tokens,staleness,loss,lr,grad_norm,compute_us,"
    "stall_h2d_us,stall_d2h_us,stall_host_update_us,stall_disk_us,stall_data_us,stall_other_us,"
    "h2d_bytes,d2h_bytes,disk_read_bytes,disk_write_bytes,device_peak_bytes,host_peak_bytes) "
    "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO NOTHING";

constexpr std::string_view kSelectSteps =
    "SELECT id,t_ms,dt_us,tokens,loss_tokens,staleness,loss,lr,grad_norm,compute_us,"
    "stall_h2d_us,stall_d2h_us,stall_host_update_us,stall_disk_us,stall_data_us,stall_other_us,"
    "h2d_bytes,d2h_bytes,disk_read_bytes,disk_write_bytes,device_peak_bytes,host_peak_bytes "
    "FROM step WHERE id>? AND id<=? ORDER BY id LIMIT ?";

Result<bool> insertStep(Database& db, std::int64_t runId, const StepRow& s)
{
    const auto& stall = s.stallUs;
    MR_TRY(db.execute(kInsertStep, stepId(runId, s.step), s.timeMs, s.wallUs, s.tokens,
        s.lossTokens, s.staleness, s.loss, s.learningRate, s.gradNorm, s.computeUs, stall[0],
        stall[1], stall[2], stall[3], stall[4], stall[5], s.h2dBytes, s.d2hBytes, s.diskReadBytes,
        s.diskWriteBytes, s.devicePeakBytes, s.hostPeakBytes));
    return db.changes() > 0;
}

StepRow stepFrom(const Row& row)
{
    StepRow s;
    s.step = stepOfId(row.integer(0));
    s.timeMs = row.integer(1);
    s.wallUs = row.integer(2);
    s.tokens = row.integer(3);
    s.lossTokens = row.integer(4);
    s.staleness = row.integer(5);
    s.loss = row.real(6);
    s.learningRate = row.real(7);
    s.gradNorm = row.real(8);
    s.computeUs = row.integer(9);
    for (std::size_t i = 0; i < kStallCauses; ++i)
        s.stallUs[i] = row.integer(10 + static_cast<int>(i));
    s.h2dBytes = row.integer(16);
    s.d2hBytes = row.integer(17);
    s.diskReadBytes = row.integer(18);
    s.diskWriteBytes = row.integer(19);
    s.devicePeakBytes = row.integer(20);
    s.hostPeakBytes = row.integer(21);
    return s;
}

Status insertInterval(Database& db, std::int64_t runId, const IntervalRow& r)
{
    const auto& stall = r.stallUs;
    return db.execute(
        "INSERT INTO interval(run_id,end_us,kind,begin_us,step,compute_us,stall_h2d_us,"
        "stall_d2h_us,stall_host_update_us,stall_disk_us,stall_data_us,stall_other_us,h2d_bytes,"
        "d2h_bytes,disk_read_bytes,disk_write_bytes) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
        " ON CONFLICT DO NOTHING",
        runId, r.endUs, static_cast<std::int64_t>(r.kind), r.beginUs, r.step, r.computeUs, stall[0],
        stall[1], stall[2], stall[3], stall[4], stall[5], r.h2dBytes, r.d2hBytes, r.diskReadBytes,
        r.diskWriteBytes);
}

IntervalRow intervalFrom(const Row& row)
{
    IntervalRow r;
    r.endUs = row.integer(0);
    const std::int64_t kind = row.integer(1);
    r.kind = static_cast<IntervalKind>(
        std::clamp<std::int64_t>(kind, 0, static_cast<std::int64_t>(kIntervalKinds) - 1));
    r.beginUs = row.integer(2);
    r.step = row.integer(3);
    r.computeUs = row.integer(4);
    for (std::size_t i = 0; i < kStallCauses; ++i)
        r.stallUs[i] = row.integer(5 + static_cast<int>(i));
    r.h2dBytes = row.integer(11);
    r.d2hBytes = row.integer(12);
    r.diskReadBytes = row.integer(13);
    r.diskWriteBytes = row.integer(14);
    return r;
}

// Contribution of one batch to the columns of `run`.
struct Summary {
    std::int64_t count = 0;
    std::int64_t tokens = 0;
    std::int64_t computeUs = 0;
    std::int64_t stallUs = 0;
    std::int64_t timeMs = 0;
    std::int64_t lastStep = 0;
    double lastLoss = 0.0;
    std::int64_t devicePeakBytes = 0;
    std::int64_t hostPeakBytes = 0;
};

void count(Summary& sum, const StepRow& step)
{
    ++sum.count;
    sum.tokens += step.tokens;
    sum.computeUs += step.computeUs;
    sum.stallUs += std::accumulate(step.stallUs.begin(), step.stallUs.end(), std::int64_t{0});
    sum.timeMs = std::max(sum.timeMs, step.timeMs);
    sum.devicePeakBytes = std::max(sum.devicePeakBytes, step.devicePeakBytes);
    sum.hostPeakBytes = std::max(sum.hostPeakBytes, step.hostPeakBytes);
    if (step.step >= sum.lastStep) {
        sum.lastStep = step.step;
        sum.lastLoss = step.loss;
    }
}

// Active time is the run's own clock at its last step, and never less than the time of its steps.
Status addSummary(Database& db, std::int64_t runId, const Summary& sum)
{
    return db.execute(
        "UPDATE run SET tokens=coalesce(tokens,0)+?2, compute_us=coalesce(compute_us,0)+?3,"
        " stall_us=coalesce(stall_us,0)+?4,"
        " active_us=max(coalesce(active_us,0),?5,"
        "  coalesce(compute_us,0)+?3+coalesce(stall_us,0)+?4),"
        " last_loss=CASE WHEN ?6>=coalesce(last_step,0) THEN ?7 ELSE last_loss END,"
        " last_step=max(coalesce(last_step,0),?6),"
        " device_peak_bytes=max(coalesce(device_peak_bytes,0),?8),"
        " host_peak_bytes=max(coalesce(host_peak_bytes,0),?9) WHERE id=?1",
        runId, sum.tokens, sum.computeUs, sum.stallUs, sum.timeMs * 1000, sum.lastStep,
        sum.lastLoss, sum.devicePeakBytes, sum.hostPeakBytes);
}

Result<std::int64_t> metricId(Database& db, std::string_view name)
{
    // Lower is better for every loss; nothing is claimed for the others.
    const bool isLoss = name.find("loss") != std::string_view::npos;
    if (isLoss)
        MR_TRY(db.execute(
            "INSERT INTO metric(name,better) VALUES(?,-1) ON CONFLICT DO NOTHING", name));
    else
        MR_TRY(db.execute("INSERT INTO metric(name) VALUES(?) ON CONFLICT DO NOTHING", name));
    return db.integer("SELECT id FROM metric WHERE name=?", name);
}

Status appendScalar(Database& db, std::int64_t runId, const NamedScalar& scalar)
{
    Result<std::int64_t> metric = metricId(db, scalar.metric);
    MR_TRY(metric.status());
    const ScalarRow& row = scalar.row;
    MR_TRY(db.execute("INSERT INTO scalar(run_id,metric_id,step,t_ms,value) VALUES(?,?,?,?,?)"
                      " ON CONFLICT(run_id,metric_id,step)"
                      " DO UPDATE SET t_ms=excluded.t_ms, value=excluded.value",
        runId, metric.value(), row.step, row.timeMs, row.value));
    const bool isBase = row.step == 0; // the model before training
    if (scalar.metric != "eval_loss" || isBase || !std::isfinite(row.value))
        return {};
    return db.execute("UPDATE run SET best_eval=?2, best_eval_step=?3"
                      " WHERE id=?1 AND (best_eval IS NULL OR best_eval>?2)",
        runId, row.value, row.step);
}

// Equal messages at one millisecond are one event: importing twice adds nothing.
Status appendEvent(Database& db, std::int64_t runId, const EventRow& event)
{
    return db.execute(
        "INSERT INTO event(run_id,step,t_ms,level,code,text,data_json)"
        " SELECT ?1,?2,?3,?4,?5,?6,nullif(?7,'')"
        " WHERE NOT EXISTS(SELECT 1 FROM event WHERE run_id=?1 AND t_ms=?3 AND step=?2"
        " AND code=?5 AND text=?6)",
        runId, event.step, event.timeMs, static_cast<int>(event.level), event.code, event.text,
        event.data);
}

} // namespace

Status appendBatch(Database& database, std::int64_t runId, const StoreBatch& batch)
{
    Summary sum;
    for (const StepRow& step : batch.steps) {
        MR_ASSIGN(bool isNew, insertStep(database, runId, step));
        if (isNew)
            count(sum, step);
    }
    if (sum.count > 0) {
        MR_TRY(addSummary(database, runId, sum));
        MR_TRY(updateSpark(database, runId));
    }
    for (const IntervalRow& interval : batch.intervals)
        MR_TRY(insertInterval(database, runId, interval));
    if (!batch.intervals.empty()) // active time goes on behind the last step
        MR_TRY(
            database.execute("UPDATE run SET active_us=max(coalesce(active_us,0),?2) WHERE id=?1",
                runId, batch.intervals.back().endUs));
    for (const NamedScalar& scalar : batch.scalars)
        MR_TRY(appendScalar(database, runId, scalar));
    for (const EventRow& event : batch.events)
        MR_TRY(appendEvent(database, runId, event));
    for (const AnswerRow& answer : batch.answers)
        MR_TRY(writeAnswer(database, runId, answer));
    return appendSamples(database, runId, batch.samples);
}

Result<std::vector<StepRow>> readSteps(
    Database& database, std::int64_t runId, std::int64_t afterStep, std::int64_t limit)
{
    std::vector<StepRow> rows;
    const std::int64_t after = std::clamp<std::int64_t>(afterStep, -1, stepOfId(-1));
    MR_TRY(database.query(
        kSelectSteps, [&](const Row& row) { rows.push_back(stepFrom(row)); },
        stepId(runId, 0) + after, stepId(runId, stepOfId(-1)), limit));
    return rows;
}

Result<std::vector<IntervalRow>> readIntervals(
    Database& database, std::int64_t runId, std::int64_t afterUs)
{
    std::vector<IntervalRow> rows;
    // A history of an earlier program has none until somebody writes to it.
    MR_ASSIGN(
        auto known, database.integer("SELECT count(*) FROM sqlite_schema WHERE name='interval'"));
    if (known == 0)
        return rows;
    MR_TRY(database.query(
        "SELECT end_us,kind,begin_us,step,compute_us,stall_h2d_us,stall_d2h_us,"
        "stall_host_update_us,stall_disk_us,stall_data_us,stall_other_us,h2d_bytes,d2h_bytes,"
        "disk_read_bytes,disk_write_bytes FROM interval WHERE run_id=? AND end_us>? ORDER BY "
        "end_us,begin_us",
        [&](const Row& row) { rows.push_back(intervalFrom(row)); }, runId, afterUs));
    return rows;
}

Status removeAfter(Database& database, std::int64_t runId, std::int64_t step)
{
    const std::int64_t last = stepId(runId, stepOfId(-1));
    MR_TRY(
        database.execute("DELETE FROM step WHERE id>? AND id<=?", stepId(runId, 0) + step, last));
    MR_TRY(database.execute("DELETE FROM scalar WHERE run_id=? AND step>?", runId, step));
    MR_TRY(database.execute("DELETE FROM trace WHERE run_id=? AND step>?", runId, step));
    MR_TRY(database.execute("DELETE FROM sample WHERE run_id=? AND step>?", runId, step));
    MR_TRY(database.execute("DELETE FROM interval WHERE run_id=? AND step>?", runId, step));
    const std::int64_t first = stepId(runId, 0);
    MR_TRY(database.execute(
        "UPDATE run SET (last_step,tokens,compute_us,stall_us,active_us,device_peak_bytes,"
        "host_peak_bytes)=(SELECT max(id)&1099511627775,sum(tokens),sum(compute_us),"
        "sum(dt_us)-sum(compute_us),max(max(t_ms)*1000,sum(dt_us)),max(device_peak_bytes),"
        "max(host_peak_bytes) FROM step WHERE id>=?2 AND id<=?3),"
        " last_loss=(SELECT loss FROM step WHERE id>=?2 AND id<=?3 ORDER BY id DESC LIMIT 1),"
        " best_eval=NULL, best_eval_step=NULL WHERE id=?1",
        runId, first, last));
    MR_ASSIGN(std::int64_t lastMs,
        database.integer(
            "SELECT coalesce(max(t_ms),-1) FROM step WHERE id>=? AND id<=?", first, last));
    MR_TRY(removeSamplesAfter(database, runId, lastMs));
    MR_TRY(database.execute(
        "UPDATE run SET (best_eval,best_eval_step)=(SELECT value,step FROM scalar JOIN metric"
        " ON metric.id=metric_id WHERE run_id=?1 AND name='eval_loss' AND step>0 AND value IS NOT "
        "NULL"
        " ORDER BY value,step LIMIT 1) WHERE id=?1",
        runId));
    return updateSpark(database, runId);
}

Status updateSpark(Database& database, std::int64_t runId)
{
    constexpr std::int64_t kPoints = 64;
    MR_ASSIGN(std::int64_t last, database.integer("SELECT last_step FROM run WHERE id=?", runId));
    std::array<float, kPoints> losses{};
    std::size_t count = 0;
    const std::int64_t points = std::min(kPoints, last);
    for (std::int64_t i = 0; i < points; ++i) {
        const std::int64_t step = points == 1 ? 1 : 1 + i * (last - 1) / (points - 1);
        const auto take = [&](const Row& row) {
            if (!row.isNull(0))
                losses.at(count++) = static_cast<float>(row.real(0));
        };
        MR_TRY(database.query("SELECT loss FROM step WHERE id=?", take, stepId(runId, step)));
    }
    const Blob blob = std::as_bytes(std::span(losses).first(count));
    return database.execute("UPDATE run SET spark=? WHERE id=?", blob, runId);
}

Result<bool> removeSeriesBatch(Database& database, std::int64_t runId)
{
    MR_TRY(database.execute("DELETE FROM step WHERE id IN"
                            " (SELECT id FROM step WHERE id>=? AND id<=? LIMIT 5000)",
        stepId(runId, 0), stepId(runId, stepOfId(-1))));
    std::int64_t removed = database.changes();
    // These have no rowid: their keys are listed.
    MR_TRY(database.execute("DELETE FROM scalar WHERE (run_id,metric_id,step) IN"
                            " (SELECT run_id,metric_id,step FROM scalar WHERE run_id=? LIMIT 5000)",
        runId));
    removed += database.changes();
    MR_TRY(database.execute(
        "DELETE FROM chunk WHERE (run_id,metric_id,lod,t0_ms) IN"
        " (SELECT run_id,metric_id,lod,t0_ms FROM chunk WHERE run_id=? LIMIT 5000)",
        runId));
    removed += database.changes();
    MR_TRY(database.execute("DELETE FROM interval WHERE (run_id,end_us,kind) IN"
                            " (SELECT run_id,end_us,kind FROM interval WHERE run_id=? LIMIT 5000)",
        runId));
    removed += database.changes();
    MR_TRY(database.execute(
        "DELETE FROM event WHERE id IN (SELECT id FROM event WHERE run_id=? LIMIT 5000)", runId));
    removed += database.changes();
    return removed > 0;
}

} // namespace mr
