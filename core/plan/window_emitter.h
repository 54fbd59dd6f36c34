// WindowEmitter: the tasks of policies that split gradients by columns and let the host work in
// windows.
//
// A step packs the host's columns of each gradient and sends them; the host adds them to the sum of
// the window at the beginning of the next step. Or the device adds them, once the step's norm is
// known, and sends the sum at the beginning of the next window, beside its forward. Once a window
// is complete the host makes one update of it, either at the end of its last step or beside the
// next window, a slice in every step, and then the result is uploaded during the last backward of
// that window. So no task outlives its step: state that spans steps is data in the Carry (why:
// README).
//
// Threads    One owner.
// Ownership  Layout and emitters are lent.

#pragma once

#include "core/plan/disk_emitter.h"
#include "core/plan/gradient_emitter.h"
#include "core/plan/plan_writer.h"
#include "core/plan/step_layout.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mr {

class WindowEmitter
{
public:
    WindowEmitter(PlanWriter& writer, const StepLayout& layout, DiskEmitter& disk,
        const GradientEmitter& gradients)
        : m_writer(writer)
        , m_layout(layout)
        , m_disk(disk)
        , m_gradients(gradients)
    {
    }

    // Once the plan has its answers. `reselects`: columns change owner at the end of the step.
    Status begin(bool reselects);

    // Before the first layer: sums gradients that have landed, and makes a slice of the job in
    // flight.
    void start(Carry& out);
    // Packs the gradient of a group after its backward.
    void packGradient(GroupId group);
    // Behind the last layer: norms, updates of urgent columns, and the carry of the window.
    void end(Carry& out);

private:
    const WindowLayout& window() const noexcept { return m_layout.window; }
    const GroupAnswers& answers() const { return m_writer.plan().answers.front(); }
    const Carry& in() const noexcept { return m_writer.in(); }
    StepIndex step() const noexcept { return m_writer.plan().step; }
    bool closesWindow() const;
    bool sumsOnDevice() const;
    int bankOf(std::int64_t number) const;
    std::int32_t tilesUntil() const;
    // A task about the complement.
    Task make(TaskKind kind, Lane lane, GroupId group, StepIndex version) const;
    void accumulateOnHost(StepIndex version, int bank, int before);
    void accumulateOnDevice();
    void sendSum(StepIndex version, int bank);
    void joinNorm(StepIndex version, int bank);
    void updateTile(std::size_t tile, StepIndex version, int bank);
    void uploadTile(std::size_t tile, StepIndex version, int bank);
    void updateUrgent();
    void sendScalars(Part part);
    void finishInStep();
    void selectColumns(Carry& out);
    void leave(Carry& out) const;

    PlanWriter& m_writer;
    const StepLayout& m_layout;
    DiskEmitter& m_disk;
    const GradientEmitter& m_gradients;

    // State of the plan being built.
    bool m_reselects = false;
    std::optional<Wait> m_scalars;
    std::optional<Wait> m_hostReader;               // last reader of scalars
    std::vector<std::optional<Wait>> m_accumulated; // by group: adds the gradient sent before
    std::vector<std::optional<Wait>> m_tileUpdates; // by tile of the window
    std::size_t m_uploads = 0;
};

} // namespace mr
