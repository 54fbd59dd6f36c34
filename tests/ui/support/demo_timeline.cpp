#include "ui/support/demo_timeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

namespace mr::ui::test {

namespace {

constexpr int kBlocks = 22;
constexpr int kGroups = kBlocks + 2; // embedding and head
constexpr int kMicros = 2;
constexpr std::int64_t kUs = 1000;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

StallCause causeOf(TimelineLane lane)
{
    constexpr std::array<StallCause, kTimelineLanes> kCauses = {StallCause::Other, StallCause::H2d,
        StallCause::D2h, StallCause::HostUpdate, StallCause::Disk, StallCause::Disk,
        StallCause::Other};
    return kCauses.at(static_cast<std::size_t>(lane));
}

// Makes up a step: each task begins when its lane and its source are ready.
class Maker
{
public:
    struct Work {
        const char* task;
        TimelineLane lane;
        std::int32_t group;
        std::int32_t micro;
        std::int64_t us;
        std::int64_t bytes = 0;
    };

    // After `source` (an index that add() gave; -1: nothing). Compute that has to wait for it does
    // so in a span of its own.
    std::int32_t add(const Work& work, std::int32_t source = -1)
    {
        const std::int64_t ready = source < 0 ? 0 : spanAt(source).endNs;
        std::int64_t& busy = m_busyUntil.at(static_cast<std::size_t>(work.lane));
        if (work.lane == TimelineLane::Compute && ready > busy)
            addWait(busy, ready, source);
        TimelineSpan span;
        span.lane = work.lane;
        span.task = work.task;
        span.group = work.group;
        span.micro = work.micro;
        span.bytes = work.bytes;
        span.beginNs = std::max(busy, ready);
        span.endNs = span.beginNs + jittered(work.us) * kUs;
        busy = span.endNs;
        const auto index = static_cast<std::int32_t>(m_spans.size());
        std::int32_t& last = m_last[{work.lane, m_thread}];
        // Whichever ended last let it begin.
        const bool lane = last > 0 && (source < 0 || spanAt(last - 1).endNs > ready);
        m_after[index] = lane ? last - 1 : source;
        last = index + 1;
        m_spans.push_back(span);
        return static_cast<std::int32_t>(m_spans.size()) - 1;
    }

    // The updates run on two threads; the earlier one takes the work.
    std::int32_t addOnHost(const Work& work, std::int32_t source)
    {
        auto thread = std::min_element(m_threads.begin(), m_threads.end());
        m_busyUntil.at(static_cast<std::size_t>(TimelineLane::Host)) = *thread;
        m_thread = static_cast<int>(thread - m_threads.begin());
        const std::int32_t made = add(work, source);
        m_thread = 0;
        *thread = spanAt(made).endNs;
        return made;
    }

    void addBatchWait(std::int64_t us)
    {
        TimelineSpan wait;
        wait.kind = TimelineKind::Wait;
        wait.lane = TimelineLane::Engine;
        wait.cause = StallCause::Data;
        wait.endNs = us * kUs;
        m_spans.push_back(wait);
        m_busyUntil.fill(wait.endNs);
        m_threads.fill(wait.endNs);
    }

    // By begin, with the sources following their spans.
    StepTimeline take(std::int64_t step)
    {
        StepTimeline timeline;
        timeline.step = step;
        timeline.why = step == 400 ? "slowest so far" : "every 50th step";
        std::vector<std::size_t> order(m_spans.size());
        for (std::size_t i = 0; i < order.size(); ++i)
            order[i] = i;
        std::stable_sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return m_spans[a].beginNs < m_spans[b].beginNs; });
        std::vector<std::int32_t> place(order.size());
        for (std::size_t i = 0; i < order.size(); ++i)
            place[order[i]] = static_cast<std::int32_t>(i);
        for (const std::size_t i : order) {
            TimelineSpan span = m_spans[i];
            span.source = span.source < 0 ? -1 : place[static_cast<std::size_t>(span.source)];
            timeline.endNs = std::max(timeline.endNs, span.endNs);
            timeline.spans.push_back(std::move(span));
        }
        return timeline;
    }

private:
    const TimelineSpan& spanAt(std::int32_t index) const
    {
        return m_spans[static_cast<std::size_t>(index)];
    }

    // As the stall ledger: the source gets the part of the gap in which it ran. The part before
    // belongs to the span that the source came after.
    void addWait(std::int64_t from, std::int64_t until, std::int32_t source)
    {
        while (source >= 0 && until > from) {
            TimelineSpan wait = spanAt(source);
            wait.kind = TimelineKind::Wait;
            wait.cause = causeOf(wait.lane);
            wait.bytes = 0;
            wait.source = source;
            wait.beginNs = std::max(from, wait.beginNs);
            wait.endNs = until;
            until = wait.beginNs;
            m_spans.push_back(wait);
            source = m_after[source];
        }
    }

