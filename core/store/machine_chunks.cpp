#include "core/store/machine_chunks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace mr {
namespace {

constexpr std::int64_t kEntries = 256; // in a row, on every level
constexpr int kLevels = 3;
constexpr std::array<std::int64_t, kLevels> kSlotsPerEntry = {1, 16, 256};
// A file may claim any time; later arithmetic must stay within 64 bits.
constexpr std::int64_t kMostMs = std::int64_t{1} << 53;
constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();

constexpr std::int64_t entryMs(int level)
{
    return kSlotsPerEntry[static_cast<std::size_t>(level)] * kMachinePeriodMs;
}

constexpr std::int64_t rowMs(int level)
{
    return kEntries * entryMs(level);
}

struct Series {
    std::int64_t runId = 0;
    std::int64_t metricId = 0;
};

// Content of a row of `chunk`.
class Chunk
{
public:
    explicit Chunk(int level)
        : m_width(level == 0 ? 1 : 3)
    {
    }

    std::int64_t count() const { return std::ssize(m_values) / m_width; }
    Blob bytes() const { return std::as_bytes(std::span(m_values)); }

    void assign(Blob bytes)
    {
        m_values.resize(bytes.size() / sizeof(float));
        if (m_values.empty())
            return;
        std::memcpy(m_values.data(), bytes.data(), m_values.size() * sizeof(float));
    }

    CounterEntry entry(std::int64_t index) const
    {
        const auto at = static_cast<std::size_t>(index * m_width);
        if (m_width == 1)
            return {0, m_values[at], m_values[at], m_values[at]};
        return {0, m_values[at], m_values[at + 1], m_values[at + 2]};
    }

    void set(std::int64_t index, const CounterEntry& entry)
    {
        const auto at = static_cast<std::size_t>(index * m_width);
        if (m_values.size() < at + static_cast<std::size_t>(m_width))
            m_values.resize(at + static_cast<std::size_t>(m_width), kNothing);
        m_values[at] = m_width == 1 ? entry.mean : entry.min;
        if (m_width == 1)
            return;
        m_values[at + 1] = entry.max;
        m_values[at + 2] = entry.mean;
    }

    void cut(std::int64_t count)
    {
        if (count < this->count())
            m_values.resize(static_cast<std::size_t>(count * m_width));
    }

    // Summary of [first, last), which may reach beyond the end; NaN where nothing was measured.
    CounterEntry summary(std::int64_t first, std::int64_t last) const
    {
        CounterEntry sum{0, kNothing, kNothing, kNothing};
        double total = 0.0;
        std::int64_t measured = 0;
        for (std::int64_t i = first; i < std::min(last, count()); ++i) {
            const CounterEntry e = entry(i);
            if (std::isnan(e.mean))
                continue;
            sum.min = measured == 0 ? e.min : std::min(sum.min, e.min);
            sum.max = measured == 0 ? e.max : std::max(sum.max, e.max);
            total += static_cast<double>(e.mean);
            ++measured;
        }
        if (measured > 0)
            sum.mean = static_cast<float>(total / static_cast<double>(measured));
        return sum;
    }

    double total() const
    {
        double total = 0.0;
        for (std::int64_t i = 0; i < count(); ++i) {
            const float mean = entry(i).mean;
            total += std::isnan(mean) ? 0.0 : static_cast<double>(mean);
        }
        return total;
    }

private:
    std::int64_t m_width; // floats an entry
    std::vector<float> m_values;
};

Result<Chunk> load(Database& db, const Series& series, int level, std::int64_t index)
{
    Chunk chunk(level);
    MR_TRY(db.query(
        "SELECT data FROM chunk WHERE run_id=? AND metric_id=? AND lod=? AND t0_ms=?",
        [&](const Row& row) { chunk.assign(row.blob(0)); }, series.runId, series.metricId, level,
        index * rowMs(level)));
    return chunk;
}

Status save(Database& db, const Series& series, int level, std::int64_t index, const Chunk& chunk)
{
    if (chunk.count() == 0)
        return db.execute("DELETE FROM chunk WHERE run_id=? AND metric_id=? AND lod=? AND t0_ms=?",
            series.runId, series.metricId, level, index * rowMs(level));
    const CounterEntry all = chunk.summary(0, kEntries);
    return db.execute(
        "INSERT OR REPLACE INTO chunk(run_id,metric_id,lod,t0_ms,period_us,n,vmin,vmax,vsum,data)"
        " VALUES(?,?,?,?,?,?,?,?,?,?)",
        series.runId, series.metricId, level, index * rowMs(level), entryMs(level) * 1000,
        chunk.count(), all.min, all.max, chunk.total(), chunk.bytes());
}

// Brings the entries of the coarser levels up to date with row `index` of level 0.
Status refreshLevels(Database& db, const Series& series, std::int64_t index, const Chunk& fine)
{
    for (int level = 1; level < kLevels; ++level) {
        const std::int64_t slots = kSlotsPerEntry[static_cast<std::size_t>(level)];
        const std::int64_t first = index * kEntries / slots; // entry, counted from the run's start
        const std::int64_t row = first / kEntries;
        MR_ASSIGN(Chunk chunk, load(db, series, level, row));
        for (std::int64_t slot = 0; slot < fine.count(); slot += slots)
            chunk.set(first % kEntries + slot / slots, fine.summary(slot, slot + slots));
        MR_TRY(save(db, series, level, row, chunk));
    }
    return {};
}

using SlotValues = std::map<std::int64_t, float>; // by slot: the second since the run began

Status appendSeries(Database& db, const Series& series, const SlotValues& values)
{
    for (auto at = values.begin(); at != values.end();) {
        const std::int64_t index = at->first / kEntries;
        MR_ASSIGN(Chunk chunk, load(db, series, 0, index));
        for (; at != values.end() && at->first / kEntries == index; ++at)
            chunk.set(at->first % kEntries, {0, at->second, at->second, at->second});
        MR_TRY(save(db, series, 0, index, chunk));
        MR_TRY(refreshLevels(db, series, index, chunk));
    }
    return {};
}

Result<std::int64_t> metricId(Database& db, const MachineMetricInfo& info)
{
    MR_TRY(db.execute("INSERT INTO metric(name,unit,kind) VALUES(?,?,'counter')"
                      " ON CONFLICT(name) DO UPDATE SET unit=excluded.unit",
        info.name, info.unit));
    return db.integer("SELECT id FROM metric WHERE name=?", info.name);
}

Status refreshEnergy(Database& db, std::int64_t runId)
{
    return db.execute("UPDATE run SET energy_j=(SELECT sum(vsum*period_us)/1e6 FROM chunk"
                      " WHERE run_id=?1 AND lod=0 AND metric_id="
                      "(SELECT id FROM metric WHERE name=?2)) WHERE id=?1",
        runId, infoOf(MachineMetric::DevicePower).name);
}

// The last row of each level that stays may reach beyond `slots`, the number that stay.
Status cutSeries(Database& db, const Series& series, std::int64_t slots)
{
    const std::int64_t index = slots / kEntries; // row that is cut, or just begins
    MR_ASSIGN(Chunk chunk, load(db, series, 0, index));
    chunk.cut(slots % kEntries);
    for (int level = 1; level < kLevels; ++level) {
        const std::int64_t entry =
            index * kEntries / kSlotsPerEntry[static_cast<std::size_t>(level)];
        MR_ASSIGN(Chunk coarse, load(db, series, level, entry / kEntries));
        coarse.cut(entry % kEntries);
        MR_TRY(save(db, series, level, entry / kEntries, coarse));
    }
    MR_TRY(save(db, series, 0, index, chunk));
    return refreshLevels(db, series, index, chunk);
}

// The coarsest level that still has an entry for each of the columns; else the finest.
int levelFor(const CounterWindow& window)
{
    for (int level = kLevels - 1; level > 0; --level) {
        if ((window.toMs - window.fromMs) / entryMs(level) >= window.columns)
            return level;
    }
    return 0;
}

} // namespace

