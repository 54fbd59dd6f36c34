// SingleInstance: one window per history. A program that finds another one at work asks it to come
// to the front, and can then end.
//
// A lock of the system's says whether there is another, so one that crashed leaves nothing behind
// that counts; its socket is replaced.
//
// Threads    UI thread. claim() blocks up to its timeout; call it before the event loop.
// Ownership  The lock and the socket, until the destructor.
// Errors     Where no lock can be had (a folder that cannot be written) it behaves as if alone.
// Units      Milliseconds.

#pragma once

#include <QObject>
#include <QString>

class QLocalServer;
class QLocalSocket;

namespace mr::ui {

class SingleInstance final : public QObject
{
    Q_OBJECT

public:
    enum class Found {
        Nobody,   // this is the one from here on
        Answered, // another came to the front
        Silent,   // there is another, and it did not answer in time
    };
    Q_ENUM(Found)

    // `folder`: of this user and this session, on a local disk. `database`: any spelling of it.
    SingleInstance(const QString& folder, const QString& database, QObject* parent = nullptr);
    ~SingleInstance() override;

    Found claim(int timeoutMs);

signals:
    void raiseAsked();

private:
    bool lock();
    void listen();
    bool askOther(int timeoutMs) const;
    void onConnection();
    void onRequest(QLocalSocket* socket);

    QString m_base; // path of lock and socket, without suffix
    int m_lock = -1;
    QLocalServer* m_server = nullptr;
};

} // namespace mr::ui