    // A tenth up or down, so that bars differ as measured ones do.
    std::int64_t jittered(std::int64_t us)
    {
        m_state = m_state * 6364136223846793005U + 1442695040888963407U;
        const auto tenths = static_cast<std::int64_t>((m_state >> 33) % 200);
        return std::max<std::int64_t>(1, us * (900 + tenths) / 1000);
    }

    std::vector<TimelineSpan> m_spans;
    std::array<std::int64_t, kTimelineLanes> m_busyUntil{};
    std::array<std::int64_t, 2> m_threads{};
    int m_thread = 0;
    std::map<std::int32_t, std::int32_t> m_after;                // the span that let one begin
    std::map<std::pair<TimelineLane, int>, std::int32_t> m_last; // by a lane's thread, plus one
    std::uint64_t m_state = 7;
};

bool isBlock(std::int32_t group)
{
    return group > 0 && group < kGroups - 1;
}

std::int64_t forwardUs(std::int32_t group)
{
    return isBlock(group) ? 2900 : group == 0 ? 260 : 5200;
}

using Lane = TimelineLane;

std::int32_t addForward(Maker& maker, std::int32_t group, std::int32_t micro, std::int32_t after)
{
    return maker.add({"Forward", Lane::Compute, group, micro, forwardUs(group)}, after);
}

std::int32_t addBackward(Maker& maker, std::int32_t group, std::int32_t micro, std::int32_t after)
{
    return maker.add({"Backward", Lane::Compute, group, micro, 2 * forwardUs(group)}, after);
}

void makeResident(Maker& maker)
{
    for (std::int32_t micro = 0; micro < kMicros; ++micro) {
        const std::int32_t batch =
            maker.add({"FetchBatch", Lane::CopyIn, -1, micro, 90, 64 * 1024});
        for (std::int32_t group = 0; group < kGroups - 1; ++group)
            addForward(maker, group, micro, group == 0 ? batch : -1);
        for (std::int32_t group = kGroups - 1; group >= 0; --group) {
            addBackward(maker, group, micro, -1);
            if (micro == kMicros - 1) {
                maker.add({"FinishGradient", Lane::Compute, group, -1, 120});
                maker.add({"NormPart", Lane::Compute, group, -1, 60});
            }
        }
    }
    maker.add({"JoinNorm", Lane::Compute, -1, -1, 30});
    std::int32_t last = -1;
    for (std::int32_t group = 0; group < kGroups; ++group)
        last = maker.add({"UpdateOnDevice", Lane::Compute, group, -1, 640});
    maker.add({"SendScalars", Lane::CopyOut, -1, -1, 40, 4096}, last);
}

void makeZeroOffload(Maker& maker)
{
    maker.addBatchWait(700);
    std::array<std::int32_t, kGroups> sent{};
    for (std::int32_t micro = 0; micro < kMicros; ++micro) {
        const std::int32_t batch =
            maker.add({"FetchBatch", Lane::CopyIn, -1, micro, 90, 64 * 1024});
        for (std::int32_t group = 0; group < kGroups - 1; ++group)
            addForward(maker, group, micro, group == 0 ? batch : -1);
        for (std::int32_t group = kGroups - 1; group >= 0; --group) {
            addBackward(maker, group, micro, -1);
            if (micro < kMicros - 1)
                continue;
            const std::int32_t done = maker.add({"FinishGradient", Lane::Compute, group, -1, 120});
            sent[static_cast<std::size_t>(group)] =
                maker.add({"SendGradient", Lane::CopyOut, group, -1, 3800, 92 << 20}, done);
        }
    }
    const std::int32_t norm = maker.add({"JoinNorm", Lane::Host, -1, -1, 150}, sent[0]);
    std::int32_t fetched = -1;
    for (std::int32_t group = 0; group < kGroups; ++group) {
        const std::int32_t updated =
            maker.addOnHost({"UpdateOnHost", Lane::Host, group, -1, 9400}, norm);
        fetched = maker.add({"FetchWeights", Lane::CopyIn, group, -1, 3900, 92 << 20}, updated);
    }
    maker.add({"SendScalars", Lane::CopyOut, -1, -1, 40, 4096}, fetched);
    maker.add({"ScatterComplement", Lane::Compute, kGroups - 1, -1, 200}, fetched);
}

