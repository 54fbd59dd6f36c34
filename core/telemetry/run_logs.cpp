#include "core/telemetry/run_logs.h"

#include "core/telemetry/step_json.h"

#include <span>
#include <string>
#include <utility>

namespace mr {
namespace {

// A log that a crash cut in the middle of a line gets the end of that line first.
Result<File> openLog(const std::filesystem::path& path)
{
    Result<File> file = File::openAppend(path);
    MR_TRY(file.status());
    MR_ASSIGN(File reader, File::openRead(path));
    MR_ASSIGN(std::uint64_t bytes, reader.bytes());
    if (bytes == 0)
        return file;
    std::byte last{};
    MR_TRY(reader.readAt(bytes - 1, {&last, 1}));
    constexpr std::byte kNewLine{'\n'};
    if (last != kNewLine)
        MR_TRY(file.value().write({&kNewLine, 1}));
    return file;
}

Status write(File& file, const std::string& lines)
{
    return lines.empty() ? Status() : file.write(std::as_bytes(std::span(lines)));
}

} // namespace

Status RunLogs::open(const std::filesystem::path& runDir)
{
    for (const auto& [name, file] : {std::pair{"steps.jsonl", &m_steps},
             std::pair{"events.jsonl", &m_events}, std::pair{"samples.jsonl", &m_samples}}) {
        MR_ASSIGN(*file, openLog(runDir / name));
    }
    return {};
}

Status RunLogs::append(const StoreBatch& batch)
{
    if (m_failed)
        return {};
    std::string steps;
    for (const StepRow& row : batch.steps)
        steps += toJson(row) + "\n";
    for (const IntervalRow& row : batch.intervals)
        steps += toJson(row) + "\n";
    std::string events;
    for (const NamedScalar& scalar : batch.scalars)
        events += toJson(scalar.metric, scalar.row) + "\n";
    for (const EventRow& event : batch.events)
        events += toJson(event) + "\n";
    std::string samples;
    for (const MachineSample& sample : batch.samples)
        samples += toJson(sample) + "\n";
    Status written = write(m_steps, steps);
    if (written.ok())
        written = write(m_events, events);
    if (written.ok())
        written = write(m_samples, samples);
    m_failed = !written.ok();
    return written;
}

Status RunLogs::sync()
{
    if (m_failed)
        return {};
    Status synced = m_steps.sync();
    if (synced.ok())
        synced = m_events.sync();
    m_failed = !synced.ok();
    return synced;
}

} // namespace mr
