// StepPlan: everything one optimizer step will do, as data.
//
// A plan lists tasks in the order the engine thread enqueues them. Each task names
// the lane it runs on and the earlier tasks it waits for. Policies (policy.h) shape
// the plan; StepExecutor carries it out and knows nothing of policies; checkPlan()
// proves, before anything runs, that the plan is safe. So a policy is tested without
// a device, and the UI can draw the plan next to the measured step.
//
// Not all work ends with its step. A step leaves its Carry for the next one: plan and
// carry in, plan and carry out, so that steps form a chain of values.
//
// Versions A step numbered s makes version s of the weights; if nothing is late or stale,
//          its forward reads version s - 1.
// Threads  A StepPlan and a Carry are values; once built they are not changed and may be
//          shared.
// Units    Ranges are elements of a group, half open; sizes are bytes.

#pragma once

#include "core/base/ids.h"
#include "core/plan/state_codec.h"

#include <millrace/status.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace mr {

// Where bytes can live, fastest first.
enum class Tier : std::uint8_t { Device, PinnedHost, Disk };

// A lane runs its tasks in order; lanes run at the same time as each other. The first three are
// device streams, Host is the update pool, the others are queues of the I/O thread: reads that the
// next layer waits for must not stand behind reads for its update. DiskBoundaries writes in forward
// and reads in backward; it turns round once all its earlier tasks are over. A stream waits for
// another by an Event, for Host or a disk lane by a Gate (device.h).
enum class Lane : std::uint8_t {
    Compute,
    CopyIn,
    CopyOut,
    Host,
    DiskIn,
    DiskOut,
    DiskWeights,
    DiskBoundaries,
};
inline constexpr std::size_t kLanes = 8;

// Is it a queue of the I/O thread?
constexpr bool isDisk(Lane lane) noexcept
{
    return lane >= Lane::DiskIn;
}

// Where there are two lanes the builder places the task on one of them. task_traits.h says what
// each kind is.
enum class TaskKind : std::uint8_t {
    FetchBatch,         // CopyIn           ids, targets, ... of one micro-batch
    ReadFromDisk,       // DiskIn           data for the update of a tile, to a stage of the host
    WriteToDisk,        // DiskOut          data that the update has changed, back
    ReadWeights,        // DiskWeights      a tile of weights, to a stage of the host
    ReadFrozen,         // DiskWeights      a tile of weights that no step changes, likewise
    SpillGradient,      // DiskOut          a tile of a gradient that was sent, from a stage
    FetchWeights,       // CopyIn           pinned host to a slot
    FetchFrozen,        // CopyIn           weights that no step changes, likewise; the ranges of
                        //                  this and of ReadFrozen count their elements
    FetchRows,          // CopyIn           rows of the embedding that a micro-batch's tokens name,
                        //                  from pinned host to the place of its output
    FetchState,         // CopyIn           optimizer state for an update on the device
    StoreState,         // CopyOut          and back
    Forward,            // Compute          one layer, one micro-batch; of the head: losses only
    Backward,           // Compute          recomputes activations not kept; of the head:
                        //                  losses and gradients, so a step has no Forward there. By
                        //                  tiles of its matrix it has both, with a tile's range
    FinishGradient,     // Compute          rounds the group's sum once to the gradient type, unless
                        //                  backward has; with Part::Complement the packed sum of a
                        //                  window
    SaveBoundary,       // CopyOut          the activation between two layers
    LoadBoundary,       // CopyIn
    SaveActivations,    // CopyOut          the activations backward reads of a block, to the host
    LoadActivations,    // CopyIn           in place of making them again
    WriteBoundary,      // DiskBoundaries   one that was saved, from a stage
    ReadBoundary,       // DiskBoundaries   to a stage, to be loaded
    SendGradient,       // CopyOut          to the host accumulator of the group
    SendWeights,        // CopyOut          to the stage of an update, which has them on disk and
                        //                  needs no read where backward has just had them here
    SelectColumns,      // CopyOut          sends the energies by which the urgent columns are
                        //                  chosen and moved after the step; makes an OwnershipId
    PackComplement,     // Compute          the other columns of a gradient, side by side
    AccumulateOnHost,   // Host             adds a gradient that was sent to the window's sum
    AccumulateOnDevice, // Compute         adds a packed gradient to the window's sum
    UploadComplement,   // CopyIn           the other columns, updated by the host
    ScatterComplement,  // Compute          staged complement into the weights, around owned columns
    MoveOwnership,      // CopyIn, CopyOut  master, moments and update count of columns
    NormPart,           // Compute or Host  squared norm of a range, by blocks
    JoinNorm,           // Compute or Host  adds the parts, of one group where the task names one;
                        //                  after this the clip factor is known
    SendScalars,        // CopyOut          norm, clip factor, losses, for the host; of one group
                        //                  no losses
    PrepareUpdate,  // Compute          what a light update needs of the whole gradient: averages
                    //                  of squares, the size of each weight's step
    UpdateOnDevice, // Compute          AdamW, or a light update
    UpdateOnHost,   // Host             AdamW
};

