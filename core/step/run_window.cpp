#include "core/step/run_window.h"

namespace mr {

RunWindow::RunWindow(Device& device, RunMemory& memory, const ParamTable& table,
    BlockingCopier& link, DiskTasks* disk, Stream& stream, LinkBytes& traffic)
    : m_memory(*memory.window)
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
    return m_copier.uploadLists();
}

} // namespace mr
