// PlanBuilder: buildPlan() for every step of a run, without allocating after the first.
//
// The policy's answers that fill vectors (order of work, placement) are pure and a run's shape,
// budget and choices do not change (what was chosen stays chosen), so they are asked once. The
// clock and the router are asked in every step.
//
// Threads    One owner; the engine thread.
// Ownership  Shape and policy are lent and must outlive the builder.
// Errors     InvalidArgument for what a spec or an answer asks that is not built; Internal for a
//            carry that does not fit the step.

#pragma once

#include "core/plan/cost_model.h"
#include "core/plan/disk_cuts.h"
#include "core/plan/memory_plan.h"
#include "core/plan/policy.h"
#include "core/plan/task_clocks.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mr {

class PlanBuilder
{
public:
    // `chosen` are the rates the placement was or is chosen by.
    PlanBuilder(const ModelShape& shape, const Budget& budget, const Feedback& chosen,
        const OffloadPolicy& policy);

    // The functions of policy.h, into values that keep their memory from call to call. `in` may be
    // `out.out` of the call before. `last` only serves the forecast (StepPlan::predicted).
    Status buildPlanInto(
        const StepSpec& spec, const Carry& in, const Feedback& last, BuiltStep& out);
    Status buildFlushInto(const Carry& in, BuiltStep& out);
    // Micro-batches follow each other whatever the policy's order: no number depends on it, and
    // it needs the least memory.
    Status buildEvaluationInto(
        const StepSpec& spec, const Carry& in, const Feedback& last, StepPlan& out);

private:
    // Where a group is on its way through the step.
    struct GroupState {
        HostCuts cuts;
        std::int64_t sentFirst = 0; // the host gets gradients from here on
        bool stateVisits = false;   // the device updates its part with state fetched from the host
        bool begun = false;         // its first turn has come
        int backwardLeft = 0;
        std::optional<Wait> upload;      // the last
        std::optional<Wait> reader;      // of the weights, the last
        std::optional<Wait> finished;    // its gradient
        std::optional<Wait> gradient;    // sent to the host
        std::optional<Wait> accumulated; // the one that was sent before
    };

    // What depends on how a step is asked for and stays the same from step to step.
    struct Layout {
        StepSpec spec;
        bool valid = false;
        int inFlight = 1;
        std::vector<WorkItem> order;
        std::array<std::size_t, 3> peakBytes{};
        GradientHomes gradients;
        std::int64_t stateTileElements = 0;
        WindowLayout window;
        int weightSlots = 0;
        bool savesBoundaries = false;
        BoundaryHomes boundaries;
        ActivationTurns activations;
    };
    // Weights whose home is the host, while they are on the device.
    struct WeightSlot {
        GroupId group{-1};
        std::optional<Wait> fetch;  // the last tile
        std::optional<Wait> reader; // the last
        std::optional<Wait> sent;   // to the host, the last tile
    };
    // An activation between two layers, whose home is the host, while it is on the device.
    struct BoundarySlot {
        std::optional<Wait> save;   // the last from here
        std::optional<Wait> reader; // or writer, the last
    };
    // A place of a block's activations, of which some are kept on the host.
    struct ActivationSet {
        std::optional<Wait> save; // the last from here
        std::optional<Wait> user; // a layer, the last
    };
    // What the host updates and the device gets later: before a layer's forward, where weights come
    // when its turn comes, or at the end of the step.
    struct LateTile {
        Task update;
        Wait updated;
    };
    // A place of the host for what is on its way between disk and device.
    struct Stage {
        std::optional<Wait> disk; // the last write to disk from there
        std::optional<Wait> copy; // to the device
    };
    // A part of a group's optimizer state on its way through the device.
    struct StateTile {
        GroupId group;
        std::int64_t first = 0;
        std::int64_t count = 0;
        std::optional<Wait> fetch;
        std::optional<Wait> store;
    };

    Status checkAnswers() const;
    Status checkHomes() const;
    Status checkClipping() const;
    Status prepare(const StepSpec& spec, bool training, Layout& layout) const;
    void chooseCuts(DiskSends sends);
    Status begin(StepIndex step, const Carry& in, DiskSends sends, StepPlan& plan);
    Status readAnswers(StepIndex step, StepPlan& plan);
    void openSlots(const Layout& layout, StepPlan& plan);
    void apply(const Layout& layout, const Feedback& last, StepPlan& plan);

