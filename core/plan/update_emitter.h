// UpdateEmitter: updates on the host, tile by tile, each with the upload of its new weights, and
// updates of state that stays on the device.
//
// Threads    One owner.
// Ownership  The other emitters are lent.

#pragma once

#include "core/plan/disk_emitter.h"
#include "core/plan/gradient_emitter.h"
#include "core/plan/plan_writer.h"

#include <cstddef>
#include <span>
#include <vector>

namespace mr {

// A tile that the host updates.
struct HostTile {
    Task update;
    Wait updated;
};

class UpdateEmitter
{
public:
    UpdateEmitter(PlanWriter& writer, DiskEmitter& disk, const GradientEmitter& gradients)
        : m_writer(writer)
        , m_disk(disk)
        , m_gradients(gradients)
    {
    }

    void begin();

    void update(const PendingUpdate& update);
    void updateOnDevice(const PendingUpdate& update);
    HostTile updateTile(const PendingUpdate& tile);
    void upload(const Task& update, Wait updated);

    // Cuts a host update into tiles, behind those that are listed.
    void list(const PendingUpdate& update);
    std::vector<PendingUpdate>& listed() noexcept { return m_listed; }

    // From now on uploads come when they are asked for.
    void holdUploads(bool holds) noexcept { m_holds = holds; }
    std::span<const HostTile> held() const noexcept { return m_held; }

    // The last late update, made in this step, of some of these elements.
    std::optional<Wait> lateUpdateOf(GroupId group, std::int64_t first, std::int64_t end) const;

private:
    PlanWriter& m_writer;
    DiskEmitter& m_disk;
    const GradientEmitter& m_gradients;
    std::vector<PendingUpdate> m_listed; // in the order of their updates
    // Host updates with an upload that comes later: late ones with the fetch of their layer, where
    // weights stream, and held ones at the end of the step.
    std::vector<HostTile> m_late; // by group, then first element
    std::vector<HostTile> m_held; // in the order of the updates
    bool m_holds = false;
};

} // namespace mr
