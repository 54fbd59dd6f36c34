#include "core/choose/rate_estimator.h"

#include "core/plan/cost_model.h"

#include <algorithm>

namespace mr {
namespace {

constexpr double kSmallCopyBytes = 64.0 * 1024.0;

double secondsBetween(const Interval& interval)
{
    return 1e-9 * static_cast<double>(interval.endNs - interval.beginNs);
}

double knownOr(double seen, double known)
{
    return seen > 0.0 ? seen : known;
}

} // namespace

double estimatedCheapSeconds(const ModelShape& shape, const Feedback& rates) noexcept
{
    // SwiGLU reads two elements for one that it makes, a norm one. An update reads 14 bytes of its
    // element and writes 12.
    constexpr double kMovedPerByte = 3.0;
    constexpr double kMovedPerUpdate = 26.0;
    if (rates.deviceAdamwElementsPerSecond <= 0.0)
        return 0.0;
    return kMovedPerByte * static_cast<double>(shape.remadeBytesPerBlock) /
           (kMovedPerUpdate * rates.deviceAdamwElementsPerSecond);
}

void RateSamples::add(double seconds, double work) noexcept
{
    if (work <= 0.0 || seconds <= 0.0)
        return;
    if (m_each.size() < kMost) {
        m_each.push_back(seconds / work); // reserved
        return;
    }
    m_each[m_oldest] = seconds / work;
    m_oldest = (m_oldest + 1) % kMost;
}

void RateSamples::clear() noexcept
{
    m_each.clear();
    m_oldest = 0;
}

double RateSamples::median() const
{
    if (m_each.empty())
        return 0.0;
    std::vector<double> sorted = m_each; // the order of m_each says which is the oldest
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
}

double RateSamples::rate() const
{
    const double each = median();
    return each > 0.0 ? 1.0 / each : 0.0;
}

void RateEstimator::readWork(
    const StepPlan& plan, const Task& task, double seconds, const RateReading& how)
{
    const int last = how.shape.layers() - 1;
    if (plan.answers[static_cast<std::size_t>(task.group.value)].tileRows > 0)
        return; // a part of the layer's work, or none: its rows have come
    const GroupShape& shape = how.shape.groups[static_cast<std::size_t>(task.group.value)];
    const bool isBlock = task.group.value != 0 && task.group.value != last;
    Layer& layer = isBlock                 ? m_blocks[static_cast<std::size_t>(shape.kind)]
                   : task.group.value == 0 ? m_embedding
                                           : m_head;
    const bool forward = task.kind == TaskKind::Forward;
    const bool kept = !forward && isBlock && plan.keepsActivations(task);
    (forward ? layer.forward : kept ? layer.keptBackward : layer.backward).add(seconds, 1.0);
    if (!isBlock || how.recompute != Recompute::None)
        return;
    m_blockFlops.add(seconds, forward ? shape.forwardFlops : shape.backwardFlops);
}

namespace {

// Packed weights that come in several pieces are expanded with the last.
bool isWholeGroup(const Task& task, const ModelShape& shape)
{
    return task.elementCount ==
           shape.groups[static_cast<std::size_t>(task.group.value)].frozenElements;
}

} // namespace

void RateEstimator::readTask(
    const StepPlan& plan, const Task& task, double seconds, const RateReading& how)
{
    const auto elements = static_cast<double>(task.elementCount);
    switch (task.kind) {
    case TaskKind::Forward:
    case TaskKind::Backward:
        return readWork(plan, task, seconds, how);
    case TaskKind::UpdateOnDevice: // a light one is not AdamW's
        return plan.answers[static_cast<std::size_t>(task.group.value)].behindBackward
                   ? void()
                   : m_deviceUpdate.add(seconds, elements);
    case TaskKind::UpdateOnHost:
        return m_hostUpdate.add(seconds, elements);
    case TaskKind::FetchFrozen:
        if (plan.answers[static_cast<std::size_t>(task.group.value)].packed)
            return isWholeGroup(task, how.shape) ? m_packed.add(seconds, elements) : void();
        break;
    default:
        break;
    }
    if (task.lane != Lane::CopyIn && task.lane != Lane::CopyOut)
        return;
    const auto bytes = static_cast<double>(copyBytes(plan, task, how.shape, how.precision));
    Copies& copies = task.lane == Lane::CopyIn ? m_copyIn : m_copyOut;
    (bytes < kSmallCopyBytes ? copies.small : copies.large).add(seconds, bytes);
}

// Rounding and norm of a group stand side by side in the plan; they are one rate.
void RateEstimator::read(
    const StepPlan& plan, std::span<const Interval> tasks, const RateReading& how)
{
    double finish = 0.0;
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
        const Task& task = plan.tasks[i];
        const double seconds = secondsBetween(tasks[i]);
        readTask(plan, task, seconds, how);
        if (task.kind == TaskKind::FinishGradient)
            finish = seconds;
        else if (task.kind == TaskKind::NormPart)
            m_gradient.add(finish + seconds, static_cast<double>(task.elementCount));
    }
    m_recompute = how.recompute;
    ++m_steps;
}

