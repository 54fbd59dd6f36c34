#include "core/base/failure_latch.h"
#include "support/test_room.h"

#include <QTest>

#include <thread>

namespace mr::test::tst_failure_latch {

class TestFailureLatch : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void theFirstErrorWinsAndWakesEverybodyOnce()
    {
        FailureLatch latch;
        int woken = 0;
        const auto first = latch.onFailure([&] { ++woken; });
        const auto second = latch.onFailure([&] { ++woken; });
        QVERIFY(!latch.failed());
        QVERIFY(latch.status().ok());

        latch.fail(Status::error(ErrorKind::Io, "disk"));
        latch.fail(Status::error(ErrorKind::Internal, "a consequence"));

        QVERIFY(latch.failed());
        QCOMPARE(latch.status().kind(), ErrorKind::Io);
        QCOMPARE(latch.status().message(), std::string("disk"));
        QCOMPARE(woken, 2);
    }

    void registeringAfterAFailureWakesAtOnce()
    {
        FailureLatch latch;
        latch.fail(Status::error(ErrorKind::Io, "disk"));
        bool woken = false;
        const auto late = latch.onFailure([&] { woken = true; });
        QVERIFY(woken);
    }

    void aForgottenRegistrationIsNotCalled()
    {
        FailureLatch latch;
        bool woken = false;
        {
            auto registration = latch.onFailure([&] { woken = true; });
            const auto moved = std::move(registration);
        }
        latch.fail(Status::error(ErrorKind::Io, "disk"));
        QVERIFY(!woken);
    }

    void manyThreadsMayFailTogether()
    {
        FailureLatch latch;
        int woken = 0;
        const auto registration = latch.onFailure([&] { ++woken; });
        {
            std::vector<std::jthread> threads;
            for (int i = 0; i < 4; ++i)
                threads.emplace_back([&] { latch.fail(Status::error(ErrorKind::Io, "x")); });
        }
        QCOMPARE(woken, 1);
    }
};

MR_TEST(TestFailureLatch)

} // namespace mr::test::tst_failure_latch

#include "tst_failure_latch.moc"
