// Memory that a kernel may touch, and what is wrong with how it touches it.
//
// Global memory is the host's: an address is a pointer, and only what was added may be read or
// written. Every byte knows whether it was written and which threads of this launch used it last.
//
// Found    Accesses outside an allocation or not aligned to their size; reads of what nobody
//          wrote; two threads that use a byte, one of them writing, with no barrier between; reads
//          of a copy that was not waited for.
// Threads  One at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace mr::ptx {

// A thread at a moment of a launch.
struct Moment {
    std::uint32_t block = 0;
    std::uint32_t barrier = 0; // barriers of the block so far
    std::uint32_t meeting = 0; // meetings of its whole warp so far
    std::uint32_t thread = 0;  // in its block
};

// The last thread that used a byte. blockPlusOne 0: nobody did.
struct Use {
    std::uint32_t blockPlusOne = 0;
    std::uint32_t barrier = 0;
    std::uint32_t meeting = 0;
    std::uint16_t thread = 0;
    bool isWholeWarp = false; // several lanes of the thread's warp
    bool isSeveral = false;   // several warps
};

struct Uses {
    Use writer;
    Use reader;
};

// Part of an allocation that a launch used; a byte counts once.
struct TouchedMemory {
    std::string name;
    std::size_t bytes = 0; // of the allocation
    std::size_t bytesRead = 0;
    std::size_t bytesWritten = 0;
    std::size_t sectorsRead = 0; // kSectorBytes each
    std::size_t sectorsWritten = 0;
};

// The history of some bytes, and the rules for them.
class Shadow
{
public:
    // `written`: all bytes have values.
    explicit Shadow(std::size_t bytes, bool written);

    void setWritten(std::size_t at, std::size_t bytes, bool written);
    void setInFlight(std::size_t at, std::size_t bytes, bool inFlight);
    // Is the access right? `wrong` says why it is not.
    bool read(std::size_t at, std::size_t bytes, const Moment& who, std::string& wrong);
    bool write(std::size_t at, std::size_t bytes, const Moment& who, std::string& wrong);
    void forgetUses();
    // Adds what this launch used.
    void addTouched(TouchedMemory& touched) const;

private:
    static constexpr std::size_t kPageBytes = 4096;
    static constexpr int kLargestGrain = 4; // 16 bytes; grains are powers of two

    // The bytes of a grain have one history. A page begins with the largest grains and splits them
    // when a smaller access comes.
    struct Grain {
        bool isWritten = false;
        bool isInFlight = false;
        Uses uses;
    };
    struct Page {
        int grain = kLargestGrain; // the logarithm of its bytes
        std::vector<Grain> grains;
    };

    // The grains of an access, which lies in one page because it is aligned to its size.
    std::span<Grain> grainsOf(std::size_t at, std::size_t bytes);
    static void split(Page& page, int grain);

    std::size_t m_bytes = 0;
    bool m_written = false; // the bytes of pages that no access has touched yet
    std::vector<Page> m_pages;
};

class GlobalMemory
{
public:
    // `written`: its bytes have values already.
    void add(const void* begin, std::size_t bytes, std::string name, bool written);
    // All that lies there.
    void remove(const void* begin, std::size_t bytes);
    void clear();
    void setWritten(const void* begin, std::size_t bytes);
    void beginLaunch();
    // Parts that the launch has used since beginLaunch().
    std::vector<TouchedMemory> touched() const;

    // Null and `wrong` says why; else the access is allowed and remembered.
    std::byte* reach(std::uint64_t address, std::size_t bytes, bool writes, const Moment& who,
        std::string& wrong);

private:
    struct Allocation {
        std::size_t bytes = 0;
        std::string name;
        Shadow shadow{0, false};
        bool used = false; // in this launch
    };
    std::map<std::uint64_t, Allocation> m_allocations; // by address
    std::map<std::uint64_t, Allocation>::iterator m_last = m_allocations.end();
};

} // namespace mr::ptx
