#include "app/cli/stop_on_signal.h"

#include <cstdio>

namespace mr::app {

StopOnSignal::StopOnSignal()
{
    sigemptyset(&m_set);
    sigaddset(&m_set, SIGINT);
    sigaddset(&m_set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &m_set, nullptr); // before any thread is made: all inherit it
    m_thread = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void StopOnSignal::run(const std::stop_token& stop)
{
    const timespec tick{0, 100'000'000};
    while (!stop.stop_requested()) {
        if (sigtimedwait(&m_set, nullptr, &tick) < 0)
            continue;
        pass();
        pthread_sigmask(SIG_UNBLOCK, &m_set, nullptr);
        while (!stop.stop_requested()) // this thread takes the second one, and the program ends
            (void)nanosleep(&tick, nullptr);
        return;
    }
}

void StopOnSignal::pass()
{
    const std::lock_guard lock(m_mutex);
    m_isSeen = true;
    if (!m_engine) {
        (void)std::fputs("millrace: stopping\n", stderr);
        return;
    }
    (void)std::fputs("millrace: stopping after this step, then saving\n", stderr);
    m_engine->requestStop();
}

void StopOnSignal::watch(Engine& engine)
{
    const std::lock_guard lock(m_mutex);
    m_engine = &engine;
    if (m_isSeen)
        engine.requestStop();
}

void StopOnSignal::end()
{
    const std::lock_guard lock(m_mutex);
    m_engine = nullptr;
}

} // namespace mr::app
