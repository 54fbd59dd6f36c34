#include "core/base/spsc_ring.h"
#include "support/test_room.h"

#include <QTest>

#include <thread>

namespace mr::test::tst_spsc_ring {

class TestSpscRing : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void aFullRingDropsAndCounts()
    {
        SpscRing<int> ring(3);
        for (int i = 0; i < 5; ++i)
            QCOMPARE(ring.push(i), i < 3);
        QCOMPARE(ring.dropped(), std::uint64_t{2});

        int value = -1;
        QVERIFY(ring.pop(value));
        QCOMPARE(value, 0);
        QVERIFY(ring.push(9));
        for (const int expected : {1, 2, 9}) {
            QVERIFY(ring.pop(value));
            QCOMPARE(value, expected);
        }
        QVERIFY(!ring.pop(value));
    }

    void valuesArriveInOrderAcrossThreads()
    {
        SpscRing<int> ring(16);
        constexpr int kValues = 20000;
        const std::jthread producer([&] {
            for (int i = 0; i < kValues;)
                if (ring.push(i))
                    ++i;
                else
                    std::this_thread::yield();
        });
        for (int expected = 0; expected < kValues;) {
            int value = -1;
            if (ring.pop(value))
                QCOMPARE(value, expected++);
            else
                std::this_thread::yield();
        }
    }
};

MR_TEST(TestSpscRing)

} // namespace mr::test::tst_spsc_ring

#include "tst_spsc_ring.moc"
