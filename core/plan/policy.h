// OffloadPolicy: four small questions, each answered by one object.
//
// Policies differ in an order of work and in a few shares of a parameter group, so each
// question is an interface of one function. Implementations are pure: same arguments,
// same answer, no device, no clock, no files. A new policy is usually a new combination
// in policies.cpp; at most it is one new file that implements one of these.
//
// Shares   A share is in [0, 1] and cuts a group by elements (urgentShare: by columns),
//          always at the same place, so that equal answers mean equal plans. Cuts by
//          elements are rounded to kCutElements (plan.h).

#pragma once

#include "core/base/ids.h"
#include "core/plan/model_shape.h"
#include "core/plan/optimizer.h"
#include "core/plan/plan.h"
#include "core/plan/recompute.h"
#include "core/plan/state_codec.h"

#include <millrace/status.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace mr {

// For this step the clock and the router answer for the run as a whole: the longest window, the
// most delay, the share of columns.
inline constexpr StepIndex kWholeRun = 0;

// 1. In what order is the work of a step done?
struct WorkItem {
    enum class Pass : std::uint8_t { Forward, Backward } pass;
    LayerId layer;
    MicroBatch micro;
};

class Traversal
{
public:
    virtual ~Traversal() = default;

    // Every (pass, layer, micro) once. For each micro-batch on its own, layers ascend in
    // forward and then descend in backward; how micro-batches interleave is the policy.
    virtual std::vector<WorkItem> order(int layers, int microBatches) const = 0;
};

// 2. Where does the state of each group live, and how much of it does the device update?
struct GroupPlacement {
    Tier weights = Tier::PinnedHost; // home of the master copy
    Tier state = Tier::PinnedHost;   // home of the AdamW moments
    Tier boundary = Tier::Device;    // home of the activation it hands to the next layer
    double deviceShare = 0.0;        // updated on the device; the host updates the rest
    double diskShare = 0.0;          // share of the host's part: moments and low half on disk
    double weightsOnDisk = 0.0;      // and weights as well: at most diskShare
    double gradientsOnDisk = 0.0;    // and finished gradients: at most diskShare
    double boundariesOnDisk = 0.0;   // share of the saved boundaries, by micro-batch
    double activationsOnHost = 0.0;  // share of a block's micro-batches, not made again later
    Tier frozen = Tier::Device;      // home of weights that no step changes (placeGroups)
    bool packed = false;             // those are held in 4 bits
    double frozenOnDisk = 0.0;       // share of those that is read from the SSD for every use
    bool behindBackward = false;     // the device updates it all, right behind its own backward
    std::int64_t tileRows = 0;       // of embedding and head: rows of a tile, where the home of
                                     // their weights is the host (vocabulary_tiles.h)

    // Do they come to a slot for every use?
    bool fetchesFrozen() const noexcept { return packed || frozen != Tier::Device; }
};

class Placement
{
public:
    virtual ~Placement() = default;

    // One entry per group. The share may change from step to step; homes may not.
    virtual std::vector<GroupPlacement> place(
        const ModelShape& shape, const Budget& budget, const Feedback& last) const = 0;
    // The device share, where it follows from these rates; nothing where it is given.
    virtual std::optional<double> balancedShare(const Feedback& /*last*/) const { return {}; }
};

// 3. Which part of a gradient may not wait for the host?
struct GradientSplit {
    double urgentShare = 0.0;   // by columns; owned and updated by the device alone
    bool reselect = false;      // choose the urgent columns again at the end of this step
    bool urgentVectors = false; // 1-D weights are the device's as a whole
};

class GradientRouter
{
public:
    virtual ~GradientRouter() = default;
    virtual GradientSplit split(GroupId group, StepIndex step, const Feedback& last) const = 0;
};

// 4. How late may the rest of an update be?
//
//                        lateShare  windowSteps  maxStaleSteps
//   exact policies           x           1             0
//   delayed update           0           1             1
//   zenflow, window S        0           S           2S - 1
//
// 2S - 1: the first gradient of a window is missed by the S - 1 forwards left in the
// window, and by the S of the next one, during which the host makes the update; S - 1 where the
// update is made at the end of its own window. A run has one window, so windowSteps is the same
// for every group. Urgent columns are never late.
struct UpdateRule {
    double lateShare = 0.0;  // may wait until the group's next forward; still exact
    int windowSteps = 1;     // gradients of this many steps are summed into one update
    int maxStaleSteps = 0;   // forwards that may miss a gradient; above 0 changes the mathematics
    bool besideNext = false; // the host makes the update beside the next window, not at the
                             // end of its own
};

class UpdateClock
{
public:
    virtual ~UpdateClock() = default;
    virtual UpdateRule rule(GroupId group, StepIndex step, const Feedback& last) const = 0;
    // Steps at the beginning of a run that follow another rule than the rest.
    virtual StepIndex warmup() const noexcept { return 0; }
};

// Host updates, and the uploads that follow them, are cut into tiles: the upload of a tile runs
// beside the update of the next one. 32 Mi elements are 64 MiB in BF16.
inline constexpr std::int64_t kTileElements = std::int64_t{32} << 20;

// The sums by which columns are compared when the urgent ones are chosen.
enum class ColumnEnergy : std::uint8_t {
    Squares,   // sums of squares, as in the paper
    Absolutes, // sums of |x|, as its authors' code has it; to compare
};

// One update of a window of S steps: how much of AdamW's time has passed?
enum class HostClock : std::uint8_t {
    Steps,   // S steps of it: S times the rate, moments that fade S times (beta^S)
    Updates, // one, as ZenFlow was published: its columns make 1/S of the way of the others
};

