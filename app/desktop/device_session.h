// A session together with the device it runs on: the workstation makes a device for each run.
//
// Threads  As Session::open(): call off the UI thread.
// Errors   Those of completeForMachine(), resolveSpec(), makeDevice() and Session::open().

#pragma once

#include <millrace/session.h>

#include <memory>
#include <string>

namespace mr::app {

// Borrows `store`, which must outlive the session.
Result<std::unique_ptr<Session>> openOnDevice(
    const RunSpec& spec, RunStore& store, Session::Listener listener, OpeningWatch watch);
Result<std::unique_ptr<Session>> resumeOnDevice(
    const std::string& runDir, RunStore& store, Session::Listener listener, OpeningWatch watch);

} // namespace mr::app
