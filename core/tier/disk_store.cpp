#include "core/tier/disk_store.h"

#include "core/base/futex.h"
#include "core/base/thread.h"
#include "core/tier/disk_pump.h"
#include "core/tier/scratch_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

namespace mr {
namespace {

// How soon a failure is seen where no word changes.
constexpr std::chrono::milliseconds kPoll{20};

// The block layer splits larger requests; a disk that takes less than this is not worth obeying.
constexpr std::uint64_t kLeastRequestBytes = std::uint64_t{64} << 10;

std::uint32_t requestBytesFor(DiskFiles files, std::uint64_t wanted)
{
    std::uint64_t bytes = std::min<std::uint64_t>(wanted, kDiskRequestBytes);
    for (const DiskFile* file : files)
        if (auto folder = inspectScratchFolder(file->path().parent_path()); folder.ok())
            bytes = std::min(
                bytes, std::max(kLeastRequestBytes, folder.value().requestBytes.value_or(bytes)));
    return static_cast<std::uint32_t>(
        std::max(bytes / kDiskPageBytes, std::uint64_t{1}) * kDiskPageBytes);
}

} // namespace

DiskStore::DiskStore(DiskLayout layout, Files files, FailureLatch& latch, DiskOptions options)
    : m_layout(std::move(layout))
    , m_owned(std::move(files))
    , m_latch(latch)
    , m_options(std::move(options))
{
    m_names.layout = &m_layout;
    for (const ScratchFile& file : m_owned.scratch)
        m_files.push_back(&file);
    for (const DiskFile& file : m_owned.others)
        m_files.push_back(&file);
    for (const DiskFile* file : m_files)
        m_names.paths.push_back(file->path().string());
    m_requestBytes = requestBytesFor(m_files, m_options.requestBytes);
}

Result<std::unique_ptr<DiskStore>> DiskStore::open(
    DiskLayout layout, Files files, FailureLatch& latch, DiskOptions options)
{
    auto store = std::unique_ptr<DiskStore>(
        new DiskStore(std::move(layout), std::move(files), latch, std::move(options)));
    MR_TRY(store->checkFit());
    std::promise<Status> opened;
    std::future<Status> result = opened.get_future();
    DiskStore* self = store.get();
    store->m_thread = startThread(
        {"disk-0"},
        [self, promise = std::make_shared<std::promise<Status>>(std::move(opened))](
            const std::stop_token&) -> Status {
            self->threadMain(std::move(*promise));
            return {};
        },
        [self](const Status& status) { self->m_latch.fail(status); });
    MR_TRY(result.get());
    return store;
}

Status DiskStore::checkFit() const
{
    if (m_files.size() != m_layout.fileBytes.size() || m_files.size() > kMostDiskFiles)
        return Status::error(
            ErrorKind::Internal, fmt::format("disk store: {} files for a layout of {}, at most {}",
                                     m_files.size(), m_layout.fileBytes.size(), kMostDiskFiles));
    for (std::size_t i = 0; i < m_files.size(); ++i)
        if (m_files[i]->bytes() < m_layout.fileBytes[i])
            return Status::error(
                ErrorKind::Internal, fmt::format("{} has {} bytes, its layout {}", m_names.paths[i],
                                         m_files[i]->bytes(), m_layout.fileBytes[i]));
    return checkFiles();
}

// The kernel ties a ring to the thread that made it: so the disk thread chooses its engine itself.
void DiskStore::threadMain(std::promise<Status> opened)
{
    std::unique_ptr<DiskPump> pump;
    const Status status = guarded("opening the disk engine", [&]() -> Status {
        MR_TRY(openEngine());
        pump = std::make_unique<DiskPump>(DiskPumpParts{m_names, m_files, *m_io, m_latch, m_shared},
            DiskPumpLimits{m_requestBytes, m_options.readBytesInFlight,
                m_options.writeBytesInFlight, m_options.verify});
        return {};
    });
    opened.set_value(status);
    if (status.ok())
        pump->run();
    m_io.reset();
}

Status DiskStore::openEngine()
{
    MR_ASSIGN(auto choice,
        chooseDiskEngine(m_files, {m_options.engine, m_options.threads, m_options.memory},
            m_options.uringCalls));
    m_about = std::move(choice.about);
    m_io = std::move(choice.io);
    m_engineName = m_io->name();
    if (m_options.wrapIo)
        m_io = m_options.wrapIo(std::move(m_io));
    return {};
}

DiskStore::~DiskStore()
{
    m_shared.stopping.store(true, std::memory_order_release);
    // The thread looks again within a moment even where it was not woken; its engine is its own to
    // destroy, so nobody wakes it from here.
}

void DiskStore::submit(const DiskJob& job)
{
    assert(job.gate);
    DiskJobRing& ring = m_shared.rings[static_cast<std::size_t>(job.queue)];
    while (true) {
        const std::uint32_t retired = m_shared.retired.load(std::memory_order_acquire);
        if (ring.push(job))
            break;
        futexWait(m_shared.retired, retired, kPoll);
    }
    if (m_shared.sleeping.load(std::memory_order_seq_cst))
        m_io->wake();
}

Status DiskStore::waitFor(const Gate& gate, std::uint64_t generation)
{
    while (!m_latch.failed()) {
        const std::uint32_t retired = m_shared.retired.load(std::memory_order_relaxed);
        if (gate.isOpen(generation))
            break; // by the job, or since it failed meanwhile
        futexWait(m_shared.retired, retired, kPoll);
    }
    return m_latch.status();
}

DiskStats DiskStore::stats() const noexcept
{
    DiskStats stats;
    for (std::size_t i = 0; i < kDiskQueues; ++i) {
        stats.bytesRead[i] = m_shared.bytesRead[i].load(std::memory_order_relaxed);
        stats.bytesWritten[i] = m_shared.bytesWritten[i].load(std::memory_order_relaxed);
    }
    stats.busyNs = m_shared.busyNs.load(std::memory_order_relaxed);
    stats.mostInFlightBytes = m_shared.mostInFlightBytes.load(std::memory_order_relaxed);
    stats.retries = m_shared.retries.load(std::memory_order_relaxed);
    stats.verifiedTiles = m_shared.verifiedTiles.load(std::memory_order_relaxed);
    return stats;
}

Status DiskStore::checkFiles() const
{
    for (const DiskFile* file : m_files)
        MR_TRY(file->check());
    return {};
}

} // namespace mr