inline constexpr std::size_t kTaskKinds = static_cast<std::size_t>(TaskKind::UpdateOnHost) + 1;

// Which elements of its range a task is about.
enum class Part : std::uint8_t {
    All,
    Urgent,     // elements in the columns that Task::ownership gives to the device
    Complement, // elements in the other columns, the host's
};

// Shares and tiles are cut at multiples of this, or at the end of the group. The gradient
// norm is summed in blocks of 1,024 elements and the state codec works on groups that
// divide 1,024, so no cut changes a bit of either.
inline constexpr std::int64_t kCutElements = 1024;

using TaskIndex = std::uint32_t;

// Target of a wait: an earlier task of the same plan, or one that an earlier step left running. One
// word: the top bit says which, the others are an index into StepPlan::tasks, or into
// Carry::unfinished of the carry the plan was built from.
class Wait
{
public:
    static constexpr Wait onTask(TaskIndex index) noexcept { return Wait(index); }

    static constexpr Wait onCarried(TaskIndex index) noexcept { return Wait(index | kCarriedBit); }

    constexpr bool isCarried() const noexcept { return (m_bits & kCarriedBit) != 0; }

    constexpr TaskIndex index() const noexcept { return m_bits & ~kCarriedBit; }

    friend constexpr bool operator==(Wait, Wait) = default;

private:
    explicit constexpr Wait(std::uint32_t bits) noexcept
        : m_bits(bits)
    {
    }

    static constexpr std::uint32_t kCarriedBit = std::uint32_t{1} << 31;

    std::uint32_t m_bits;
};

struct Task {
    TaskKind kind{};
    Lane lane{};
    Part part{};
    // A state slot of the device, for tasks that fetch, use or store state that visits the device.
    // A weight slot of the device, for tasks that bring or read weights that stream. Both, where
    // the first are about such weights, too (VisitSlots). With Part::Complement: the bank of sums;
    // of an upload and its scatter, bank * kUploadSlots + the staging slot.
    std::uint8_t slot = 0;
    GroupId group;
    MicroBatch micro;              // value -1 where it has no meaning; for tasks that add to the
                                   // sum of a window: the gradients that are in it before
    OwnershipId ownership;         // value -1 where `part` is All
    StepIndex version = 0;         // version of the weights it reads or, for updates, makes; the
                                   // learning rate and bias correction follow from it
    std::int64_t firstElement = 0; // the range of the group, counted over all columns
    std::int64_t elementCount = 0; // for any `part`
    std::uint32_t firstWait = 0;   // into StepPlan::waits
    std::uint16_t waitCount = 0;   // all waits point to earlier tasks
    // The stage of host memory that a task fills, reads, changes or saves, for data on disk. Stages
    // are numbered through: those of updates, weights, gradients, boundaries. -1: none.
    std::int16_t stage = -1;
};

// Plans are kept to be drawn, so a task is small, of fixed size, and owns nothing.
static_assert(sizeof(Task) == 48 && std::is_trivially_copyable_v<Task>);

// An update with a complete gradient that no step has begun, or that a restart has to begin
// again.
struct PendingUpdate {
    GroupId group;
    Part part{};
    OwnershipId ownership; // value -1 where `part` is All
    StepIndex version = 0; // it makes
    StepIndex dueStep = 0; // step of the first forward that must see it
    std::int64_t firstElement = 0;
    std::int64_t elementCount = 0;

