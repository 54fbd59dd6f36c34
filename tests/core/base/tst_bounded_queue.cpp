#include "core/base/bounded_queue.h"
#include "support/test_room.h"

#include <QTest>

#include <memory>
#include <thread>

namespace mr::test::tst_bounded_queue {

class TestBoundedQueue : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void handsValuesOutInOrderThroughASmallQueue()
    {
        BoundedQueue<std::unique_ptr<int>> queue(2);
        constexpr int kValues = 1000;
        const std::jthread producer([&] {
            for (int i = 0; i < kValues; ++i)
                if (!queue.push(std::make_unique<int>(i)))
                    return;
            queue.close();
        });

        int expected = 0;
        while (auto value = queue.pop())
            QCOMPARE(**value, expected++);

        QCOMPARE(expected, kValues);
    }

    void closingKeepsWhatIsInAndRefusesMore()
    {
        BoundedQueue<int> queue(2);
        QVERIFY(queue.push(1));

        queue.close();

        QVERIFY(queue.closed());
        QVERIFY(!queue.push(2));
        QCOMPARE(queue.pop(), std::optional<int>(1));
        QCOMPARE(queue.pop(), std::optional<int>());
    }

    void closingWakesAFullProducerAndAnEmptyConsumer()
    {
        BoundedQueue<int> full(1);
        BoundedQueue<int> empty(1);
        QVERIFY(full.push(1));
        bool accepted = true;
        bool got = true;
        std::jthread producer([&] { accepted = full.push(2); });
        std::jthread consumer([&] { got = empty.pop().has_value(); });

        full.close();
        empty.close();
        producer.join();
        consumer.join();

        QVERIFY(!accepted);
        QVERIFY(!got);
    }

    void tryPopDoesNotWait()
    {
        BoundedQueue<int> queue(1);
        QCOMPARE(queue.tryPop(), std::optional<int>());
        QVERIFY(queue.push(5));
        QCOMPARE(queue.tryPop(), std::optional<int>(5));
    }
};

MR_TEST(TestBoundedQueue)

} // namespace mr::test::tst_bounded_queue

#include "tst_bounded_queue.moc"
