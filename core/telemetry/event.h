// TraceEvent: one span of work or waiting, of one fixed size.
//
// Threads  A value; trivially copyable, so rings hold it by value.
// Units    Nanoseconds on the host's steady clock; bytes.

#pragma once

#include "core/plan/plan.h"

#include <cstdint>
#include <type_traits>

namespace mr {

// Kinds of recorded spans: tasks of a plan (TaskKind), and the work and waits beside them.
enum class SpanKind : std::uint8_t {
    Task,       // `task` says which
    Stall,      // Compute waited; `lane` and `task` are those of the work it waited for
    BatchWait,  // the engine waited for the data thread
    Checkpoint, // writing one
    Evaluation,
};

struct TraceEvent {
    SpanKind kind{};
    TaskKind task{};
    Lane lane{};
    std::uint8_t reserved = 0;
    std::int32_t group = -1;
    std::int32_t micro = -1;
    std::int32_t reserved2 = 0;
    StepIndex step = 0;
    std::int64_t beginNs = 0;
    std::int64_t endNs = 0;
    std::int64_t bytes = 0; // copied, 0 otherwise
};

static_assert(sizeof(TraceEvent) == 48 && std::is_trivially_copyable_v<TraceEvent>);

} // namespace mr
