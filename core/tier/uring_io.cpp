#include "core/tier/uring_io.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace mr {
namespace {

constexpr std::uint64_t kWakeTag = std::uint64_t{1} << 40;

class UringIo final : public DiskIo
{
public:
    UringIo(std::unique_ptr<UringRing> ring, std::vector<int> descriptors)
        : m_ring(std::move(ring))
        , m_descriptors(std::move(descriptors))
        // One place is the poll's, one liburing's own timeout on kernels before 5.11.
        , m_capacity(m_ring->completions - 2)
    {
    }

    ~UringIo() override;
    UringIo(const UringIo&) = delete;
    UringIo& operator=(const UringIo&) = delete;

    std::string_view name() const noexcept override { return "io_uring"; }
    std::size_t capacity() const noexcept override { return m_capacity; }
    bool submit(const DiskRequest& request) noexcept override;
    int flush() noexcept override;
    int reap(std::span<DiskCompletion> out, std::chrono::microseconds limit) noexcept override;
    void wake() noexcept override;

private:
    int partOf(const DiskRequest& request) const noexcept;
    void armWake() noexcept;
    int take(std::span<DiskCompletion> out) noexcept;

    std::unique_ptr<UringRing> m_ring;
    std::vector<int> m_descriptors;
    std::size_t m_capacity;
    std::size_t m_inFlight = 0;
    bool m_wakeArmed = false;
};

// The owner has reaped everything unless the ring broke. Then the kernel may still be writing into
// memory that is about to be freed: waits for completions that still come.
UringIo::~UringIo()
{
    constexpr int kMostRounds = 100;
    std::array<DiskCompletion, 64> ignored;
    for (int i = 0; i < kMostRounds && m_inFlight > 0; ++i)
        (void)reap(ignored, std::chrono::milliseconds(20));
}

// The registered buffer a request lies in whole, or -1.
int UringIo::partOf(const DiskRequest& request) const noexcept
{
    const std::vector<iovec>& parts = m_ring->parts;
    const auto after = std::ranges::upper_bound(parts, static_cast<void*>(request.memory), {},
        [](const iovec& part) { return part.iov_base; });
    if (after == parts.begin())
        return -1;
    const iovec& part = *std::prev(after);
    const std::byte* end = static_cast<const std::byte*>(part.iov_base) + part.iov_len;
    return request.memory + request.bytes <= end
               ? static_cast<int>(std::distance(parts.begin(), after)) - 1
               : -1;
}

// Never more in flight than completions have room, so none can be lost (5.5).
bool UringIo::submit(const DiskRequest& request) noexcept
{
    if (m_inFlight == m_capacity)
        return false;
    io_uring_sqe* sqe = io_uring_get_sqe(&m_ring->ring);
    if (!sqe)
        return false;
    const int file =
        m_ring->fixedFiles ? request.file : m_descriptors[static_cast<std::size_t>(request.file)];
    const int part = partOf(request);
    if (request.op == DiskOp::Read && part >= 0)
        io_uring_prep_read_fixed(sqe, file, request.memory, request.bytes, request.offset, part);
    else if (request.op == DiskOp::Read)
        io_uring_prep_read(sqe, file, request.memory, request.bytes, request.offset);
    else if (part >= 0)
        io_uring_prep_write_fixed(sqe, file, request.memory, request.bytes, request.offset, part);
    else
        io_uring_prep_write(sqe, file, request.memory, request.bytes, request.offset);
    if (m_ring->fixedFiles)
        io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
    sqe->user_data = request.tag;
    ++m_inFlight;
    return true;
}

// Busy means: reap and come again. It is no error.
int softened(int result) noexcept
{
    const bool again =
        result == -EAGAIN || result == -EBUSY || result == -EINTR || result == -ETIME;
    return again || result > 0 ? 0 : result;
}

int UringIo::flush() noexcept
{
    return io_uring_sq_ready(&m_ring->ring) == 0 ? 0 : softened(io_uring_submit(&m_ring->ring));
}

void UringIo::armWake() noexcept
{
    if (m_wakeArmed)
        return;
    io_uring_sqe* sqe = io_uring_get_sqe(&m_ring->ring);
    if (!sqe)
        return; // the next reap() arms it; until then its limit holds
    io_uring_prep_poll_add(sqe, m_ring->wakeDescriptor, POLLIN);
    sqe->user_data = kWakeTag;
    m_wakeArmed = true;
}

// Waits in the kernel by EXT_ARG where there is, else by a timeout request; liburing knows.
int UringIo::reap(std::span<DiskCompletion> out, std::chrono::microseconds limit) noexcept
{
    armWake();
    __kernel_timespec time{};
    time.tv_sec = limit.count() / 1'000'000;
    time.tv_nsec = limit.count() % 1'000'000 * 1000;
    io_uring_cqe* first = nullptr;
    const int result =
        softened(io_uring_submit_and_wait_timeout(&m_ring->ring, &first, 1, &time, nullptr));
    const int count = take(out);
    return count > 0 ? count : result;
}

int UringIo::take(std::span<DiskCompletion> out) noexcept
{
    int count = 0;
    unsigned seen = 0;
    unsigned head = 0;
    io_uring_cqe* cqe = nullptr;
    io_uring_for_each_cqe(&m_ring->ring, head, cqe)
    {
        if (static_cast<std::size_t>(count) == out.size())
            break;
        ++seen;
        if (cqe->user_data == kWakeTag) {
            std::uint64_t wakes = 0;
            (void)!::read(m_ring->wakeDescriptor, &wakes, sizeof(wakes));
            m_wakeArmed = false;
        } else if (cqe->user_data != LIBURING_UDATA_TIMEOUT) {
            out[static_cast<std::size_t>(count++)] = {cqe->user_data, cqe->res};
        }
    }
    io_uring_cq_advance(&m_ring->ring, seen);
    m_inFlight -= static_cast<std::size_t>(count);
    return count;
}

void UringIo::wake() noexcept
{
    const std::uint64_t one = 1;
    (void)!::write(m_ring->wakeDescriptor, &one, sizeof(one));
}

} // namespace

UringRing::~UringRing()
{
    if (open)
        io_uring_queue_exit(&ring);
    if (wakeDescriptor >= 0)
        ::close(wakeDescriptor);
}

std::unique_ptr<DiskIo> makeUringIo(std::unique_ptr<UringRing> ring, std::vector<int> descriptors)
{
    return std::make_unique<UringIo>(std::move(ring), std::move(descriptors));
}

} // namespace mr
