#include "core/telemetry/trace_export.h"

#include "core/plan/plan_text.h"
#include "core/plan/task_traits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace mr {
namespace {

// The lanes, then the rows without a lane. Rows keep the thread numbers they had in earlier
// programs, where one lane both read and wrote; so the one for writes came last.
constexpr std::array<std::string_view, 8> kRowNames = {
    "Compute", "CopyIn", "CopyOut", "Host", "DiskIn", "Waits", "Engine", "DiskOut"};
constexpr std::size_t kDiskInRow = 4;
constexpr std::size_t kWaitsRow = 5;
constexpr std::size_t kEngineRow = 6;
constexpr std::size_t kDiskOutRow = 7;
constexpr int kRowStride = 100; // thread numbers kept free for overlapping spans of a row

struct Slice {
    TraceEvent event;
    int thread = 0;
};

std::size_t rowOf(const TraceEvent& event)
{
    switch (event.kind) {
    case SpanKind::Task:
        if (isDiskWrite(event.task))
            return kDiskOutRow;
        return std::min(static_cast<std::size_t>(event.lane), kDiskInRow); // all that is read
    case SpanKind::Stall:
        return kWaitsRow;
    case SpanKind::BatchWait:
    case SpanKind::Checkpoint:
    case SpanKind::Evaluation:
        break;
    }
    return kEngineRow;
}

std::string nameOf(const TraceEvent& event)
{
    switch (event.kind) {
    case SpanKind::Task:
        break;
    case SpanKind::Stall:
        return event.lane == Lane::Compute ? "not explained"
                                           : fmt::format("waits for {}", name(event.task));
    case SpanKind::BatchWait:
        return "waits for data";
    case SpanKind::Checkpoint:
        return "checkpoint";
    case SpanKind::Evaluation:
        return "evaluation";
    }
    return std::string(name(event.task));
}

// Sorted by begin; each slice on the first thread of its row that is free by then.
std::vector<Slice> layOut(std::span<const TraceEvent> spans)
{
    std::vector<Slice> slices;
    slices.reserve(spans.size());
    for (const TraceEvent& event : spans) {
        if (event.endNs >= event.beginNs)
            slices.push_back({event, 0});
    }
    std::stable_sort(slices.begin(), slices.end(),
        [](const Slice& a, const Slice& b) { return a.event.beginNs < b.event.beginNs; });
    std::array<std::vector<std::int64_t>, kRowNames.size()> busyUntil;
    for (Slice& slice : slices) {
        const std::size_t row = rowOf(slice.event);
        auto& threads = busyUntil.at(row);
        auto free = std::find_if(threads.begin(), threads.end(),
            [&](std::int64_t until) { return until <= slice.event.beginNs; });
        // More overlaps than threads: the last one is shared, which only looks crowded.
        if (free == threads.end() && threads.size() < kRowStride)
            free = threads.insert(threads.end(), 0);
        else if (free == threads.end())
            --free;
        *free = std::max(*free, slice.event.endNs);
        slice.thread =
            static_cast<int>(row + 1) * kRowStride + static_cast<int>(free - threads.begin());
    }
    return slices;
}

class Writer
{
public:
    explicit Writer(std::int64_t originNs)
        : m_originNs(originNs)
    {
    }

    void threadName(int thread, std::string_view text)
    {
        // Top to bottom; writes are shown below reads.
        constexpr int kDiskOutThread = static_cast<int>(kDiskOutRow + 1) * kRowStride;
        constexpr int kBelowReads = static_cast<int>(kDiskInRow + 1) * kRowStride + kRowStride / 2;
        const int place =
            thread < kDiskOutThread ? thread : kBelowReads + (thread - kDiskOutThread) / 2;
        add(fmt::format(
            R"({{"ph":"M","name":"thread_name","pid":1,"tid":{},"args":{{"name":"{}"}}}})", thread,
            text));
        add(fmt::format(
            R"({{"ph":"M","name":"thread_sort_index","pid":1,"tid":{},"args":{{"sort_index":{}}}}})",
            thread, place));
    }

    void slice(const Slice& s)
    {
        const TraceEvent& e = s.event;
        // Where that ran which was waited for; a task's lane is its row.
        const std::string lane = e.kind == SpanKind::Stall && e.lane != Lane::Compute
                                     ? fmt::format(R"(,"lane":"{}")", name(e.lane))
                                     : std::string();
        add(fmt::format(R"({{"ph":"X","name":"{}","cat":"step","pid":1,"tid":{},"ts":{},"dur":{},)"
                        R"("args":{{"step":{},"group":{},"micro":{},"bytes":{}{}}}}})",
            nameOf(e), s.thread, microseconds(e.beginNs - m_originNs),
            microseconds(e.endNs - e.beginNs), e.step, e.group, e.micro, e.bytes, lane));
    }

    // An arrow between two slices; each end lies inside its slice.
    void arrow(const Slice& from, std::int64_t atNs, const Slice& to)
    {
        ++m_arrows;
        add(fmt::format(
            R"({{"ph":"s","name":"wait","cat":"wait","id":{},"pid":1,"tid":{},"ts":{}}})", m_arrows,
            from.thread, microseconds(atNs - m_originNs)));
        add(fmt::format(
            R"({{"ph":"f","bp":"e","name":"wait","cat":"wait","id":{},"pid":1,"tid":{},"ts":{}}})",
            m_arrows, to.thread, microseconds(to.event.beginNs - m_originNs)));
    }

    std::string finish() &&
    {
        return R"({"displayTimeUnit":"ns","traceEvents":[)" + m_text + "\n]}\n";
    }

private:
    static std::string microseconds(std::int64_t ns)
    {
        return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
    }

    void add(const std::string& event)
    {
        m_text += m_text.empty() ? "\n" : ",\n";
        m_text += event;
    }

    std::int64_t m_originNs;
    std::string m_text;
    int m_arrows = 0;
};

// From the task that ran at the end of the wait, to the first compute task after it.
void addArrows(Writer& out, const std::vector<Slice>& slices)
{
    for (const Slice& wait : slices) {
        const TraceEvent& w = wait.event;
        if (w.kind != SpanKind::Stall || w.lane == Lane::Compute)
            continue;
        const auto from = std::find_if(slices.begin(), slices.end(), [&](const Slice& s) {
            return s.event.kind == SpanKind::Task && s.event.lane == w.lane &&
                   s.event.task == w.task && s.event.group == w.group && s.event.micro == w.micro &&
                   s.event.beginNs < w.endNs && s.event.endNs >= w.endNs;
        });
        const auto to = std::find_if(slices.begin(), slices.end(), [&](const Slice& s) {
            return s.event.kind == SpanKind::Task && s.event.lane == Lane::Compute &&
                   s.event.beginNs >= w.endNs;
        });
        if (from != slices.end() && to != slices.end())
            out.arrow(*from, std::max(w.beginNs, from->event.beginNs), *to);
    }
}

} // namespace

std::string toChromeTrace(std::span<const TraceEvent> spans)
{
    const std::vector<Slice> slices = layOut(spans);
    Writer out(slices.empty() ? 0 : slices.front().event.beginNs);
    std::vector<int> named;
    for (const Slice& slice : slices) {
        if (std::find(named.begin(), named.end(), slice.thread) != named.end())
            continue;
        named.push_back(slice.thread);
        out.threadName(
            slice.thread, kRowNames.at(static_cast<std::size_t>(slice.thread / kRowStride - 1)));
    }
    for (const Slice& slice : slices)
        out.slice(slice);
    addArrows(out, slices);
    return std::move(out).finish();
}

} // namespace mr
