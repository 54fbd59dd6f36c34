#include "core/telemetry/trace_sampler.h"

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/telemetry/trace_export.h"

#include <fmt/format.h>

#include <utility>

namespace mr {
namespace {

constexpr int kPeriodicPerInterval = 5; // then the interval doubles
constexpr int kMaxPeriodic = 15;
constexpr int kMaxSlow = 5;
constexpr int kWarmUpSteps = 2;          // slow for reasons of their own
constexpr std::size_t kMaxSpans = 65536; // 3 MiB; a step that makes more shows its first ones

} // namespace

TraceSampler::TraceSampler(std::filesystem::path folder)
    : m_folder(std::move(folder))
{
}

void TraceSampler::add(const TraceEvent& span)
{
    const bool ran = span.beginNs != 0 || span.endNs != 0;
    if (ran && m_spans.size() < kMaxSpans)
        m_spans.push_back(span);
}

std::string TraceSampler::reasonToKeep(const StepRow& step)
{
    ++m_steps;
    if (m_periodic < kMaxPeriodic && step.step % m_interval == 0) {
        std::string why = fmt::format("every {}th step", m_interval);
        if (++m_periodic % kPeriodicPerInterval == 0)
            m_interval *= 2;
        return why;
    }
    if (m_steps <= kWarmUpSteps || step.wallUs <= m_slowestUs + m_slowestUs / 5)
        return {};
    const bool isFirst = m_slowestUs == 0; // nothing to compare it with
    m_slowestUs = step.wallUs;
    if (isFirst || m_slow >= kMaxSlow)
        return {};
    ++m_slow;
    return "slowest so far";
}

std::optional<TraceRow> TraceSampler::stepEnded(const StepRow& step)
{
    std::optional<TraceRow> row;
    const std::string why = reasonToKeep(step);
    if (!why.empty())
        row = write(step.step, why);
    std::erase_if(m_spans, [&](const TraceEvent& e) { return e.step <= step.step; });
    return row;
}

std::optional<TraceRow> TraceSampler::write(std::int64_t step, const std::string& why) const
{
    std::vector<TraceEvent> ofStep;
    for (const TraceEvent& span : m_spans) {
        if (span.step == step)
            ofStep.push_back(span);
    }
    if (ofStep.empty())
        return std::nullopt;
    const std::filesystem::path path = m_folder / fmt::format("trace-{}.json", step);
    const std::string text = toChromeTrace(ofStep);
    if (const Status written = replaceFile(path, text); !written.ok()) {
        log(LogLevel::Warning, "timeline not kept: " + written.message());
        return std::nullopt;
    }
    return TraceRow{step, path.string(), static_cast<std::int64_t>(text.size()), why};
}

} // namespace mr
