// The devices a test can use on this machine.

#pragma once

#include "core/device/device.h"

#include <memory>
#include <string>
#include <vector>

namespace mr::test {

struct NamedDevice {
    std::string name; // "cpu", "cpu-threaded", "cuda"
    std::shared_ptr<Device> device;
};

// Always has "cpu" (inline) and "cpu-threaded". Has "cuda" if it was built in and a GPU answers.
// With MR_REQUIRE_GPU=1 in the environment a missing GPU is a failure, not an absence.
const std::vector<NamedDevice>& devices();

} // namespace mr::test