    Task make(TaskKind kind, Lane lane, GroupId group, StepIndex version) const;
    // Appends; leaves out waits that the order of the lane or another wait implies.
    Wait emit(StepPlan& plan, const Task& task);
    void waitFor(std::optional<Wait> wait);
    void waitForCarried(GroupId group);

    void emitPending(StepPlan& plan, Carry& out, bool flush);
    void emitUpdate(StepPlan& plan, const PendingUpdate& update);
    void emitHostUpdate(StepPlan& plan, const PendingUpdate& update);
    void emitDeviceUpdate(StepPlan& plan, const PendingUpdate& update);
    Wait emitFetch(StepPlan& plan, std::optional<Wait> bufferReader);
    void emitFirstFetches(StepPlan& plan);
    Status emitWork(StepPlan& plan, std::span<const WorkItem> order, bool training);
    Wait emitLayer(StepPlan& plan, const WorkItem& item, StepIndex version);
    void emitFinishedGradient(StepPlan& plan, GroupId group);
    void emitScalars(StepPlan& plan, bool training);
    void cutForHost(const PendingUpdate& update);
    LateTile emitHostTile(StepPlan& plan, const PendingUpdate& tile);
    void emitUpload(StepPlan& plan, const Task& update, Wait updated);
    void emitStateFetch(StepPlan& plan, std::size_t tile);
    void emitStateUpdate(StepPlan& plan, std::size_t tile);
    std::optional<Wait> sendOfOccupant(GroupId group, int slots) const;

    // What a step updates, and after which norm: plan_builder_updates.cpp
    Status keepNorm(const StepSpec& spec, BuiltStep& out) const;
    void emitUpdates(StepPlan& plan);
    void listHostTiles(const StepPlan& plan, GroupId group);
    void listStateTiles(GroupId group);
    void emitFirstStateFetches(StepPlan& plan, std::size_t firstTile);
    void emitStayingUpdate(StepPlan& plan, GroupId group);
    void emitTiles(StepPlan& plan, std::size_t firstHost, std::size_t firstVisit);
    void leavePending(Carry& out) const;
    bool holdsUploads() const;
    bool holdsUploads(GroupId group) const;
    void emitHeldUpload(StepPlan& plan, const LateTile& tile);
    void emitEagerUpdates(StepPlan& plan, GroupId group);
    void emitGroupScalars(StepPlan& plan, GroupId group);
    void emitEagerEnd(StepPlan& plan);

    // What lives on the host: plan_builder_stream.cpp
    bool streams(GroupId group) const;
    std::uint8_t bringWeights(StepPlan& plan, GroupId group, StepIndex version);
    void emitWeightFetch(StepPlan& plan, std::size_t slot, GroupId group, StepIndex version);
    std::span<const LateTile> lateTilesOf(GroupId group) const;
    void beginGroup(StepPlan& plan, GroupId group);
    std::optional<Wait> updateBefore(GroupId group, std::int64_t first, std::int64_t end) const;
    BoundarySlot& boundarySlot(const StepPlan& plan, int boundary, MicroBatch micro);
    std::optional<Wait>& savedBoundary(const StepPlan& plan, int boundary, MicroBatch micro);
    bool isSaved(const StepPlan& plan, int boundary) const;
    std::int32_t boundaryTile(const StepPlan& plan, int boundary, MicroBatch micro) const;
    std::optional<Wait> bringBoundary(StepPlan& plan, const WorkItem& item);
    void leaveBoundary(StepPlan& plan, const WorkItem& item, Wait done);

    // Activations of blocks that the host keeps: plan_builder_activations.cpp
    bool takesTurns(const StepPlan& plan, GroupId group) const;
    ActivationSet& activationSet(const StepPlan& plan, const Task& task);
    std::optional<Wait>& savedActivations(const StepPlan& plan, const Task& task);
    std::optional<Wait> bringActivations(StepPlan& plan, const Task& work);
    void leaveActivations(StepPlan& plan, const Task& work, Wait done);

