#include "core/step/blocking_copier.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mr {

BlockingCopier::BlockingCopier(Device& device, std::span<std::byte> staging, const Streams& streams,
    std::unique_ptr<Event> done)
    : m_device(device)
    , m_staging(staging)
    , m_streams(streams)
    , m_done(std::move(done))
{
}

Result<std::unique_ptr<BlockingCopier>> BlockingCopier::create(
    Device& device, std::span<std::byte> staging, const Streams& streams)
{
    MR_ASSIGN(auto done, device.createEvent());
    return std::unique_ptr<BlockingCopier>(
        new BlockingCopier(device, staging, streams, std::move(done)));
}

Status BlockingCopier::finish(Stream& stream)
{
    MR_TRY(stream.record(*m_done));
    m_device.submit();
    return m_done->wait();
}

Status BlockingCopier::toDevice(std::byte* to, std::span<const std::byte> from)
{
    for (std::size_t done = 0; done < from.size(); done += m_staging.size()) {
        const std::size_t bytes = std::min(m_staging.size(), from.size() - done);
        std::memcpy(m_staging.data(), from.data() + done, bytes);
        MR_TRY(m_streams.in.copy(to + done, m_staging.first(bytes)));
        MR_TRY(finish(m_streams.in));
    }
    return {};
}

Status BlockingCopier::toHost(std::span<std::byte> to, const std::byte* from)
{
    return toHost(to, from, m_streams.out);
}

Status BlockingCopier::toHost(std::span<std::byte> to, const std::byte* from, Stream& stream)
{
    for (std::size_t done = 0; done < to.size(); done += m_staging.size()) {
        const std::size_t bytes = std::min(m_staging.size(), to.size() - done);
        MR_TRY(stream.copy(m_staging.data(), {from + done, bytes}));
        MR_TRY(finish(stream));
        std::memcpy(to.data() + done, m_staging.data(), bytes);
    }
    return {};
}

} // namespace mr
