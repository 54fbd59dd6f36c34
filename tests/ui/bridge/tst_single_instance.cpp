// A second program over one history brings the first one's window to the front; one over another
// history is its own.

#include "bridge/single_instance.h"
#include "support/test_room.h"

#include <QDir>
#include <QEventLoop>
#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>

namespace mr::test::tst_single_instance {

using mr::ui::SingleInstance;
using Found = SingleInstance::Found;

namespace {

constexpr int kLongMs = 60'000; // never waited for

} // namespace

class TestSingleInstance : public QObject
{
    Q_OBJECT

private slots:

    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        QVERIFY(m_folder->isValid());
    }

    void theSecondAsksTheFirstToComeToTheFront()
    {
        SingleInstance first(m_folder->path(), database("history.db"));
        QSignalSpy raised(&first, &SingleInstance::raiseAsked);
        QCOMPARE(first.claim(0), Found::Nobody);

        const Found found = askFromOutside("sub/../history.db");

        QCOMPARE(raised.count(), 1);
        QCOMPARE(found, Found::Answered);
    }

    void anotherHistoryHasAWindowOfItsOwn()
    {
        SingleInstance first(m_folder->path(), database("history.db"));
        SingleInstance second(m_folder->path(), database("other.db"));

        QCOMPARE(first.claim(0), Found::Nobody);
        QCOMPARE(second.claim(0), Found::Nobody);
    }

    void whenTheFirstHasEndedTheNextTakesItsPlace()
    {
        auto first = std::make_unique<SingleInstance>(m_folder->path(), database("history.db"));
        QCOMPARE(first->claim(0), Found::Nobody);
        SingleInstance second(m_folder->path(), database("history.db"));
        QCOMPARE(second.claim(0), Found::Silent); // it cannot answer: this thread is busy

        first.reset();

        QCOMPARE(second.claim(0), Found::Nobody);
    }

    void whatACrashLeftIsNoWindow()
    {
        QString socketPath;
        {
            SingleInstance crashed(m_folder->path(), database("history.db"));
            QCOMPARE(crashed.claim(0), Found::Nobody);
            const QStringList sockets =
                QDir(m_folder->path()).entryList({"*.socket"}, QDir::System);
            QCOMPARE(sockets.size(), 1);
            socketPath = m_folder->filePath(sockets.front());
        }
        leaveDeadSocket(socketPath);
        QVERIFY(!QDir(m_folder->path()).entryList({"*.lock"}).isEmpty());

        SingleInstance next(m_folder->path(), database("history.db"));
        QCOMPARE(next.claim(0), Found::Nobody);

        QCOMPARE(askFromOutside("history.db"), Found::Answered);
    }

    void aFolderThatCannotBeUsedIsNoReasonNotToStart()
    {
        SingleInstance instance("/proc/nowhere", database("history.db"));

        QCOMPARE(instance.claim(0), Found::Nobody);
    }

private:
    QString database(const char* name) const { return m_folder->filePath(QLatin1String(name)); }

    // Result of claim() in a second program, played by a thread, while this one's events go on.
    Found askFromOutside(const char* name) const
    {
        Found found = Found::Nobody;
        QEventLoop untilAnswered;
        std::thread other([this, name, &found, &untilAnswered] {
            SingleInstance second(m_folder->path(), database(name));
            found = second.claim(kLongMs);
            QMetaObject::invokeMethod(&untilAnswered, &QEventLoop::quit, Qt::QueuedConnection);
        });
        untilAnswered.exec();
        other.join();
        return found;
    }

    // A socket that nobody listens to any more.
    static void leaveDeadSocket(const QString& path)
    {
        QFile::remove(path);
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        const QByteArray name = QFile::encodeName(path);
        QVERIFY(static_cast<std::size_t>(name.size()) < sizeof address.sun_path);
        std::copy(name.begin(), name.end(), address.sun_path);
        const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        QVERIFY(socket >= 0);
        QCOMPARE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        QCOMPARE(::close(socket), 0);
        QVERIFY(QFile::exists(path));
    }

    std::unique_ptr<QTemporaryDir> m_folder;
};

MR_TEST_WITH_APP(TestSingleInstance)

} // namespace mr::test::tst_single_instance

#include "tst_single_instance.moc"
