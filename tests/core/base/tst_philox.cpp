#include "core/base/philox.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_philox {

class TestPhilox : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    // The known answers of Random123 (kat_vectors, philox4x32 10).
    void agreesWithThePublishedVectors()
    {
        const std::array<std::uint32_t, 4> zeros{
            0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U};
        const std::array<std::uint32_t, 4> ones{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU};
        const std::array<std::uint32_t, 4> digits{
            0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U};
        QVERIFY(philox(0, 0, 0) == zeros);
        QVERIFY(philox(UINT64_MAX, UINT64_MAX, UINT64_MAX) == ones);
        QVERIFY(philox(0x299f31d0a4093822U, 0x85a308d3243f6a88U, 0x0370734413198a2eU) == digits);
    }
};

MR_TEST(TestPhilox)

} // namespace mr::test::tst_philox

#include "tst_philox.moc"