void RateEstimator::clear() noexcept
{
    const auto forget = [](Layer& layer) {
        layer.forward.clear();
        layer.backward.clear();
        layer.keptBackward.clear();
    };
    forget(m_embedding);
    std::ranges::for_each(m_blocks, forget);
    forget(m_head);
    for (RateSamples* samples : {&m_blockFlops, &m_gradient, &m_packed, &m_deviceUpdate,
             &m_hostUpdate, &m_copyIn.small, &m_copyIn.large, &m_copyOut.small, &m_copyOut.large})
        samples->clear();
    m_steps = 0;
}

// A backward that recomputes is not measured apart from its recomputation. The known seconds of
// recomputation stay, except where other backwards have their activations kept: the difference
// measures them.
LayerSeconds RateEstimator::secondsOf(const Layer& layer, const LayerSeconds& known) const
{
    LayerSeconds seconds = known;
    seconds.forward = knownOr(layer.forward.median(), known.forward);
    const double backward = layer.backward.median();
    if (const double kept = layer.keptBackward.median(); kept > 0.0) {
        seconds.backward = kept;
        seconds.recompute = backward > 0.0 ? std::max(0.0, backward - kept) : known.recompute;
        return seconds;
    }
    if (backward <= 0.0)
        return seconds;
    double none = 0.0;
    double& again = m_recompute == Recompute::Block   ? seconds.recompute
                    : m_recompute == Recompute::Cheap ? seconds.cheap
                                                      : none;
    if (again >= backward)
        again = 0.0; // the known value cannot be right
    seconds.backward = backward - again;
    return seconds;
}

Feedback RateEstimator::rates(const Feedback& known) const
{
    const auto copies = [](const Copies& seen, double before) {
        return knownOr(knownOr(seen.large.rate(), seen.small.rate()), before);
    };
    Feedback rates;
    rates.diskReadBytesPerSecond = known.diskReadBytesPerSecond;
    rates.diskWriteBytesPerSecond = known.diskWriteBytesPerSecond;
    rates.diskReadAloneBytesPerSecond = known.diskReadAloneBytesPerSecond;
    rates.diskWriteAloneBytesPerSecond = known.diskWriteAloneBytesPerSecond;
    rates.hostToDeviceBytesPerSecond = copies(m_copyIn, known.hostToDeviceBytesPerSecond);
    rates.deviceToHostBytesPerSecond = copies(m_copyOut, known.deviceToHostBytesPerSecond);
    rates.hostAdamwElementsPerSecond =
        knownOr(m_hostUpdate.rate(), known.hostAdamwElementsPerSecond);
    rates.deviceAdamwElementsPerSecond =
        knownOr(m_deviceUpdate.rate(), known.deviceAdamwElementsPerSecond);
    rates.deviceFlopsPerSecond = knownOr(m_blockFlops.rate(), known.deviceFlopsPerSecond);
    rates.deviceGradientElementsPerSecond =
        knownOr(m_gradient.rate(), known.deviceGradientElementsPerSecond);
    rates.packedElementsPerSecond = knownOr(m_packed.rate(), known.packedElementsPerSecond);
    rates.embedding = secondsOf(m_embedding, known.embedding);
    rates.block = secondsOf(m_blocks.front(), known.block);
    rates.otherBlocks = known.otherBlocks;
    for (int kind = 1; kind < kMostBlockKinds; ++kind)
        if (const Layer& layer = m_blocks[static_cast<std::size_t>(kind)]; layer.isMeasured())
            rates.blockOf(kind) = secondsOf(layer, known.knownBlock(kind));
    rates.head = secondsOf(m_head, known.head);
    return rates;
}

} // namespace mr