    // Late, not stale: the next forward sees it, so it changes no number.
    constexpr bool isExact() const noexcept { return dueStep == version + 1; }
};

// A task that may still be running when the next step begins: a host update, the JoinNorm of a
// late part, or the last copy or reader of bytes that the next step rewrites.
struct UnfinishedTask {
    Task task;   // waits left out
    Wait origin; // in the plan that leaves it, or in the carry that plan was built from
};

// A slot that keeps frozen weights from one step to the next: those that backward used last are
// those that forward needs first.
struct HeldSlot {
    GroupId group{-1}; // value -1: nothing of use
};

// The update of a whole window, which the host makes beside the next window, a slice in every
// step. Once all tiles are done, its result is ready on the host.
struct HostJob {
    std::int64_t window = 0; // it reads the gradients of this window
    StepIndex version = 0;   // it makes: the last step of that window
    StepIndex dueStep = 0;   // step of the first forward that must see it
    std::int32_t tilesDone = 0;
    bool normJoined = false; // the window's clip factor is known
    bool sent = true;        // false: its gradients are still the sum on the device
};

// State that one step leaves for the next. A default Carry stands before the first step.
struct Carry {
    StepIndex step = 0;                     // that left it
    std::vector<PendingUpdate> pending;     // by due step, then group, then first element
    std::vector<UnfinishedTask> unfinished; // targets of waits; empty after a restart
    std::vector<HeldSlot> heldSlots;        // by slot; empty after a restart or an evaluation
    std::int64_t window = 0;                // windows completed since the run began
    int stepsIntoWindow = 0;                // gradients in the sums, below windowSteps
    bool landed = false;            // the last step's gradient is on the host and not yet summed
    OwnershipId ownership;          // choice of urgent columns; value -1: none were chosen yet
    std::optional<HostJob> hostJob; // at most one in flight
    bool normByGroup = false;       // as in the StepPlan that left `pending`
};

// Answers of the policy for one group (policy.h explains each number).
struct GroupAnswers {
    Tier weights = Tier::PinnedHost;
    Tier state = Tier::PinnedHost;
    Tier boundary = Tier::Device;
    double deviceShare = 0.0;
    double diskShare = 0.0;
    double weightsOnDisk = 0.0;
    double gradientsOnDisk = 0.0;
    double boundariesOnDisk = 0.0;
    double activationsOnHost = 0.0;
    double urgentShare = 0.0;
    double lateShare = 0.0;
    int windowSteps = 1;
    int maxStaleSteps = 0;
    bool besideNext = false;
    bool byColumns = false; // the group is split by columns and summed over windows
    bool urgentVectors = false;
    Tier frozen = Tier::Device;
    bool packed = false;
    double frozenOnDisk = 0.0;
    bool behindBackward = false;
    std::int64_t tileRows = 0;

    bool fetchesFrozen() const noexcept { return packed || frozen != Tier::Device; }
    // Do weights of the group come to a slot for every use?
    bool takesSlot() const noexcept { return weights != Tier::Device || fetchesFrozen(); }
};

// The host keeps the activations of so many of a block's micro-batches in flight: the first ones.
constexpr int keptMicroBatches(double share, int inFlight) noexcept
{
    return static_cast<int>(share * inFlight + 0.5);
}

// Where gradients lie on the device. The gradient of a block is of use for a short time, so blocks
// take turns in a few slots (block g in slot (g - 1) modulo the count) where the order of work and
// the policy let them; embedding and head, which are larger, have bytes of their own.
struct GradientHomes {
    int sumSlots = 0;      // sums of the micro-batches; 0: every block has its own
    int finishedSlots = 0; // BF16, the part the host updates; 0: none, or the sum is it
    // Embedding and head have the same bytes, the head's: those are used up before the embedding's
    // backward. The embedding's begin where the head's matrix does, so that gaps stay 0.
    bool endsShare = false;
    std::int64_t embeddingFirst = 0; // element of these bytes
};

// Places on the device of a block's activations, where backward makes them again or the host keeps
// some, which takes two: one is copied while the next is made. Work that follows other work goes to
// the other place.
struct ActivationTurns {
    int sets = 1;
    int stride = 1; // from a block to the next

