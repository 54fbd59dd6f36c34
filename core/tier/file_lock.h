// Who has a lock of flock(2), and whether that program is still there.
//
// One that was killed keeps its locks until the system has ended what its io_uring was asked for,
// which takes a moment.
//
// Threads  Any.
// Errors   None: what the system does not tell is 0.

#pragma once

#include <sys/types.h>

#include <cstdint>

namespace mr {

pid_t lockHolder(std::uint64_t inode);

// Has it ended? Also of one that nobody has waited for yet.
bool isGone(pid_t program);

} // namespace mr
