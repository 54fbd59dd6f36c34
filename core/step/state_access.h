// StateAccess: weights and optimizer state between steps, from and to wherever the policy keeps
// them.
//
// Threads    Engine thread; not during a step. Blocks.
// Ownership  Borrows all it is given.
// Errors     Those of the device and of the disk.
// Units      Values of a plane (state_codec.h) and elements as named.

#pragma once

#include "core/model/master.h"
#include "core/step/blocking_copier.h"
#include "core/step/disk_tasks.h"
#include "core/step/run_memory.h"

#include <millrace/status.h>

#include <cstdint>
#include <span>

namespace mr {

class StateAccess
{
public:
    // `disk` may be null where nothing is on disk.
    StateAccess(const RunMemory& memory, BlockingCopier& copier, DiskTasks* disk);

    DType compute() const noexcept { return m_memory.compute(); }
    // Values of a state part from `first` on.
    Status read(GroupId group, StatePart part, std::int64_t first, std::span<std::byte> out);
    Status write(GroupId group, StatePart part, std::int64_t first, std::span<const std::byte> in);
    // Averages of a light optimizer, from value `first` on.
    Status readAverages(GroupId group, std::int64_t first, std::span<std::byte> out);
    Status writeAverages(GroupId group, std::int64_t first, std::span<const std::byte> in);
    // Puts the group's master, from element `first` on (a multiple of kCutElements), into the
    // planes that keep it, by the run's codec.
    Status writeMaster(GroupId group, std::int64_t first, const MasterView& master);
    // Makes the weights that ops read from the same.
    Status uploadWeights(GroupId group, std::int64_t first, const MasterView& master);
    // Puts weights that no step changes into their home, as far as that is memory: on disk they
    // are already. Precondition: the group has such.
    Status writeFrozen(GroupId group, std::int64_t first, const MasterView& master);
    // Puts bytes into the home of packed weights.
    Status writePacked(GroupId group, std::size_t at, std::span<const std::byte> bytes);
    // Elements of the group's frozen weights from `first` on, in the compute type. Precondition:
    // they are neither packed nor on disk, as in a run of some layers.
    Status readFrozen(GroupId group, std::int64_t first, std::span<std::byte> out);

private:
    Status upload(std::byte* weights, std::int64_t first, const MasterView& master);
    std::size_t inMemory(
        GroupId group, StatePart part, std::int64_t first, std::size_t bytes) const;

    const RunMemory& m_memory;
    BlockingCopier& m_copier;
    DiskTasks* m_disk;
};

} // namespace mr
