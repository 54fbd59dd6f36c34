// FailingGate: something fails between two looks of the waiting thread, and that opens the gate.

#pragma once

#include "core/base/failure_latch.h"
#include "core/device/device.h"

#include <cstdint>

namespace mr::test {

class FailingGate final : public Gate
{
public:
    explicit FailingGate(FailureLatch& latch)
        : m_latch(latch)
    {
    }

    void open(std::uint64_t /*generation*/) noexcept override {}
    bool isOpen(std::uint64_t /*generation*/) const noexcept override
    {
        m_latch.fail(Status::error(ErrorKind::Io, "failed meanwhile"));
        return true;
    }

private:
    FailureLatch& m_latch;
};

} // namespace mr::test
