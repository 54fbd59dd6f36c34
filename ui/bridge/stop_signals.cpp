#include "bridge/stop_signals.h"

#include <QSocketNotifier>

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace mr::ui {

namespace {

// Socket that the handler writes to; a handler may use nothing that is not lock-free.
std::atomic<int> g_toObject = -1;
static_assert(std::atomic<int>::is_always_lock_free);

} // namespace

StopSignals::StopSignals(QObject* parent)
    : QObject(parent)
{
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, m_sockets.data()) != 0)
        return;
    g_toObject = m_sockets[0];
    m_notifier = new QSocketNotifier(m_sockets[1], QSocketNotifier::Read, this);
    connect(m_notifier, &QSocketNotifier::activated, this, &StopSignals::announce);
    struct sigaction action = {};
    action.sa_handler = &StopSignals::handle;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
        (void)::sigaction(kSignals[i], nullptr, &m_before[i]);
        if (m_before[i].sa_handler != SIG_IGN)
            (void)::sigaction(kSignals[i], &action, nullptr);
    }
}

StopSignals::~StopSignals()
{
    if (m_sockets[0] < 0)
        return;
    for (std::size_t i = 0; i < kSignals.size(); ++i)
        (void)::sigaction(kSignals[i], &m_before[i], nullptr);
    g_toObject = -1;
    delete m_notifier; // before the socket that it watches
    for (const int socket : m_sockets)
        (void)::close(socket);
}

// Runs on any thread, at any point of its code: only async-signal-safe calls.
void StopSignals::handle(int)
{
    const int before = errno;
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    for (const int signal : kSignals) {
        struct sigaction now = {};
        (void)::sigaction(signal, nullptr, &now);
        if (now.sa_handler == &StopSignals::handle)
            (void)::sigaction(signal, &usual, nullptr);
    }
    const char one = 1;
    if (::write(g_toObject, &one, sizeof one) < 0) {
        // There is nobody to tell any more: the next signal ends the program.
    }
    errno = before;
}

void StopSignals::announce()
{
    char taken = 0;
    if (::read(m_sockets[1], &taken, sizeof taken) > 0)
        emit stopAsked();
}

} // namespace mr::ui
