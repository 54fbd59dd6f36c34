// ConstantTables: tables on the device that ops read and no step changes: rotary tables and the
// columns of a head.
//
// Threads    Engine thread; not during a step. Blocks.
// Ownership  Borrows all it is given.
// Errors     Those of the device.

#pragma once

#include "core/step/blocking_copier.h"
#include "core/step/run_memory.h"

#include <millrace/status.h>

#include <cstdint>

namespace mr {

class ConstantTables
{
public:
    ConstantTables(const RunMemory& memory, const ModelConfig& config, BlockingCopier& copier);

    // Rotary tables are those of the longest sequence there is room for.
    Status prepare();
    // They become those of sequences of so many tokens, where the model's depend on that. True:
    // they changed, and keys that were kept are of no use.
    Result<bool> turnFor(std::int64_t tokens);

private:
    Status copy();

    const RunMemory& m_memory;
    const ModelConfig& m_config;
    BlockingCopier& m_copier;
    std::int64_t m_turnedFor = 0; // tokens
};

} // namespace mr
