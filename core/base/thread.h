// Named threads that report their errors: nothing thrown leaves a thread.
//
// Threads  startThread() from any thread; the returned jthread is joined by its owner.
// Errors   A body returns a Status; std::bad_alloc becomes OutOfMemory and any other exception
//          Internal. `onError` gets any Status that is not ok, on the thread that failed.

#pragma once

#include <millrace/status.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace mr {

struct ThreadOptions {
    std::string name;   // the system shows its first 15 characters
    int firstCore = -1; // run on physical cores [firstCore, firstCore + coreCount) of
    int coreCount = 1;  // physicalCores(); -1: on any
};

// The body runs with denormals kept (FTZ and DAZ off), under any settings of the creating thread.
std::jthread startThread(ThreadOptions options, std::function<Status(const std::stop_token&)> body,
    std::function<void(const Status&)> onError);

// Runs `body` with the same translation of exceptions, on this thread.
Status guarded(const std::string& what, const std::function<Status()>& body);

// Loads the library that unwinds a thread's stack, which the system else loads when a thread ends;
// a program that is out of memory then would be ended for it. Call once, at the start.
void loadUnwinder() noexcept;

// IEEE arithmetic on this thread: AdamW's bits are promised with denormals.
void keepDenormals() noexcept;

// One processor number per physical core this process may use, ascending. Never empty.
std::vector<int> physicalCores();

// Keeps the calling thread on physicalCores()[first, first + count). False, and no change, where
// there are no such cores or the system refuses: pinning is a matter of speed only.
bool pinToCores(int first, int count) noexcept;

} // namespace mr
