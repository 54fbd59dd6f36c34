#include "core/base/thread.h"
#include "support/test_room.h"

#include <QTest>

#include <pthread.h>

#include <array>
#include <new>
#include <stdexcept>
#include <system_error>

namespace mr::test::tst_thread {

namespace {

Status errorOf(std::function<Status(const std::stop_token&)> body)
{
    Status seen;
    startThread({"failing"}, std::move(body), [&](const Status& status) { seen = status; }).join();
    return seen;
}

} // namespace

class TestThread : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void whatIsThrownBecomesAStatus()
    {
        const Status memory =
            errorOf([](const std::stop_token&) -> Status { throw std::bad_alloc(); });
        const Status other =
            errorOf([](const std::stop_token&) -> Status { throw std::runtime_error("boom"); });
        const Status plain =
            errorOf([](const std::stop_token&) { return Status::error(ErrorKind::Io, "disk"); });
        const Status none = errorOf([](const std::stop_token&) { return Status(); });

        QCOMPARE(memory.kind(), ErrorKind::OutOfMemory);
        QCOMPARE(other.kind(), ErrorKind::Internal);
        QVERIFY(other.message().find("failing") != std::string::npos);
        QVERIFY(other.message().find("boom") != std::string::npos);
        QCOMPARE(plain.kind(), ErrorKind::Io);
        QVERIFY(none.ok());
    }

    void aSystemWithoutMoreThreadsSaysWhatToDo()
    {
        const Status status = errorOf([](const std::stop_token&) -> Status {
            throw std::system_error(
                std::make_error_code(std::errc::resource_unavailable_try_again));
        });

        QCOMPARE(status.kind(), ErrorKind::Internal);
        QVERIFY(status.message().find("use fewer threads") != std::string::npos);
    }

    void theThreadHasItsNameAndKeepsDenormals()
    {
        std::array<char, 16> name{};
        volatile float denormal = 1e-40F;
        float halved = 0.0F;
        startThread(
            {"a-name-that-is-long"},
            [&](const std::stop_token&) -> Status {
                pthread_getname_np(pthread_self(), name.data(), name.size());
                halved = denormal * 0.5F;
                return {};
            },
            nullptr)
            .join();
        QCOMPARE(std::string(name.data()), std::string("a-name-that-is-"));
        QVERIFY(halved > 0.0F);
    }

    void pinningToACoreThatIsNotThereChangesNothing()
    {
        QVERIFY(!physicalCores().empty());
        QVERIFY(!pinToCores(-1, 1));
        QVERIFY(!pinToCores(static_cast<int>(physicalCores().size()), 1));
        bool pinned = false;
        startThread(
            {"pinned"},
            [&](const std::stop_token&) -> Status {
                pinned = pinToCores(0, 1) && physicalCores().size() == 1;
                return {};
            },
            nullptr)
            .join();
        QVERIFY(pinned);
    }
};

MR_TEST(TestThread)

} // namespace mr::test::tst_thread

#include "tst_thread.moc"
