// StopOnSignal: SIGINT, SIGTERM and SIGHUP stop a run. Opening ends at once; a step is finished and
// saved. A second SIGINT or SIGTERM ends the program. A closed terminal sends SIGHUP, often twice
// and beside a SIGTERM, so SIGHUP never counts as the first or the second; under nohup, which
// ignores it, it stops nothing.
//
// Threads    Made and destroyed by the main thread before and after all others.
// Ownership  The engine is lent between watch() and end().

#pragma once

#include "core/run/engine.h"

#include <atomic>
#include <csignal>
#include <mutex>
#include <string_view>
#include <thread>

namespace mr::app {

class StopOnSignal
{
public:
    StopOnSignal();

    bool isSeen() const noexcept { return m_isSeen; }
    // Stops it at once if the signal has come already.
    void watch(Engine& engine);
    void end();

private:
    void run(const std::stop_token& stop);
    void pass();
    void sayOnce(std::string_view what);

    sigset_t m_set{};    // all that are waited for
    sigset_t m_deadly{}; // the second one of these ends the program
    std::atomic<bool> m_isSeen = false;
    std::mutex m_mutex;
    Engine* m_engine = nullptr; // guarded by m_mutex
    bool m_isSaid = false;      // guarded by m_mutex
    std::jthread m_thread;      // last: joined before the members that it uses go
};

} // namespace mr::app
