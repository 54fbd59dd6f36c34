#include "app/cli/stop_on_signal.h"

#include "app/cli/output.h"

namespace mr::app {
namespace {

bool isIgnored(int signal)
{
    struct sigaction action {
    };
    return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

} // namespace

StopOnSignal::StopOnSignal()
{
    sigemptyset(&m_deadly);
    sigaddset(&m_deadly, SIGINT);
    sigaddset(&m_deadly, SIGTERM);
    m_set = m_deadly;
    if (!isIgnored(SIGHUP)) // a signal that is blocked arrives even if it is ignored
        sigaddset(&m_set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &m_set, nullptr); // before any thread is made: all inherit it
    m_thread = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void StopOnSignal::run(const std::stop_token& stop)
{
    const timespec tick{0, 100'000'000};
    while (!stop.stop_requested()) {
        const int signal = sigtimedwait(&m_set, nullptr, &tick);
        if (signal < 0)
            continue;
        pass();
        if (signal == SIGHUP)
            continue;
        pthread_sigmask(SIG_UNBLOCK, &m_deadly, nullptr);
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
        sayOnce("stopping");
        return;
    }
    sayOnce("stopping after this step, then saving");
    m_engine->requestStop();
}

void StopOnSignal::sayOnce(std::string_view what)
{
    if (!m_isSaid)
        say(what);
    m_isSaid = true;
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