void makeStreamed(Maker& maker)
{
    std::int32_t written = -1;
    for (std::int32_t group = 0; group < kGroups - 1; ++group) {
        const std::int32_t read =
            maker.add({"ReadFromDisk", Lane::DiskIn, group, -1, 6900, 92 << 20});
        const std::int32_t here =
            maker.add({"FetchWeights", Lane::CopyIn, group, -1, 3900, 92 << 20}, read);
        for (std::int32_t micro = 0; micro < kMicros; ++micro) {
            const std::int32_t done = addForward(maker, group, micro, micro == 0 ? here : -1);
            maker.add({"SaveBoundary", Lane::CopyOut, group, micro, 800, 16 << 20}, done);
        }
    }
    for (std::int32_t group = kGroups - 1; group >= 0; --group) {
        const std::int32_t here =
            maker.add({"FetchWeights", Lane::CopyIn, group, -1, 3900, 92 << 20});
        const std::int32_t boundary =
            maker.add({"LoadBoundary", Lane::CopyIn, group, 1, 800, 16 << 20}, here);
        std::int32_t done = -1;
        for (std::int32_t micro = 0; micro < kMicros; ++micro)
            done = addBackward(maker, group, micro, micro == 0 ? boundary : -1);
        const std::int32_t sent =
            maker.add({"SendGradient", Lane::CopyOut, group, -1, 3800, 92 << 20}, done);
        const std::int32_t updated =
            maker.addOnHost({"UpdateOnHost", Lane::Host, group, -1, 9400}, sent);
        written = maker.add({"WriteToDisk", Lane::DiskOut, group, -1, 8200, 92 << 20}, updated);
    }
    maker.add({"JoinNorm", Lane::Compute, -1, -1, 60}, written);
}

// Part of `whole` in a group: blocks alike, the embedding as much as two blocks; the head takes the
// rest.
std::uint64_t shareOf(std::uint64_t whole, int group)
{
    const std::uint64_t block = whole / (kBlocks + 4);
    if (group == kGroups - 1)
        return whole - block * (kBlocks + 2);
    return isBlock(group) ? block : 2 * block;
}

} // namespace

StepTimeline demoTimeline(DemoPolicy policy, std::int64_t step)
{
    Maker maker;
    switch (policy) {
    case DemoPolicy::Resident:
        makeResident(maker);
        break;
    case DemoPolicy::ZeroOffload:
        makeZeroOffload(maker);
        break;
    case DemoPolicy::Streamed:
        makeStreamed(maker);
        break;
    }
    return maker.take(step);
}

StepTimeline largeTimeline(std::int64_t count)
{
    Maker maker;
    for (std::int64_t i = 0; i < count; ++i) {
        const auto group = static_cast<std::int32_t>(i % kGroups);
        const std::int32_t here =
            maker.add({"FetchWeights", Lane::CopyIn, group, -1, 9 + i % 5, 1 << 20});
        const std::int32_t done = maker.add({"Forward", Lane::Compute, group, 0, 8 + i % 7}, here);
        maker.add({"SendGradient", Lane::CopyOut, group, -1, 7 + i % 3, 1 << 20}, done);
    }
    return maker.take(50);
}

std::vector<PlanGroup> demoGroups(DemoPolicy policy)
{
    std::vector<PlanGroup> groups;
    for (int group = 0; group < kGroups; ++group) {
        PlanGroup made;
        made.name = group == 0             ? "embedding"
                    : group == kGroups - 1 ? "head"
                                           : "block " + std::to_string(group - 1);
        const auto add = [&](const char* tier, const char* kind, std::uint64_t mib) {
            made.bytes.push_back({tier, kind, shareOf(mib * kMiB, group)});
        };
        const bool streamed = policy == DemoPolicy::Streamed && isBlock(group);
        if (!streamed)
            add("device", "weights", 2200);
        add("host", "high plane", streamed ? 1600 : 2200);
        if (streamed)
            add("device", "high plane", 600);
        add("host", "low plane", 2200);
        for (const char* kind : {"first moments", "second moments"}) {
            add("host", kind, streamed ? 2000 : 5500);
            if (!streamed)
                continue;
            add("device", kind, 600);
            add("disk", kind, 2900);
        }
        add("host", "gradients", 4400);
        groups.push_back(std::move(made));
    }
    groups.push_back(
        {"shared", {{"device", "gradients", 540 * kMiB}, {"device", "activations", 1710 * kMiB},
                       {"device", "workspace", 380 * kMiB}, {"device", "staging", 514 * kMiB},
                       {"host", "staging", 2070 * kMiB}}});
    return groups;
}

} // namespace mr::ui::test
