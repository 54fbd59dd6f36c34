// GradientEmitter: rounds and sends a group's gradient once all micro-batches are in it, and adds
// it to the norms.
//
// Threads    One owner.
// Ownership  Writer and disk are lent.

#pragma once

#include "core/plan/disk_emitter.h"
#include "core/plan/plan_writer.h"

#include <optional>

namespace mr {

class GradientEmitter
{
public:
    GradientEmitter(PlanWriter& writer, DiskEmitter& disk)
        : m_writer(writer)
        , m_disk(disk)
    {
    }

    void begin()
    {
        m_scalars.reset();
        m_isJoined = false;
    }

    // Rounds it, sends the host's part and adds its norm, unless that is joined.
    void finish(GroupId group);
    // The norm of all groups, known before their updates.
    void joinNorm();
    bool isJoined() const noexcept { return m_isJoined; }
    // Joins the norm, unless it is or in an evaluation, and sends it with the losses.
    void sendScalars();
    // The norm of one group, unless that of all is joined.
    void sendScalars(GroupId group);

    // The last send of scalars.
    const std::optional<Wait>& scalars() const noexcept { return m_scalars; }
    // The send of the block that had the group's slot before.
    std::optional<Wait> sendOfOccupant(GroupId group, int slots) const;

private:
    PlanWriter& m_writer;
    DiskEmitter& m_disk;
    std::optional<Wait> m_scalars;
    bool m_isJoined = false;
};

} // namespace mr
