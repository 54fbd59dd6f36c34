// StopSignals: SIGTERM, SIGINT and SIGHUP as a signal of Qt, so that a run is saved before the
// program ends.
//
// The first one is announced and gives all three their default action back: a second one ends the
// program at once. One that was ignored when the program started (nohup) stays ignored.
//
// Threads    UI thread; at most one object at a time. The handler only writes to a socket.
// Ownership  Its sockets. The destructor restores the actions it found.
// Errors     None: without sockets the signals keep their default action.

#pragma once

#include <QObject>

#include <array>
#include <csignal>

class QSocketNotifier;

namespace mr::ui {

class StopSignals final : public QObject
{
    Q_OBJECT

public:
    explicit StopSignals(QObject* parent = nullptr);
    ~StopSignals() override;

signals:
    void stopAsked();

private:
    static constexpr std::array<int, 3> kSignals = {SIGTERM, SIGINT, SIGHUP};

    static void handle(int signal);
    void announce();

    std::array<int, 2> m_sockets = {-1, -1}; // written by the handler, read here
    QSocketNotifier* m_notifier = nullptr;
    std::array<struct sigaction, kSignals.size()> m_before{};
};

} // namespace mr::ui
