#include "bridge/single_instance.h"

#include <QCryptographicHash>
#include <QDeadlineTimer>
#include <QFile>
#include <QLocalServer>
#include <QLocalSocket>
#include <QThread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

namespace mr::ui {

namespace {

const QByteArray kRaise = QByteArrayLiteral("raise\n");
const QByteArray kDone = QByteArrayLiteral("done\n");
constexpr int kNextTryMs = 20;
constexpr qint64 kMostRequestBytes = 64; // a longer request is none of ours

// Two spellings of a path are one history.
QByteArray keyOf(const QString& database)
{
    std::error_code error;
    const std::filesystem::path named = QFile::encodeName(database).toStdString();
    const std::filesystem::path absolute = std::filesystem::absolute(named, error);
    const std::filesystem::path real = std::filesystem::weakly_canonical(absolute, error);
    const std::string text = error ? absolute.string() : real.string();
    return QCryptographicHash::hash(QByteArray::fromStdString(text), QCryptographicHash::Sha256)
        .toHex()
        .left(16);
}

} // namespace

SingleInstance::SingleInstance(const QString& folder, const QString& database, QObject* parent)
    : QObject(parent)
    , m_base(folder + QStringLiteral("/millrace-") + QString::fromLatin1(keyOf(database)))
{
}

SingleInstance::~SingleInstance()
{
    delete m_server; // its socket goes before the lock: nobody else's is removed
    if (m_lock >= 0)
        (void)::close(m_lock);
}

SingleInstance::Found SingleInstance::claim(int timeoutMs)
{
    const QDeadlineTimer end(timeoutMs);
    do {
        if (lock()) {
            listen();
            return Found::Nobody;
        }
        if (askOther(static_cast<int>(end.remainingTime())))
            return Found::Answered;
        if (!end.hasExpired())
            QThread::msleep(kNextTryMs); // it is only starting, or has just ended
    } while (!end.hasExpired());
    return Found::Silent;
}

// True also where there can be none.
bool SingleInstance::lock()
{
    const QByteArray path = QFile::encodeName(m_base + QStringLiteral(".lock"));
    m_lock = ::open(path.constData(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (m_lock < 0)
        return true;
    if (::flock(m_lock, LOCK_EX | LOCK_NB) == 0)
        return true;
    (void)::close(m_lock);
    m_lock = -1;
    return false;
}

void SingleInstance::listen()
{
    const QString name = m_base + QStringLiteral(".socket");
    QLocalServer::removeServer(name); // left by a crashed program: the lock is ours
    m_server = new QLocalServer(this);
    m_server->setSocketOptions(QLocalServer::UserAccessOption);
    connect(m_server, &QLocalServer::newConnection, this, &SingleInstance::onConnection);
    (void)m_server->listen(name); // else nobody can ask, and a second program waits in vain
}

bool SingleInstance::askOther(int timeoutMs) const
{
    const QDeadlineTimer end(timeoutMs);
    const auto left = [&end] { return static_cast<int>(end.remainingTime()); };
    QLocalSocket socket;
    socket.connectToServer(m_base + QStringLiteral(".socket"));
    if (!socket.waitForConnected(left()))
        return false;
    socket.write(kRaise);
    while (socket.bytesAvailable() < kDone.size() && !end.hasExpired()) {
        if (!socket.waitForReadyRead(left()))
            break;
    }
    return socket.readAll() == kDone;
}

void SingleInstance::onConnection()
{
    while (QLocalSocket* socket = m_server->nextPendingConnection()) {
        connect(socket, &QLocalSocket::disconnected, socket, &QObject::deleteLater);
        connect(socket, &QLocalSocket::readyRead, this, [this, socket] { onRequest(socket); });
        onRequest(socket); // it may be there already
    }
}

void SingleInstance::onRequest(QLocalSocket* socket)
{
    if (!socket->canReadLine()) {
        if (socket->bytesAvailable() > kMostRequestBytes)
            socket->abort(); // not one of ours
        return;
    }
    if (socket->readLine(kMostRequestBytes) != kRaise)
        return socket->abort();
    emit raiseAsked();
    socket->write(kDone);
    socket->disconnectFromServer();
}

} // namespace mr::ui
