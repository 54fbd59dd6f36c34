// Checks reads: layers in order, batches and weights that are there, slots refilled in time.

#include "core/plan/place_check.h"
#include "core/plan/plan_check.h"
#include "core/plan/task_traits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace mr {

namespace {

using Pass = WorkItem::Pass;

// --- layers ---

// Work that a micro-batch does.
struct Work {
    TaskKind kind{};
    int layer = 0;
    std::optional<int> tile = {}; // of the head's matrix, where it comes by tiles

    bool operator==(const Work&) const = default;
};

Work workOf(const PlanUnderCheck& check, const Task& task)
{
    return {task.kind, task.group.value,
        check.isOnTile(task) ? check.tiles().indexOf(task.firstElement, task.elementCount)
                             : std::nullopt};
}

// The head's part of a micro-batch's work. Its forward is part of its backward in a step, unless
// its matrix comes by tiles: ascending, then descending.
void addHeadWork(const PlanUnderCheck& check, std::vector<Work>& works)
{
    const int head = check.shape.layers() - 1;
    if (!check.isTiled(GroupId{head})) {
        works.push_back({check.hasBackward() ? TaskKind::Backward : TaskKind::Forward, head});
        return;
    }
    const int tiles = check.tiles().count();
    for (int tile = 0; tile < tiles; ++tile)
        works.push_back({TaskKind::Forward, head, tile});
    for (int tile = tiles - 1; check.isTraining() && tile >= 0; --tile)
        works.push_back({TaskKind::Backward, head, tile});
}

// Number of times that a micro-batch passes backward.
int backwardPasses(const PlanUnderCheck& check)
{
    return check.plan.secondPass > 0 ? 2 : 1;
}

// The work of every micro-batch, which ends with the first layer that is trained.
std::vector<Work> worksOf(const PlanUnderCheck& check)
{
    const int head = check.shape.layers() - 1;
    std::vector<Work> works;
    for (int layer = 0; layer < head; ++layer)
        works.push_back({TaskKind::Forward, layer});
    for (int pass = 0; pass < backwardPasses(check); ++pass) {
        addHeadWork(check, works);
        for (int layer = head - 1; check.hasBackward() && layer >= check.shape.firstTrained();
             --layer)
            works.push_back({TaskKind::Backward, layer});
    }
    return works;
}

Status checkLayers(const PlanUnderCheck& check)
{
    const std::vector<Work> works = worksOf(check);
    std::vector<std::size_t> done(static_cast<std::size_t>(check.plan.microBatches), 0);
    for (TaskIndex i = 0; i < check.plan.tasks.size(); ++i) {
        const Task& task = check.at(i);
        if (!isWork(task))
            continue;
        std::size_t& count = done[static_cast<std::size_t>(task.micro.value)];
        if (count == works.size() || works[count++] != workOf(check, task))
            return check.broken(PlanRule::LayersInOrder, i, "it is not this layer's turn");
    }
    for (const std::size_t count : done) {
        if (count < works.size())
            return check.broken(PlanRule::LayersInOrder, "a micro-batch is not carried to its end");
    }
    if (check.isTraining() && done.empty())
        return check.broken(PlanRule::LayersInOrder, "a step without a micro-batch");
    return {};
}

// A layer's work with one micro-batch, in the order of the traversal, or of its backward alone. A
// visit of a head that comes by tiles is the micro-batches of each tile in turn.
void addOrder(
    const PlanUnderCheck& check, bool isSecondPass, std::vector<std::pair<Work, MicroBatch>>& order)
{
    const int head = check.shape.layers() - 1;
    std::vector<MicroBatch> visit;
    const auto leaveHead = [&] {
        std::vector<Work> works;
        addHeadWork(check, works);
        for (const Work& work : works)
            for (const MicroBatch micro : visit)
                order.emplace_back(work, micro);
        visit.clear();
    };
    for (const WorkItem& item :
        check.policy.traversal->order(check.shape.layers(), check.plan.microBatches)) {
        const bool isForward = item.pass == Pass::Forward;
        if (!isForward && !check.hasBackward())
            continue;
        if (item.layer.value == head) {
            if (!isForward || !check.hasBackward())
                visit.push_back(item.micro);
            continue;
        }
        leaveHead();
        if (isForward ? !isSecondPass : item.layer.value >= check.shape.firstTrained())
            order.emplace_back(Work{isForward ? TaskKind::Forward : TaskKind::Backward,
                                   static_cast<int>(item.layer.value)},
                item.micro);
    }
    leaveHead();
}

// Sums are made in this order, so it decides bits.
Status checkTraversal(const PlanUnderCheck& check)
{
    if (!check.isTraining())
        return {};
    std::vector<std::pair<Work, MicroBatch>> order;
    for (int pass = 0; pass < backwardPasses(check); ++pass)
        addOrder(check, pass > 0, order);
    std::size_t next = 0;
    for (TaskIndex i = 0; i < check.plan.tasks.size(); ++i) {
        const Task& task = check.at(i);
        if (!isWork(task))
            continue;
        const bool same =
            next < order.size() && order[next] == std::pair(workOf(check, task), task.micro);
        if (!same)
            return check.broken(PlanRule::LayersInOrder, i, "the policy has another order");
        ++next;
    }
    return {};
}

// --- batches ---

Status checkBatches(const PlanUnderCheck& check)
{
    PlaceCheck places(check, Place::Batch);
    std::vector<int> held(static_cast<std::size_t>(check.plan.batchBuffers), -1);
    for (TaskIndex i = 0; i < check.plan.tasks.size(); ++i) {
        const Task& task = check.at(i);
        if (!isWork(task) && task.kind != TaskKind::FetchBatch)
            continue;
        MR_TRY(places.use(i));
        int& micro = held[static_cast<std::size_t>(task.micro.value % check.plan.batchBuffers)];
        if (task.kind == TaskKind::FetchBatch)
            micro = task.micro.value;
        else if (micro != task.micro.value)
            return check.broken(PlanRule::BatchIsThere, i, "its batch may not have come");
    }
    return {};
}

// --- weights ---

class WeightsCheck
{
public:
    explicit WeightsCheck(const PlanUnderCheck& check)
        : m_check(check)
        , m_writes(check.shape.groups.size())
        , m_sends(check.shape.groups.size())
        , m_reader(check.shape.groups.size())
    {
    }

