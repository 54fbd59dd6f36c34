#include "core/base/parallel.h"
#include "support/test_room.h"

#include <QTest>

#include <atomic>
#include <new>
#include <numeric>

namespace mr::test::tst_parallel {

class TestParallel : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    // Plain ints: an item that ran twice, or a result seen too early, is also a race for
    // ThreadSanitizer.
    void everyItemRunsOnceAndIsSeenAfterwards()
    {
        for (const int threads : {1, 2, 4}) {
            ThreadPool pool(threads, "test");
            for (int round = 0; round < 200; ++round) {
                std::vector<int> ran(static_cast<std::size_t>(round % 37));
                pool.parallelFor(static_cast<std::int64_t>(ran.size()),
                    [&](std::int64_t i) { ran[static_cast<std::size_t>(i)] += 1; });
                QVERIFY(std::all_of(ran.begin(), ran.end(), [](int n) { return n == 1; }));
            }
        }
    }

    void aWorkerNumberIsUsedByOneThreadAtATime()
    {
        ThreadPool pool(4, "test");
        std::vector<std::int64_t> sums(4);
        constexpr std::int64_t kItems = 2000;
        pool.parallelFor(kItems, [&](std::int64_t i, int worker) {
            sums[static_cast<std::size_t>(worker)] += i; // a race if two threads shared it
        });
        QCOMPARE(
            std::accumulate(sums.begin(), sums.end(), std::int64_t{0}), kItems * (kItems - 1) / 2);
    }

    void twoCallersTakeTurns()
    {
        ThreadPool pool(2, "test");
        int shared = 0; // touched only inside a call, by its one item
        const auto caller = [&] {
            for (int i = 0; i < 500; ++i)
                pool.parallelFor(1, [&](std::int64_t) { ++shared; });
        };
        {
            const std::jthread other(caller);
            caller();
        }
        QCOMPARE(shared, 1000);
    }

    void whatAnItemThrowsReachesTheCaller()
    {
        for (const int threads : {1, 3}) {
            ThreadPool pool(threads, "test");
            for (int round = 0; round < 20; ++round)
                QVERIFY_THROWS_EXCEPTION(std::bad_alloc, pool.parallelFor(50, [&](std::int64_t i) {
                    if (i % 7 == round % 7)
                        throw std::bad_alloc();
                }));
            std::atomic<int> ran = 0;
            pool.parallelFor(50, [&](std::int64_t) { ++ran; });
            QCOMPARE(ran.load(), 50);
        }
    }

    void nothingToDoIsNothing()
    {
        ThreadPool pool(2, "test");
        bool ran = false;
        pool.parallelFor(0, [&](std::int64_t) { ran = true; });
        QVERIFY(!ran);
    }

    void sleepingWorkersWakeAgain()
    {
        ThreadPool pool(3, "test");
        std::atomic<int> ran = 0;
        for (int i = 0; i < 20; ++i) {
            // Longer than workers spin, shorter than anybody notices.
            const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
            while (std::chrono::steady_clock::now() < until)
                std::this_thread::yield();
            pool.parallelFor(8, [&](std::int64_t) { ++ran; });
        }
        QCOMPARE(ran.load(), 160);
    }
};

MR_TEST(TestParallel)

} // namespace mr::test::tst_parallel

#include "tst_parallel.moc"
