// Rig of the tests of choices in a running run: a device that knows the step, and the recorded
// options.

#pragma once

#include "core/run/run_rig.h"
#include "core/save/run_files.h"
#include "support/wrapped_device.h"

#include <functional>
#include <string>
#include <string_view>

namespace mr::test {

// Calls `at` at the end of every step, and refuses one allocation for lack of memory on request.
class SteppedDevice final : public WrappedDevice
{
public:
    using WrappedDevice::WrappedDevice;

    Status onCall(const DeviceCall& call) override
    {
        if (refusals == 0 || call.what != "allocate" || --refusals > 0)
            return {};
        return Status::error(ErrorKind::OutOfMemory, "taken by somebody else");
    }

    MemoryUsage memoryUsage() const noexcept override
    {
        if (at)
            at(++m_steps);
        return WrappedDevice::memoryUsage();
    }

    std::function<void(int step)> at;
    int refusals = 0; // the allocation with this number, from 1, is refused

private:
    mutable int m_steps = 0;
};

inline int count(const std::string& text, std::string_view word)
{
    int found = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
        ++found;
    return found;
}

// Option of a run's policy, from the record; the history must say the same.
inline std::string optionOf(const RunRig& rig, const Outcome& run, const std::string& option)
{
    const RunSpec kept = readRunSpec(run.dir.string()).value();
    if (rig.row(run.id).configJson != toJson(kept))
        return "the history has other options than the record";
    const auto found = kept.policyOptions.find(option);
    return found == kept.policyOptions.end() ? "" : found->second;
}

} // namespace mr::test