    // What lives on disk: plan_builder_disk.cpp
    // State comes to a slot, whose number it puts into `update`; nothing where it is in memory.
    std::optional<Wait> emitRead(StepPlan& plan, Task& update);
    void emitWrite(StepPlan& plan, const Task& update, Wait updated);
    // What the update gets from the device; the last of it.
    std::optional<Wait> emitSends(StepPlan& plan, const Task& update);
    Wait emitSend(StepPlan& plan, const Task& send);
    void emitSpills(StepPlan& plan, GroupId group, Wait finished);
    std::optional<Wait> bringTile(StepPlan& plan, Task& fetch);
    std::int16_t nextBoundaryStage(const StepPlan& plan);
    Wait emitBoundaryWrite(StepPlan& plan, const Task& save, Wait saved);
    Wait emitBoundaryRead(StepPlan& plan, Task& load, std::optional<Wait> written);
    const DiskCuts& disk() const noexcept { return m_disk[m_follows ? 1 : 0]; }
    const DiskRange& tileAt(const Task& task) const;
    Stage& stageOf(const Task& task) { return m_stages[static_cast<std::size_t>(task.stage)]; }
    std::optional<Wait>& tileWait(std::vector<std::optional<Wait>>& of, const Task& task);

    // Windows: plan_builder_window.cpp
    Status finishWindowPlan(const Feedback& last, BuiltStep& out);
    bool closesWindow(const StepPlan& plan) const;
    int bankOf(std::int64_t window) const;
    std::int32_t tilesUntil(const StepPlan& plan) const;
    Task makePart(TaskKind kind, Lane lane, GroupId group, StepIndex version) const;
    void emitWindowStart(StepPlan& plan, Carry& out);
    void emitAccumulates(StepPlan& plan, StepIndex version, int bank, int before);
    bool sumsOnDevice(const StepPlan& plan) const;
    void emitDeviceSums(StepPlan& plan);
    void emitSumOfWindow(StepPlan& plan, StepIndex version, int bank);
    void emitWindowNorm(StepPlan& plan, StepIndex version, int bank);
    void emitTileUpdate(StepPlan& plan, std::size_t tile, StepIndex version, int bank);
    void emitTileUpload(StepPlan& plan, std::size_t tile, StepIndex version, int bank);
    void emitPackedGradient(StepPlan& plan, GroupId group);
    void emitUrgentUpdates(StepPlan& plan);
    void emitWindowEnd(StepPlan& plan, Carry& out);
    void emitScalarsAfter(StepPlan& plan, Part part);
    void emitWindowInStep(StepPlan& plan);
    void emitSelection(StepPlan& plan, Carry& out);
    void leaveWindow(const StepPlan& plan, Carry& out);

    const ModelShape& m_shape;
    const Budget m_budget;
    const Feedback m_chosen;
    const OffloadPolicy& m_policy;
    const std::vector<GroupPlacement> m_placements;
    std::array<DiskCuts, 2> m_disk; // of steps with one norm; of those whose updates follow
    const bool m_byColumns;
    const bool m_streams; // weights of some group
    Layout m_training;
    Layout m_evaluation;
    StepForecaster m_forecaster;

    DiskSends m_sends; // of the second

    // Of the plan being built.
    bool m_follows = false;
    Carry m_in; // a copy, so that `in` may be part of `out`
    TaskClocks m_clocks;
    std::vector<GroupState> m_groups;
    std::vector<Wait> m_fetches; // by micro-batch
    std::vector<Wait> m_candidates;
    std::vector<StateTile> m_stateTiles;    // of this step, in the order of their updates
    std::vector<PendingUpdate> m_hostTiles; // the same
    std::optional<Wait> m_scalars;
    std::vector<WeightSlot> m_weightSlots;
    std::vector<BoundarySlot> m_boundarySlots;
    std::vector<std::optional<Wait>> m_savedBoundaries; // the copies on the host or on disk
    std::vector<ActivationSet> m_activationSets;
    std::vector<std::optional<Wait>> m_savedActivations; // the copies on the host
    std::vector<LateTile> m_lateTiles;                   // by group, then first element
    std::vector<LateTile> m_heldUploads;                 // in the order of the updates
    std::vector<PendingUpdate> m_dueTiles;         // of weights on disk, until they are fetched
    std::vector<Stage> m_stages;                   // by Task::stage
    std::vector<std::optional<Wait>> m_tileWrites; // by tile on disk, of this step
    std::vector<std::optional<Wait>> m_tileSpills; // the same, of gradients
    std::size_t m_tilesRead = 0;
    std::size_t m_weightsRead = 0;
    std::size_t m_spilled = 0;
    std::size_t m_boundariesMoved = 0;
    bool m_holdsUploads = false;
    bool m_reselects = false;
    std::optional<Wait> m_hostReader;               // of scalars, the last
    std::vector<std::optional<Wait>> m_tileUpdates; // by tile of the window
    std::array<std::optional<Wait>, kUploadSlots> m_scatters;
    std::size_t m_uploads = 0;
};

} // namespace mr
