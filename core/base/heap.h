// Limits on the freed memory that the heap keeps.

#pragma once

namespace mr {

// The C library keeps freed memory for later: it raises the size from which blocks are pages of
// their own up to 32 MiB, and gives each thread a heap. Opening a run and checkpoints free blocks
// of MiBs that no step needs again; beside a plan that counts every byte they would be 25 MB. This
// gives them back. Nothing is allocated in a step, so it costs none of them time.
//
// Threads  Call it first, before any thread is started.
// Source   malloc: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_ARENA_MAX of mallopt(3).
void returnFreedMemory() noexcept;

} // namespace mr
