// Inputs of blocks in 8 bits: how far a number is from what comes back, that a second time changes
// nothing, and groups with a NaN or an infinity.

#include "core/device/cpu/cpu_device.h"
#include "core/device/ops.h"
#include "support/test_room.h"

#include <QTest>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace mr::test::tst_input_codes {

namespace {

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kCols = 300; // the last group of a row has 44

float asBf16(float x)
{
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7FFFU + ((bits >> 16) & 1U)) & 0xFFFF0000U);
}

// Each row is ten times as large as the one before.
std::vector<float> waves()
{
    std::vector<float> x;
    float size = 1e-3F;
    for (std::int64_t row = 0; row < kRows; ++row, size *= 10.0F)
        for (std::int64_t col = 0; col < kCols; ++col)
            x.push_back(asBf16(size * std::sin(0.7F * static_cast<float>(col * col + row))));
    return x;
}

std::vector<std::uint16_t> halves(const std::vector<float>& x)
{
    std::vector<std::uint16_t> bits;
    for (const float value : x)
        bits.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
    return bits;
}

template <typename T>
TensorView matrixOf(std::vector<T>& values, DType type, std::int64_t cols)
{
    return matrixView(reinterpret_cast<std::byte*>(values.data()), type, kRows, cols);
}

struct Coded {
    std::vector<std::int8_t> codes = std::vector<std::int8_t>(kRows * kCols);
    std::vector<float> scales = std::vector<float>(kRows * codedGroups(kCols));
};

// One device, which computes inline on the memory of the host.
class Codec
{
public:
    template <typename T>
    Coded encode(std::vector<T> x, DType type)
    {
        Coded out;
        m_ok = m_ok &&
               m_device->ops()
                   .encodeInputs({matrixOf(x, type, kCols), matrixOf(out.codes, DType::I8, kCols),
                                     matrixOf(out.scales, DType::F32, codedGroups(kCols))},
                       *m_stream)
                   .ok();
        return out;
    }

    template <typename T>
    std::vector<T> decode(Coded coded, DType type)
    {
        std::vector<T> out(kRows * kCols);
        m_ok = m_ok && m_device->ops()
                           .decodeInputs({matrixOf(coded.codes, DType::I8, kCols),
                                             matrixOf(coded.scales, DType::F32, codedGroups(kCols)),
                                             matrixOf(out, type, kCols)},
                               *m_stream)
                           .ok();
        return out;
    }

    bool isOk() const { return m_ok; }
    Ops& ops() { return m_device->ops(); }
    Stream& stream() { return *m_stream; }

private:
    std::unique_ptr<Device> m_device = makeCpuDevice(std::size_t{1} << 20);
    std::unique_ptr<Stream> m_stream = std::move(m_device->createStream("test")).value();
    bool m_ok = true;
};

std::size_t groupOf(std::size_t i)
{
    const std::size_t row = i / kCols;
    return row * static_cast<std::size_t>(codedGroups(kCols)) + i % kCols / kCodedColumns;
}

} // namespace

class TestInputCodes : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    // Half a code, and the roundings of scale and product; the largest of a group comes back.
    void anElementIsWithinHalfACode()
    {
        const std::vector<float> x = waves();
        const Coded coded = m_codec.encode(x, DType::F32);
        const std::vector<float> back = m_codec.decode<float>(coded, DType::F32);
        QVERIFY(m_codec.isOk());
        std::vector<float> largest(coded.scales.size());
        std::vector<int> codes(coded.scales.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            float& group = largest[groupOf(i)];
            group = std::max(group, std::abs(x[i]));
            codes[groupOf(i)] = std::max(codes[groupOf(i)], std::abs(int{coded.codes[i]}));
        }
        for (std::size_t i = 0; i < x.size(); ++i) {
            const float a = largest[groupOf(i)];
            QVERIFY(std::abs(back[i] - x[i]) <= a / 254.0F * 1.0001F);
            QCOMPARE(coded.scales[groupOf(i)], a / 127.0F);
            QCOMPARE(codes[groupOf(i)], 127);
        }
    }

    void aSecondTimeChangesNothing()
    {
        const Coded coded = m_codec.encode(halves(waves()), DType::BF16);
        const auto once = m_codec.decode<std::uint16_t>(coded, DType::BF16);
        const Coded again = m_codec.encode(once, DType::BF16);
        QVERIFY(again.codes == coded.codes);
        QVERIFY(again.scales == coded.scales);
        QVERIFY(m_codec.decode<std::uint16_t>(again, DType::BF16) == once);
        QVERIFY(once != halves(waves()));
        QVERIFY(m_codec.isOk());
    }

    void aGroupThatIsNotFiniteIsNan()
    {
        std::vector<float> x = waves();
        x[3] = std::numeric_limits<float>::quiet_NaN();
        x[kCols + 130] = -std::numeric_limits<float>::infinity();
        for (std::size_t col = 256; col < kCols; ++col) // the last group of a row
            x[2 * kCols + col] = 0.0F;
        const Coded coded = m_codec.encode(x, DType::F32);
        const std::vector<float> back = m_codec.decode<float>(coded, DType::F32);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const std::size_t group = groupOf(i);
            const bool isNan = group == 0 || group == 4;
            QCOMPARE(std::isnan(back[i]), isNan);
            if (isNan || group == 8) {
                QCOMPARE(int{coded.codes[i]}, 0);
            }
        }
        QCOMPARE(coded.scales[8], 0.0F);
        QVERIFY(std::isnan(coded.scales[0]) && std::isnan(coded.scales[4]));
        QVERIFY(m_codec.isOk());
    }

    void bytesAreThoseOfCodesAndScales()
    {
        QCOMPARE(codedBytes(64, 128).scales, std::size_t{8192});
        QCOMPARE(codedBytes(64, 128).all, std::size_t{8192 + 256});
        QCOMPARE(codedBytes(1, 129).scales, std::size_t{256});
        QCOMPARE(codedBytes(1, 129).all, std::size_t{512});
        QCOMPARE(codedBytes(100, 384).all, std::size_t{38400 + 1280});
    }

    void otherShapesAreRefused()
    {
        std::vector<float> x(kRows * kCols);
        Coded coded;
        const Status status = m_codec.ops().encodeInputs(
            {matrixOf(x, DType::F32, kCols), matrixOf(coded.codes, DType::I8, kCols),
                matrixOf(coded.scales, DType::F32, 2)},
            m_codec.stream());
        QVERIFY(!status.ok());
        QVERIFY2(status.message().find("encodeInputs: scales is F32 (5, 2), want F32 (5, 3)") !=
                     std::string::npos,
            status.message().c_str());
    }

private:
    Codec m_codec;
};

MR_TEST(TestInputCodes)

} // namespace mr::test::tst_input_codes

#include "tst_input_codes.moc"
