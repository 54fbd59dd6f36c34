// The texts of resources/torchrun, which the program carries.
//
// Threads  Constants.

#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace mr {

// Names in the folder of a job, and texts. README.md has places for figures of the run: @NAME@,
// @FROM@ and @STEPS@.
extern const std::array<std::pair<std::string_view, std::string_view>, 4> kJobFiles;

} // namespace mr
