#include "core/step/run_window.h"

#include <algorithm>

namespace mr {

RunWindow::RunWindow(Device& device, RunMemory& memory, const ParamTable& table,
    BlockingCopier& link, DiskTasks* disk, Stream& stream, LinkBytes& traffic)
    : m_device(device)
    , m_memory(*memory.window)
    , m_stream(stream)
    , m_rows(memory, disk)
    , m_copier(device, memory, m_rows, link, stream, traffic)
    , m_steps(device, memory, table, m_copier, traffic)
    , m_updates(memory, table, m_rows)
    , m_ownership(m_memory, m_rows, m_copier)
    , m_master(memory, m_rows, m_copier, link, stream)
    , m_checkpoint(memory, m_rows, m_steps, m_updates, link, stream)
{
}

Status RunWindow::prepare()
{
    m_ownership.reserve();
    const auto clear = [&](std::byte* data, std::int64_t bytes) {
        return data && bytes > 0
                   ? m_device.ops().fill({vectorView(data, DType::F32, bytes / 4), 0.0F}, m_stream)
                   : Status();
    };
    const auto compute = static_cast<std::int64_t>(sizeOf(m_memory.compute()));
    for (std::int32_t g = 0; g < m_memory.groupCount(); ++g) {
        const GroupId id{g};
        const WindowGroup& group = m_memory.group(id);
        const GroupCut& cut = m_memory.cut(id);
        MR_TRY(clear(group.state, 12 * cut.dense));
        MR_TRY(clear(group.sums, 4 * cut.dense));
        MR_TRY(clear(group.deviceSums, 4 * cut.packed));
        MR_TRY(clear(group.energies, 8 * cut.columns));
        std::fill_n(group.hostSums,
            m_memory.bankBytes(id) * static_cast<std::size_t>(m_memory.layout().banks),
            std::byte{0});
        if (group.landed)
            std::fill_n(group.landed, static_cast<std::size_t>(compute * cut.packed), std::byte{0});
    }
    MR_TRY(m_copier.clearScratch());
    return m_copier.uploadLists();
}

} // namespace mr
