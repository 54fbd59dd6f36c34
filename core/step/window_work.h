// WindowWork: a job of the update pool for a window: adds gradients, joins the norm or updates
// tiles.
//
// Threads    Set by the engine thread before the job is submitted, run by the pool until its gate
//            opens. The jobs of a run follow each other, so a bank has one writer.
// Ownership  Borrows all it points to.
// Errors     none; a gradient or norm that is not finite leaves weights as they are.

#pragma once

#include "core/device/ops.h"
#include "core/optim/complement_update.h"
#include "core/optim/host_updater.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

namespace mr {

// The state of one bank of sums.
struct WindowBank {
    int gradients = 0;  // finite ones in the sum; engine thread, between steps
    int applied = 0;    // the closed window's update divides by this; 0: no update
    float scale = 1.0F; // clip factor / applied
};

// Rows of a weight that one piece of work is about: whole groups of compact state.
std::size_t pieceRows(std::size_t cols) noexcept;

struct AddGradient {
    float* sum = nullptr;
    const std::byte* gradient = nullptr;
    DType type = DType::BF16;
    std::size_t count = 0;
    bool isFirst = false;
    const StepScalars* scalars = nullptr; // from the gradient's step
    float* normBlocks = nullptr;          // may be null
};

// The part of a window's norm that is in a sum the device made.
struct SquareSum {
    const std::byte* sum = nullptr;
    DType type = DType::BF16;
    std::size_t count = 0;
    float* normBlocks = nullptr; // null: nothing is clipped, and there is nothing to do
};

struct CloseWindow {
    WindowBank* bank = nullptr;
    const StepScalars* scalars = nullptr; // from the window's last step
    int before = 0;                       // finite gradients in the sum
    bool addsLast = false;                // and the last step's as well, if finite
    // Null: the window is one step, or nothing is clipped.
    const StepScalars* urgent = nullptr;
    std::span<const float> normBlocks;
    double clipNorm = 0.0;
    bool isOneStep = false;
};

struct UpdateTile {
    ComplementRows rows;
    WindowBank* bank = nullptr;
    AdamwFactors factors;
};

class WindowWork final : public HostWork
{
public:
    std::variant<AddGradient, SquareSum, CloseWindow, UpdateTile> what;

    std::size_t open() noexcept override;
    void run(std::size_t piece) noexcept override;

private:
    bool m_isFinite = true;
};

} // namespace mr
