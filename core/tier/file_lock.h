// Finds the program that holds a lock of flock(2), and whether it is still there.
//
// A killed program keeps its locks until the system has ended its io_uring requests, which takes a
// moment.
//
// Threads  Any.
// Errors   None: values that the system does not tell are 0.

#pragma once

#include <sys/types.h>

#include <cstdint>

namespace mr {

pid_t lockHolder(std::uint64_t inode);

// Has it ended? True also while nobody has waited for it yet (a zombie).
bool isGone(pid_t program);

} // namespace mr