    constexpr int setOf(int block, int slot) const noexcept
    {
        return (stride * block + slot) % sets;
    }
};

// Where a step stands in its window.
struct WindowPlace {
    int bank = 0;    // bank of the sums its gradient goes to
    int before = -1; // gradients that are in them, or will be, before its own; -1: it has none
};

// Slots of a task about state that visits the device. An update behind backward changes weights in
// the slot they streamed to.
struct VisitSlots {
    std::uint8_t state = 0;
    std::uint8_t weights = 0;

    // `states`: StepPlan::stateSlots.
    static constexpr VisitSlots of(const Task& task, int states) noexcept
    {
        const int count = states > 0 ? states : 1;
        return {static_cast<std::uint8_t>(task.slot % count),
            static_cast<std::uint8_t>(task.slot / count)};
    }
    constexpr std::uint8_t packed(int states) const noexcept
    {
        return static_cast<std::uint8_t>(weights * (states > 0 ? states : 1) + state);
    }
};

struct StepPlan {
    StepIndex step = 0; // a flush or an evaluation keeps the step of the carry it was built from
    std::vector<Task> tasks;
    std::vector<Wait> waits;
    std::vector<GroupAnswers> answers; // by group; kept so that checking needs no Feedback
    int microBatches = 0;              // 0: a flush
    int inFlight = 1;                  // micro m keeps its boundaries in slot m % inFlight
    int batchBuffers = 2;              // micro m is fetched into batch buffer m % batchBuffers
    int stateSlots = 0;                // numbers for Task::slot
    int weightSlots = 0;               // numbers for Task::slot, for weights that stream
    int diskSlots = 0;                 // numbers for Task::stage: places of updates
    int weightStages = 0;              // behind them: for weights on their way to the device
    int gradientStages = 0;            // behind those: for gradients on their way to the disk
    int boundaryStages = 0;            // and for boundaries, both ways
    std::int64_t diskTileElements = 0; // largest tile in any place but those of boundaries
    bool savesBoundaries = false;      // their home is the host; the device has two for each
                                       // micro-batch in flight, of layer l in place l % 2
    ActivationTurns activations;
    StateCodec stateCodec{}; // planes that FetchState and StoreState move
    int staleness = 0;       // forwards of this step's weights that miss a gradient
    // An update waits for the JoinNorm and SendScalars that name its group, not for those of the
    // step (group -1), which are there for the record: it follows its own gradient.
    bool normByGroup = false;
    // First task of a second backward, after whose JoinNorm every update follows its gradient. 0:
    // the only one. With it an update waits for the JoinNorm of the step in place of its group's.
    TaskIndex secondPass = 0;
    // Forward of each layer runs on two moved copies of its weights, and there is no backward
    // (core/step/forward_probes.h). An update needs no gradient but the JoinNorm of the step.
    bool probes = false;
    // Where it does and its weights are on disk, it gets them from the device (SendWeights).
    bool sendsWeights = false;
    GradientHomes gradients;
    WindowPlace window;
    std::array<std::size_t, 3> peakBytes{}; // by Tier; exact, not an estimate
    std::chrono::nanoseconds predicted{};   // from measured rates; a forecast

    // Does the host keep the activations of this work on a block, so that none are made again?
    bool keepsActivations(const Task& task) const noexcept
    {
        return activations.sets > 1 &&
               task.micro.value % inFlight <
                   keptMicroBatches(
                       answers[static_cast<std::size_t>(task.group.value)].activationsOnHost,
                       inFlight);
    }

    // Does an update read the scalars of its own group?
    bool readsOwnNorm() const noexcept { return normByGroup && secondPass == 0 && !probes; }

    // Is it about a group that the device updates right behind its backward?
    bool isBehindBackward(const Task& task) const noexcept
    {
        const auto group = static_cast<std::size_t>(task.group.value);
        return group < answers.size() && answers[group].behindBackward;
    }

    // Place of the activations of this work on a block.
    int activationSet(const Task& task) const noexcept
    {
        return activations.setOf(task.group.value - 1, task.micro.value % inFlight);
    }

    std::span<const Wait> waitsOf(const Task& task) const
    {
        return std::span(waits).subspan(task.firstWait, task.waitCount);
    }
};

} // namespace mr