Status appendSamples(Database& database, std::int64_t runId, std::span<const MachineSample> samples)
{
    if (samples.empty())
        return {};
    for (std::size_t metric = 0; metric < kMachineMetrics; ++metric) {
        SlotValues values;
        for (const MachineSample& sample : samples) {
            if (sample.timeMs >= 0 && sample.values[metric])
                values[sample.timeMs / kMachinePeriodMs] =
                    static_cast<float>(*sample.values[metric]);
        }
        if (values.empty())
            continue;
        MR_ASSIGN(std::int64_t id, metricId(database, kMachineMetricInfos[metric]));
        MR_TRY(appendSeries(database, {runId, id}, values));
    }
    return refreshEnergy(database, runId);
}

Status removeSamplesAfter(Database& database, std::int64_t runId, std::int64_t timeMs)
{
    MR_TRY(database.execute("DELETE FROM chunk WHERE run_id=? AND t0_ms>?", runId, timeMs));
    std::vector<std::int64_t> metrics;
    MR_TRY(database.query(
        "SELECT DISTINCT metric_id FROM chunk WHERE run_id=?",
        [&](const Row& row) { metrics.push_back(row.integer(0)); }, runId));
    for (const std::int64_t metric : metrics)
        MR_TRY(cutSeries(database, {runId, metric}, timeMs / kMachinePeriodMs + 1));
    return refreshEnergy(database, runId);
}

Result<std::vector<CounterInfo>> readCounters(Database& database, std::int64_t runId)
{
    std::vector<CounterInfo> counters;
    // By the last row of each: never the series itself.
    MR_TRY(database.query(
        "SELECT name,unit,(SELECT t0_ms+n*period_us/1000 FROM chunk WHERE run_id=?1 AND"
        " metric_id=metric.id AND lod=0 ORDER BY t0_ms DESC LIMIT 1) AS end_ms FROM metric"
        " WHERE kind='counter' AND end_ms IS NOT NULL ORDER BY id",
        [&](const Row& row) {
            const std::int64_t endMs = std::clamp<std::int64_t>(row.integer(2), 0, kMostMs);
            counters.push_back({row.text(0), row.text(1), endMs});
        },
        runId));
    return counters;
}

Result<CounterSeries> readCounter(
    Database& database, std::int64_t runId, std::string_view metric, const CounterWindow& window)
{
    const int level = levelFor(window);
    CounterSeries series;
    series.periodMs = entryMs(level);
    const auto take = [&](const Row& row) {
        Chunk chunk(level);
        chunk.assign(row.blob(1));
        for (std::int64_t i = 0; i < chunk.count(); ++i) {
            CounterEntry entry = chunk.entry(i);
            entry.timeMs = row.integer(0) + i * series.periodMs;
            if (entry.timeMs + series.periodMs > window.fromMs && entry.timeMs < window.toMs)
                series.entries.push_back(entry);
        }
    };
    MR_TRY(database.query(
        "SELECT t0_ms,data FROM chunk WHERE run_id=? AND lod=? AND t0_ms>?"
        " AND t0_ms<? AND t0_ms BETWEEN 0 AND ? AND metric_id=(SELECT id FROM metric WHERE name=?)"
        " ORDER BY t0_ms",
        take, runId, level, window.fromMs - rowMs(level), window.toMs, kMostMs, metric));
    return series;
}

} // namespace mr
