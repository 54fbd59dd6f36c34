// FullDisk: a folder on a disk that runs full, or fails, when a test says so.
//
// Link mr_test_full_disk (it stands before write(), fsync(), fdatasync(), fallocate() and statvfs()
// of the C library) into the test that needs it, and no other. Files outside of the folder are left
// alone.
//
// Threads  Any. One object at a time.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mr::test {

class FullDisk
{
public:
    explicit FullDisk(std::string folder);
    ~FullDisk();
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;

    // statvfs() reports this many bytes free, however much is written.
    void sayFree(std::int64_t bytes);
    // After so many more bytes write() fails with `error`.
    void failAfter(std::int64_t bytes, int error);
    void heal();

    std::uint64_t bytesWritten() const noexcept; // so far
    std::uint64_t timesAsked() const noexcept;   // for free space
    // The files and folders that were brought to the disk, in their order.
    std::vector<std::string> synced() const;
};

} // namespace mr::test
