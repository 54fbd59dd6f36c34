// Settings of the environment under which a launch waits for the work before it.
//
// A stream that waits at a gate then holds the engine thread, and with it everybody. So the engine
// waits for gates itself, as it does without stream memory operations.
//
// Source   CUDA C++ Programming Guide, "CUDA Environment Variables".
// Threads  Any; reads the environment.

#pragma once

#include <string>

namespace mr::gpu {

// One sentence that names the setting and its effect; empty: launches are asynchronous.
std::string serialisedLaunches();

} // namespace mr::gpu
