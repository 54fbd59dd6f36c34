// DiskStore: the disk thread, which moves tiles between files and memory while the device computes.
//
// One job moves a whole tile: it waits for an event or a gate, becomes requests of at most 1 MiB,
// and opens its own gate when the last byte is there. A sibling of HostUpdater (core/optim).
//
// Threads  open(), submit(), waitFor(), destruction: engine thread. The rest: any. Its own thread
//          is "disk-0".
// Order    Within a queue jobs start in the order of submission, the next while the one before is
//          still moving, and their gates open in that order, so the generations of one gate ascend
//          if all its jobs are of one queue. Among queues: Weights, Boundaries, StateIn, Out.
//          Requests are not ordered: a job that reads what another writes must wait for its gate.
// Ownership Owns the open files. Events, gates and memory of a job stay the caller's and must live,
//          unchanged, until the gate is open at its generation and, after an error, until the store
//          is gone. Nothing is allocated after open().
// Errors   The first goes to the latch: Io, DataCorrupt (bytes read are not those written),
//          Internal (a tile read before it was written, or while it is). It names file, offset and
//          tile, and says the way on. Then nothing more is started; once nothing is in flight the
//          gates of the remaining jobs open, each in its turn, without a byte moved.
// Lifetime The destructor finishes the submitted jobs, or drops them if the latch has failed, and
//          joins. The events and gates that jobs wait for must therefore be able to pass.
// Units    Bytes; times are nanoseconds on the steady clock.

#pragma once

#include "core/base/failure_latch.h"
#include "core/tier/disk_engine.h"
#include "core/tier/disk_jobs.h"
#include "core/tier/disk_layout.h"
#include "core/tier/disk_tiles.h"
#include "core/tier/disk_verdict.h"
#include "core/tier/scratch_file.h"

#include <array>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace mr {

struct DiskOptions {
    DiskEngine engine = DiskEngine::Auto;
    DiskVerify verify = DiskVerify::Sampled;
    int threads = kDiskThreads; // used by the thread engine only
    // At most kDiskRequestBytes; less where the block layer would split a request.
    std::uint32_t requestBytes = kDiskRequestBytes;
    std::uint64_t readBytesInFlight = 16 * std::uint64_t{kDiskRequestBytes}; // per file
    std::uint64_t writeBytesInFlight = 16 * std::uint64_t{kDiskRequestBytes};
    // Memory that jobs read into and write from, to register with io_uring; other memory works too.
    std::vector<std::span<std::byte>> memory = {};
    UringCalls uringCalls = systemUringCalls();
    // Put between the store and its engine, on the disk thread: a test's faults.
    std::function<std::unique_ptr<DiskIo>(std::unique_ptr<DiskIo>)> wrapIo = {};
};

// Totals since open().
struct DiskStats {
    std::array<std::uint64_t, kDiskQueues> bytesRead{}; // by DiskQueue; whole pages
    std::array<std::uint64_t, kDiskQueues> bytesWritten{};
    std::int64_t busyNs = 0; // something was in flight
    std::uint64_t mostInFlightBytes = 0;
    std::uint64_t retries = 0;       // requests that were asked again, or for their rest
    std::uint64_t verifiedTiles = 0; // reads with a compared hash
};

class DiskStore
{
public:
    struct Files {
        std::vector<ScratchFile> scratch;  // its beginning is overwritten (the engine's self-test)
        std::vector<DiskFile> others = {}; // behind these, to be read alone
    };
    // `files` are those of `layout`, in order, at least of its sizes.
    static Result<std::unique_ptr<DiskStore>> open(
        DiskLayout layout, Files files, FailureLatch& latch, DiskOptions options = {});
    ~DiskStore();
    DiskStore(const DiskStore&) = delete;
    DiskStore& operator=(const DiskStore&) = delete;

    // Blocks while DiskJobRing::kMostJobs jobs of that queue are not done. A job that cannot be
    // is an error like any other.
    void submit(const DiskJob& job);

    // Blocks until a submitted job opens `gate` at `generation`; for a device with streams that
    // cannot wait. Returns the latch's error.
    Status waitFor(const Gate& gate, std::uint64_t generation);

    const DiskLayout& layout() const noexcept { return m_layout; }
    // Name of the engine, the reason for it, and the way to a better one.
    const std::string& about() const noexcept { return m_about; }
    std::string engineName() const { return m_engineName; }
    std::uint32_t requestBytes() const noexcept { return m_requestBytes; }
    DiskStats stats() const noexcept;

    // Files that are read alone; in order.
    const std::vector<DiskFile>& others() const noexcept { return m_owned.others; }
    // Io, if somebody deleted, cut or replaced a file.
    Status checkFiles() const;

private:
    DiskStore(DiskLayout layout, Files files, FailureLatch& latch, DiskOptions options);
    Status checkFit() const;
    Status openEngine();
    void threadMain(std::promise<Status> opened);

    // Constant after open().
    const DiskLayout m_layout;
    const Files m_owned;
    std::vector<const DiskFile*> m_files; // all of them
    FailureLatch& m_latch;
    DiskOptions m_options;
    DiskNames m_names;
    std::uint32_t m_requestBytes = kDiskRequestBytes;
    std::string m_about;
    std::string m_engineName;

    std::unique_ptr<DiskIo> m_io; // made, used and destroyed on the disk thread; wake() by any
    DiskShared m_shared;

    std::jthread m_thread; // last: it uses everything above
};

} // namespace mr