// The norm that clips a step. It also decides which updates a NaN or infinity skips.
//
// Where no norm of the whole step is needed (PerGroup, or a run that does not clip) an update
// follows its own gradient, and a NaN or infinity skips the groups that have one, alike with every
// policy. Exact clipping, and windows in any case, skip the step on all owners.
enum class ClipMode : std::uint8_t {
    Exact,        // its own, of all groups: every update waits for JoinNorm
    PreviousNorm, // that of the step before: an update follows its gradient at once
    PerGroup,     // its own, of each group alone: an update waits for its group's JoinNorm
    Own,          // none: the optimizer limits the step of each weight by itself
    TwoPass,      // its own, of all groups, of a light optimizer: backward comes twice
};

// Whether a JoinNorm of the step makes the factor of its own gradient.
constexpr bool clipsByOwnNorm(ClipMode mode) noexcept
{
    return mode != ClipMode::PreviousNorm && mode != ClipMode::Own;
}

// The policies that are built (policies.h).
enum class PolicyId : std::uint8_t {
    Resident,
    ZeroOffload,
    ZeroOffloadDpu,
    DeepOptimizerStates,
    ZenFlow,
    Streamed,
    SsdVertical,
};

struct OffloadPolicy {
    PolicyId id{};
    std::string_view name; // "zero-offload": its name in run files and the UI
    std::unique_ptr<const Traversal> traversal;
    std::unique_ptr<const Placement> placement;
    std::unique_ptr<const GradientRouter> router;
    std::unique_ptr<const UpdateClock> clock;
    std::int64_t tileElements = kTileElements; // a multiple of kCutElements; changes no number
    // Places on the device that blocks use in turn: for weights that stream, and for gradients on
    // their way to the host. With two, one is used while the next one moves; one needs the least
    // memory.
    int buffers = 2;
    // The unit in which the host's AdamW counts one update for several steps, and a further
    // factor of its learning rate there.
    HostClock hostClock = HostClock::Steps;
    double hostLearningRate = 1.0;
    ColumnEnergy columnEnergy = ColumnEnergy::Squares;
    // The clock's interval is a stand-in until the run is warm and its energies decide it
    // (magnitude_rule.h). No step of the warm-up depends on it.
    bool intervalByMagnitude = false;
    // Where the gradients of a window are summed. On the device the sum is rounded once to the
    // gradient type and crosses once: other numbers than the host's, except in windows of one step.
    Tier windowSums = Tier::PinnedHost;
    StateCodec stateCodec = StateCodec::Plain; // Compact changes numbers, on all routes alike
    ClipMode clipMode = ClipMode::Exact;       // PerGroup changes numbers, too
    Optimizer optimizer = Optimizer::AdamW;    // so does another one
};

enum class Precision : std::uint8_t {
    BF16, // weights, activations and finished gradients; sums are in F32
    F32,  // everything; for tests and tiny models
};

// Request of the run for one step, under any policy.
struct StepSpec {
    StepIndex step = 0;
    int microBatches = 1;
    double clipNorm = 0.0; // 0 does not clip
    Recompute recompute = Recompute::Block;
    Precision precision = Precision::BF16;
};

// Does an update follow its own gradient (StepPlan::normByGroup)? `byColumns`: none does with
// windows, because their updates are made of more than one step's gradient.
bool updatesFollowGradients(
    const OffloadPolicy& policy, const StepSpec& spec, bool byColumns) noexcept;

// Does backward come twice, first for the norm of all groups and then for the updates, which it is
// needed by (StepPlan::secondPass)? The inputs of blocks are kept; forward comes once.
bool passesTwice(const OffloadPolicy& policy, const StepSpec& spec) noexcept;

struct BuiltStep {
    StepPlan plan;
    Carry out; // pass to the next buildPlan() or buildFlush()
};

// Turns answers into a plan. The only place that knows how the four interact, and the
// only place that knows about clipping (ClipMode). `in` is the carry of the step before.
Result<BuiltStep> buildPlan(const StepSpec& spec, const Carry& in, const ModelShape& shape,
    const Budget& budget, const Feedback& last, const OffloadPolicy& policy);

// Updates late parts, which are exact: they must be done before weights are saved or evaluated.
// Stale parts stay as they are: a checkpoint saves them as pending (accumulators, position in the
// window, the updates of a host job in flight, or its result) and loading it re-arms them. So
// evaluating or saving never changes training. Only the final export applies them, and does so on a
// copy.
Result<BuiltStep> buildFlush(const Carry& in, const ModelShape& shape, const Budget& budget,
    const Feedback& last, const OffloadPolicy& policy);

// Forward passes of an evaluation, at the version the next step's forward would read. Changes no
// carry.
Result<StepPlan> buildEvaluation(const StepSpec& spec, const Carry& in, const ModelShape& shape,
    const Budget& budget, const Feedback& last, const OffloadPolicy& policy);

// Internal, naming the first broken rule:
//   - a task waits only for earlier tasks of the plan and for entries of `carryIn`;
//   - weights are resident, at the version named, when a task reads them;
//   - a slot is refilled only after its last reader;
//   - host bytes (hi plane, gradient, moments, boundary) are rewritten only after their
//     last copy or reader, be it of this step or carried in;
//   - no tier holds more than its budget;
//   - every element is updated by exactly one task per update, and by its due step;
//   - no read is staler than the clock allows;
//   - every range is cut at kCutElements or at the end of its group;
//   - columns change owner only while no host job is in flight;
//   - `carryOut` follows from `carryIn` and the plan: nothing pending, unfinished or held
//     is lost or made up.
Status checkPlan(const StepPlan& plan, const Carry& carryIn, const Carry& carryOut,
    const ModelShape& shape, const Budget& budget, const OffloadPolicy& policy);

} // namespace mr
