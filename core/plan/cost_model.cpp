#include "core/plan/cost_model.h"

#include "core/plan/columns.h"
#include "core/plan/disk_cuts.h"
#include "core/plan/task_traits.h"

#include <algorithm>
#include <optional>

namespace mr {

namespace {

// Does backward compute the whole block again? Not where the host keeps its activations.
bool makesAgain(const StepPlan& plan, const Task& task, const CostInput& input)
{
    return input.recompute == Recompute::Block && !plan.keepsActivations(task);
}

bool isBlock(const Task& task, const CostInput& input)
{
    return task.group.value > 0 && task.group.value < input.shape.layers() - 1;
}

double flopsOf(const StepPlan& plan, const Task& task, const CostInput& input)
{
    const GroupShape& group = input.shape.groups[static_cast<std::size_t>(task.group.value)];
    if (task.kind == TaskKind::Forward)
        return group.forwardFlops;
    // The head has no forward of its own in a step; the embedding has nothing to recompute.
    const bool isHead = task.group.value == input.shape.layers() - 1;
    const bool again = isHead || (isBlock(task, input) && makesAgain(plan, task, input));
    return group.backwardFlops + (again ? group.forwardFlops : 0.0);
}

const LayerSeconds& measuredBlock(const Task& task, const CostInput& input)
{
    const auto group = static_cast<std::size_t>(task.group.value);
    return input.rates.knownBlock(input.shape.groups[group].kind);
}

const LayerSeconds& measuredOf(const Task& task, const CostInput& input)
{
    if (task.group.value == 0)
        return input.rates.embedding;
    return task.group.value == input.shape.layers() - 1 ? input.rates.head
                                                        : measuredBlock(task, input);
}

// 0: not measured.
double measuredSeconds(const StepPlan& plan, const Task& task, const CostInput& input)
{
    const LayerSeconds& seconds = measuredOf(task, input);
    if (task.kind == TaskKind::Forward)
        return seconds.forward;
    return seconds.backward + (makesAgain(plan, task, input) ? seconds.recompute : 0.0);
}

// Seconds by which recompute=cheap makes the work longer.
double cheapSeconds(const Task& task, const CostInput& input)
{
    const bool isLonger = input.recompute == Recompute::Cheap && task.kind == TaskKind::Backward &&
                          isBlock(task, input);
    return isLonger ? measuredBlock(task, input).cheap : 0.0;
}

// Seconds for `amount` at `rate`; nothing if the rate is needed and not known.
std::optional<double> secondsOf(double amount, double rate)
{
    if (amount <= 0.0)
        return 0.0;
    if (rate <= 0.0)
        return std::nullopt;
    return amount / rate;
}

// The part of the head's work that a tile of its matrix is.
double shareOf(const StepPlan& plan, const Task& task, const ModelShape& shape)
{
    if (task.group.value + 1 != shape.layers() || plan.answers.back().tileRows == 0)
        return 1.0;
    return static_cast<double>(task.elementCount) /
           static_cast<double>(shape.groups.back().elements);
}

// Forward or backward.
std::optional<double> passSeconds(const StepPlan& plan, const Task& task, const CostInput& input)
{
    const double more = cheapSeconds(task, input);
    const double share = shareOf(plan, task, input.shape) * (plan.probes ? 2.0 : 1.0);
    if (const double seconds = measuredSeconds(plan, task, input); seconds > 0.0)
        return share * seconds + more;
    const std::optional<double> counted =
        secondsOf(share * flopsOf(plan, task, input), input.rates.deviceFlopsPerSecond);
    return counted ? std::optional(*counted + more) : std::nullopt;
}

// Elements of the group that the task works on.
double elementsOf(const StepPlan& plan, const Task& task, const CostInput& input)
{
    if (task.part == Part::All || task.group.value < 0)
        return static_cast<double>(task.elementCount);
    const auto group = static_cast<std::size_t>(task.group.value);
    const std::int64_t complement = complementCount(
        input.shape.groups[group], plan.answers[group], task.firstElement, task.elementCount);
    return static_cast<double>(
        task.part == Part::Complement ? complement : task.elementCount - complement);
}

// Adding a gradient to a sum reads 6 bytes and writes 4 where AdamW reads 14 and writes 12.
constexpr double kAdditionsPerUpdate = 2.6;
constexpr double kNormsPerUpdate = 13.0; // reads 2
// A light update reads a gradient of 4 bytes three times for its sums, and once with 10 at most of
// weights, where AdamW on the device moves 26.
constexpr double kPreparationsPerUpdate = 26.0 / 12.0;
constexpr double kLightPerUpdate = 26.0 / 12.0;

// The copy of frozen weights, or its time with that of their expansion, where they are packed.
std::optional<double> frozenSeconds(
    const StepPlan& plan, const Task& task, double bytes, const Feedback& rates)
{
    const auto copied = secondsOf(bytes, rates.hostToDeviceBytesPerSecond);
    const bool isPacked = plan.answers[static_cast<std::size_t>(task.group.value)].packed;
    if (!copied || !isPacked || rates.packedElementsPerSecond <= 0.0)
        return copied;
    return std::max(
        *copied, static_cast<double>(task.elementCount) / rates.packedElementsPerSecond);
}

std::optional<double> durationOf(const StepPlan& plan, const Task& task, const CostInput& input)
{
    const auto bytes = static_cast<double>(copyBytes(plan, task, input.shape, input.precision));
    switch (task.kind) {
    case TaskKind::Forward:
    case TaskKind::Backward:
        return passSeconds(plan, task, input);
    case TaskKind::PrepareUpdate:
        return secondsOf(elementsOf(plan, task, input),
            kPreparationsPerUpdate * input.rates.deviceAdamwElementsPerSecond);
    case TaskKind::UpdateOnDevice:
        return secondsOf(
            elementsOf(plan, task, input), (plan.isBehindBackward(task) ? kLightPerUpdate : 1.0) *
                                               input.rates.deviceAdamwElementsPerSecond);
    case TaskKind::AccumulateOnHost:
        return secondsOf(elementsOf(plan, task, input),
            kAdditionsPerUpdate * input.rates.hostAdamwElementsPerSecond);
    case TaskKind::NormPart: // on the device the gradient rate includes it
        return task.lane != Lane::Host
                   ? std::optional(0.0)
                   : secondsOf(elementsOf(plan, task, input),
                         kNormsPerUpdate * input.rates.hostAdamwElementsPerSecond);
    case TaskKind::AccumulateOnDevice:
    case TaskKind::PackComplement:
    case TaskKind::ScatterComplement:
    case TaskKind::FinishGradient:
        if (input.rates.deviceGradientElementsPerSecond <= 0.0)
            return 0.0;
        return static_cast<double>(task.elementCount) / input.rates.deviceGradientElementsPerSecond;
    case TaskKind::UpdateOnHost:
        return secondsOf(
            static_cast<double>(task.elementCount), input.rates.hostAdamwElementsPerSecond);
    case TaskKind::FetchFrozen:
        return frozenSeconds(plan, task, bytes, input.rates);
    default:
        break;
    }
    if (task.lane == Lane::CopyIn)
        return secondsOf(bytes, input.rates.hostToDeviceBytesPerSecond);
    if (task.lane == Lane::CopyOut)
        return secondsOf(bytes, input.rates.deviceToHostBytesPerSecond);
    return 0.0;
}

// Seconds of a task on a disk lane. A disk that reads and writes at once does each more slowly.
std::optional<double> diskSecondsOf(
    const StepPlan& plan, const Task& task, const CostInput& input, bool bothWays)
{
    const Feedback& rates = input.rates;
    const bool isOut = isDiskWrite(task.kind);
    const double both = isOut ? rates.diskWriteBytesPerSecond : rates.diskReadBytesPerSecond;
    const double alone =
        isOut ? rates.diskWriteAloneBytesPerSecond : rates.diskReadAloneBytesPerSecond;
    return secondsOf(static_cast<double>(diskBytes(plan, task, input.shape, input.precision)),
        bothWays || both <= 0.0 ? both : std::max(both, alone));
}

} // namespace

StallCause causeOf(Lane lane) noexcept
{
    switch (lane) {
    case Lane::CopyIn:
        return StallCause::H2d;
    case Lane::CopyOut:
        return StallCause::D2h;
    case Lane::Host:
        return StallCause::HostUpdate;
    case Lane::DiskIn:
    case Lane::DiskOut:
    case Lane::DiskWeights:
    case Lane::DiskBoundaries:
        return StallCause::Disk;
    case Lane::Compute:
        break;
    }
    return StallCause::Other;
}

// Does the disk still move something the other way at this time, as far as the plan is simulated?
bool StepForecaster::isOtherWay(
    const StepPlan& plan, const LastOnLane& lastOnLane, TaskKind kind, double time) const
{
    return std::ranges::any_of(lastOnLane, [&](std::int32_t last) {
        if (last < 0)
            return false;
        const auto index = static_cast<std::size_t>(last);
        const Task& other = plan.tasks[index];
        return isDisk(other.lane) && isDiskWrite(other.kind) != isDiskWrite(kind) &&
               m_spans[index].end > time;
    });
}

bool StepForecaster::simulate(const StepPlan& plan, const CostInput& input)
{
    LastOnLane lastOnLane{};
    lastOnLane.fill(-1);
    m_spans.clear();
    for (const Task& task : plan.tasks) {
        std::int32_t& previous = lastOnLane[static_cast<std::size_t>(task.lane)];
        Span span;
        span.previous = previous;
        if (previous >= 0)
            span.begin = m_spans[static_cast<std::size_t>(previous)].end;
        for (const Wait wait : plan.waitsOf(task)) {
            if (!wait.isCarried())
                span.begin = std::max(span.begin, m_spans[wait.index()].end);
        }
        const std::optional<double> duration =
            isDisk(task.lane) ? diskSecondsOf(plan, task, input,
                                    isOtherWay(plan, lastOnLane, task.kind, span.begin))
                              : durationOf(plan, task, input);
        if (!duration)
            return false;
        span.end = span.begin + *duration;
        previous = static_cast<std::int32_t>(m_spans.size());
        m_spans.push_back(span);
    }
    return true;
}

// The task that ended last among those that `task` had to wait for; -1: there is none.
std::int32_t StepForecaster::lastBefore(const StepPlan& plan, std::int32_t task) const
{
    const auto index = static_cast<std::size_t>(task);
    std::int32_t last = m_spans[index].previous;
    for (const Wait wait : plan.waitsOf(plan.tasks[index])) {
        if (wait.isCarried())
            continue;
        const auto other = static_cast<std::int32_t>(wait.index());
        if (last < 0 || m_spans[wait.index()].end > m_spans[static_cast<std::size_t>(last)].end)
            last = other;
    }
    return last;
}

// Walks back from the task that came late, until the gap is explained.
void StepForecaster::attribute(
    const StepPlan& plan, std::int32_t late, double gapBegin, StepForecast& out)
{
    double gapEnd = m_spans[static_cast<std::size_t>(late)].begin;
    for (std::int32_t task = lastBefore(plan, late); task >= 0 && gapEnd > gapBegin;
         task = lastBefore(plan, task)) {
        const Span& span = m_spans[static_cast<std::size_t>(task)];
        const double begin = std::max(span.begin, gapBegin);
        if (begin >= gapEnd)
            continue;
        const auto cause = causeOf(plan.tasks[static_cast<std::size_t>(task)].lane);
        out.stallSeconds[static_cast<std::size_t>(cause)] += gapEnd - begin;
        gapEnd = begin;
    }
    if (gapEnd > gapBegin)
        out.stallSeconds[static_cast<std::size_t>(StallCause::Other)] += gapEnd - gapBegin;
}

StepForecast StepForecaster::forecast(const StepPlan& plan, const CostInput& input)
{
    StepForecast out;
    if (!simulate(plan, input))
        return out;
    out.known = true;
    double computeEnd = 0.0;
    std::int32_t last = -1;
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
        const Span& span = m_spans[i];
        if (last < 0 || span.end > m_spans[static_cast<std::size_t>(last)].end)
            last = static_cast<std::int32_t>(i);
        if (plan.tasks[i].lane != Lane::Compute)
            continue;
        if (span.begin > computeEnd)
            attribute(plan, static_cast<std::int32_t>(i), computeEnd, out);
        out.computeSeconds += span.end - span.begin;
        computeEnd = span.end;
    }
    if (last < 0)
        return out;
    const Span& end = m_spans[static_cast<std::size_t>(last)];
    out.stepSeconds = end.end;
    if (end.end > computeEnd) {
        // The step ends with this task: it is the last thing that is waited for.
        const auto cause = causeOf(plan.tasks[static_cast<std::size_t>(last)].lane);
        const double begin = std::max(end.begin, computeEnd);
        out.stallSeconds[static_cast<std::size_t>(cause)] += end.end - begin;
        if (begin > computeEnd)
            attribute(plan, last, computeEnd, out);
    }
    // Several lanes share one disk's rate of reading, or of writing.
    const double more = diskSeconds(plan) - out.stepSeconds;
    if (more > 0.0) {
        out.stepSeconds += more;
        out.stallSeconds[static_cast<std::size_t>(StallCause::Disk)] += more;
    }
    return out;
}

// Time for its reads or for its writes, whichever is longer.
double StepForecaster::diskSeconds(const StepPlan& plan) const
{
    double reads = 0.0;
    double writes = 0.0;
    for (std::size_t i = 0; i < plan.tasks.size(); ++i)
        if (isDisk(plan.tasks[i].lane))
            (isDiskWrite(plan.tasks[i].kind) ? writes : reads) += m_spans[i].end - m_spans[i].begin;
    return std::max(reads, writes);
}

} // namespace mr