    Status run()
    {
        for (TaskIndex i = 0; i < m_check.plan.tasks.size(); ++i) {
            const Task& task = m_check.at(i);
            if (isWork(task))
                MR_TRY(read(i));
            else if (traitsOf(task.kind).writes.has(Place::Weights) &&
                     task.kind != TaskKind::FetchFrozen && !m_check.streams(task.group))
                MR_TRY(write(i));
            else if (task.kind == TaskKind::SendWeights && !m_check.streams(task.group))
                MR_TRY(send(i));
        }
        return {};
    }

private:
    Status read(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        const auto& answers = m_check.plan.answers[static_cast<std::size_t>(task.group.value)];
        const StepIndex exact = m_check.in.step;
        if (task.version < exact - answers.maxStaleSteps)
            return m_check.broken(
                PlanRule::NotStaler, index, fmt::format("version {} is due", exact));
        for (std::size_t g = 0; g < m_reader.size(); ++g) {
            const GroupId group{static_cast<std::int32_t>(g)};
            if (!m_check.concerns(task, group) || m_check.streams(group))
                continue;
            MR_TRY(readRange(index, {group, task.version, 0, m_check.elements(group)}));
            m_reader[g] = index;
        }
        return {};
    }

    // Weights from before the update that they are sent to.
    Status send(TaskIndex index)
    {
        const Task& task = m_check.at(index);
        m_sends[static_cast<std::size_t>(task.group.value)].push_back(index);
        Piece range = pieceOf(task);
        --range.version;
        return readRange(index, range);
    }

    // At the version of the range.
    Status readRange(TaskIndex index, const Piece& range) const
    {
        const auto& writes = m_writes[static_cast<std::size_t>(range.group.value)];
        for (const TaskIndex write : writes) {
            const Piece written = pieceOf(m_check.at(write));
            if (written.version > range.version && overlap(written, range))
                return m_check.broken(PlanRule::WeightsAtVersion, index,
                    fmt::format("task {} wrote a later version over it", write));
        }
        if (range.version > m_check.in.step && !m_check.isCovered(writes, range, index))
            return m_check.broken(
                PlanRule::WeightsAtVersion, index, "nothing brought that version before");
        for (const PendingUpdate& update : m_check.in.pending) {
            const Piece due = pieceOf(update);
            const bool needed = overlap(due, range) && update.dueStep <= m_check.in.step + 1;
            const Piece both{due.group, due.version, std::max(due.first, range.first),
                std::min(due.end, range.end)};
            if (needed && !m_check.isCovered(writes, both, index))
                return m_check.broken(PlanRule::WeightsAtVersion, index,
                    "an update of the carry that is due may not be in the weights");
        }
        return {};
    }

    Status write(TaskIndex index)
    {
        const auto group = static_cast<std::size_t>(m_check.at(index).group.value);
        const auto reader = m_reader[group];
        if (reader && !m_check.clocks.isBefore(Wait::onTask(*reader), index))
            return m_check.broken(PlanRule::SlotAfterLastReader, index,
                fmt::format("task {} may still read these weights", *reader));
        m_writes[group].push_back(index);
        for (const TaskIndex send : m_sends[group])
            if (overlap(pieceOf(m_check.at(send)), pieceOf(m_check.at(index))) &&
                !m_check.isBefore(send, index))
                return m_check.broken(PlanRule::SlotAfterLastReader, index,
                    fmt::format("task {} may still copy these weights", send));
        return {};
    }

    const PlanUnderCheck& m_check;
    std::vector<std::vector<TaskIndex>> m_writes;   // by group
    std::vector<std::vector<TaskIndex>> m_sends;    // by group, to the host
    std::vector<std::optional<TaskIndex>> m_reader; // by group, the last; all run on Compute
};

} // namespace

Status checkReads(const PlanUnderCheck& check)
{
    MR_TRY(checkLayers(check));
    MR_TRY(checkTraversal(check));
    MR_TRY(checkBatches(check));
    return WeightsCheck(check).run();
}

} // namespace mr
