// Notifier: messages of the desktop (org.freedesktop.Notifications), with a way into the window.
//
// They are quiet: none is modal, asks for anything or stays for ever, and a newer one about a run
// takes the place of the older. Where no service answers, nothing is shown and no error reported.
//
// Threads    UI thread; calls to the bus are not waited for.
// Ownership  Keeps a copy of the connection.

#pragma once

#include <QDBusConnection>
#include <QHash>
#include <QObject>
#include <QString>

class QDBusPendingCallWatcher;

namespace mr::ui {

class Notifier final : public QObject
{
    Q_OBJECT

public:
    explicit Notifier(const QDBusConnection& bus, QObject* parent = nullptr);

    // `runId` 0: about none in particular.
    void show(qint64 runId, const QString& title, const QString& text);

signals:
    void openRequested(qint64 runId);

private slots:
    void onAction(uint id, const QString& action);
    void onClosed(uint id, uint reason);

private:
    QDBusConnection m_bus;
    QHash<uint, qint64> m_runs; // by id of a shown message
};

} // namespace mr::ui
