#include "core/telemetry/history_backlog.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace mr {

namespace {

constexpr std::size_t kMaxUnsaved = 100'000;
constexpr std::int64_t kSampleShare = 30;
constexpr std::int64_t kMostSampleWaitMs = 10'000;

} // namespace

void HistoryBacklog::keep(StoreBatch batch, bool isAsked)
{
    holdSamples(batch, isAsked);
    const auto append = [](auto& to, auto& from) {
        to.insert(
            to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    };
    if (m_unsaved.steps.size() < kMaxUnsaved) {
        append(m_unsaved.steps, batch.steps);
        append(m_unsaved.scalars, batch.scalars);
        append(m_unsaved.events, batch.events);
        append(m_unsaved.answers, batch.answers);
        append(m_unsaved.intervals, batch.intervals);
    }
    if (m_unsaved.samples.size() < kMaxUnsaved)
        append(m_unsaved.samples, batch.samples);
}

// Takes the samples out of `batch`, or puts those in that have waited long enough.
void HistoryBacklog::holdSamples(StoreBatch& batch, bool isAsked)
{
    m_held.insert(m_held.end(), batch.samples.begin(), batch.samples.end());
    batch.samples.clear();
    if (m_held.empty())
        return;
    const std::int64_t last = m_held.back().timeMs;
    const std::int64_t waited = last - m_held.front().timeMs + kMachinePeriodMs;
    if (isAsked || waited >= std::min(last / kSampleShare, kMostSampleWaitMs))
        batch.samples.swap(m_held);
}

Status HistoryBacklog::offer(bool durably, bool& isCommitted)
{
    isCommitted = false;
    if (m_unsaved.empty() && m_changes.empty() && !durably)
        return presence();
    if (!m_unsaved.empty())
        MR_TRY(m_store.append(m_runId, m_unsaved));
    isCommitted = !m_unsaved.empty();
    m_unsaved = {};
    while (!m_changes.empty()) {
        MR_TRY(m_changes.front()());
        m_changes.pop_front();
        isCommitted = true;
    }
    if (durably)
        MR_TRY(m_store.sync());
    return presence();
}

Status HistoryBacklog::presence() const
{
    if (!m_store.isGone())
        return {};
    return Status::error(ErrorKind::Io,
        fmt::format("history {} was deleted or replaced while the run goes on; it is made again "
                    "from the run folder when the run ends",
            m_store.path()));
}

} // namespace mr
