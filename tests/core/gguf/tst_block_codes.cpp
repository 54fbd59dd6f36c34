// Blocks compared byte by byte with those of ggml: the shared manifest, and goldens of
// tests/reference/gguf_blocks.py.

#include "core/base/half.h"
#include "core/gguf/block_codes.h"
#include "support/shared_data.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

namespace mr::test::tst_block_codes {

using nlohmann::json;

namespace {

struct NamedType {
    const char* name;
    GgufType type;
};

constexpr std::array<NamedType, 12> kTypes = {
    {{"F16", GgufType::F16}, {"BF16", GgufType::BF16}, {"Q4_0", GgufType::Q4_0},
        {"Q4_1", GgufType::Q4_1}, {"Q5_0", GgufType::Q5_0}, {"Q5_1", GgufType::Q5_1},
        {"Q8_0", GgufType::Q8_0}, {"Q2_K", GgufType::Q2_K}, {"Q3_K", GgufType::Q3_K},
        {"Q4_K", GgufType::Q4_K}, {"Q5_K", GgufType::Q5_K}, {"Q6_K", GgufType::Q6_K}}};

// The generator of gguf_blocks.py.
class Draw
{
public:
    std::uint32_t word()
    {
        m_state = m_state * 1664525U + 1013904223U;
        return m_state >> 8;
    }
    double even() { return word() / 16777216.0 - 0.5; }
    double bell()
    {
        double sum = 0;
        for (int i = 0; i < 12; ++i)
            sum += word();
        return sum / 16777216.0 - 6;
    }

private:
    std::uint32_t m_state = 1;
};

double caseValue(const std::string& name, Draw& draw, int i)
{
    if (name == "gaussian")
        return draw.bell() * 0.02;
    if (name == "uniform")
        return draw.even() * 2;
    if (name == "outlier")
        return i % 256 == 77 ? 50 : draw.bell() * 0.01;
    if (name == "denormal")
        return draw.even() * 1e-40;
    if (name == "tiny")
        return draw.bell() * 1e-14;
    if (name == "large")
        return draw.even() * 1e5;
    if (name == "huge")
        return draw.even() * 1e30;
    if (name == "alternating")
        return i % 2 == 1 ? 1.5 : -1.5;
    if (name == "positive")
        return draw.even() + 0.5;
    if (name == "negative")
        return draw.even() - 0.5;
    if (name == "ties")
        return (static_cast<int>(draw.word() % 17) - 8) / 4.0;
    if (name == "magnitudes")
        return std::ldexp(draw.bell(), -(i / 16 * 7 % 61));
    return name == "constant" ? 0.3 : 0.0;
}

std::vector<float> caseValues(const std::string& name, int count)
{
    Draw draw;
    std::vector<float> values;
    for (int i = 0; i < count; ++i)
        values.push_back(static_cast<float>(caseValue(name, draw, i)));
    return values;
}

std::string fnv(std::span<const std::byte> bytes)
{
    std::uint64_t state = 0xCBF29CE484222325U;
    for (const std::byte byte : bytes)
        state = (state ^ static_cast<std::uint64_t>(byte)) * 0x100000001B3U;
    return QString("%1").arg(state, 16, 16, QChar('0')).toStdString();
}

json readJson(const std::filesystem::path& file)
{
    std::ifstream in(file);
    return in ? json::parse(in) : json();
}

json goldens()
{
    const auto source =
        std::filesystem::path(qEnvironmentVariable("MILLRACE_SOURCE").toStdString());
    return readJson(source / "tests/core/gguf/goldens/blocks.json");
}

std::vector<std::byte> encoded(GgufType type, std::span<const float> values)
{
    const GgufTypeInfo& info = ggufTypeInfo(type);
    std::vector<std::byte> out(values.size() / static_cast<std::size_t>(info.elements) *
                               static_cast<std::size_t>(info.bytes));
    encodeBlocks(type, values, out);
    return out;
}

std::vector<float> decoded(GgufType type, std::span<const std::byte> blocks)
{
    const GgufTypeInfo& info = ggufTypeInfo(type);
    std::vector<float> out(blocks.size() / static_cast<std::size_t>(info.bytes) *
                           static_cast<std::size_t>(info.elements));
    decodeBlocks(type, blocks, out);
    return out;
}

QByteArray hexOf(std::span<const std::byte> bytes)
{
    return QByteArray(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes)).toHex();
}

} // namespace

class TestBlockCodes : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void blocksOfTheManifestAreReproduced_data() { typeRows(true); }
    void blocksOfTheManifestAreReproduced();
    void encodersGiveTheBytesOfGgml_data() { typeRows(true); }
    void encodersGiveTheBytesOfGgml();
    void decodersGiveTheNumbersOfGgml_data() { typeRows(false); }
    void decodersGiveTheNumbersOfGgml();
    void halvesRoundToTheNearestEven_data();
    void halvesRoundToTheNearestEven();
    void everyHalfComesBack();
    void bfloatsRoundToTheNearestEven();
    void numbersThatAreNotFiniteStayInTheirBlock_data() { typeRows(true); }
    void numbersThatAreNotFiniteStayInTheirBlock();

private:
    static void typeRows(bool encodableOnly)
    {
        QTest::addColumn<int>("index");
        for (std::size_t i = 0; i < kTypes.size(); ++i)
            if (!encodableOnly || canEncodeBlocks(kTypes[i].type))
                QTest::newRow(kTypes[i].name) << static_cast<int>(i);
    }
};

void TestBlockCodes::blocksOfTheManifestAreReproduced()
{
    QFETCH(int, index);
    const NamedType type = kTypes[static_cast<std::size_t>(index)];
    const json manifest = readJson(sharedData() / "adapters/gguf_manifest.json");
    const std::string name = type.name;
    if (manifest.is_null() || !manifest["blocks"].contains(name + "_hex")) {
        qInfo("no shared data (MILLRACE_SHARED), or no blocks of this type in it");
        return;
    }
    const json& blocks = manifest["blocks"];
    const auto input = blocks["input_f32"].get<std::vector<float>>();

    const std::vector<std::byte> bytes = encoded(type.type, input);

    QCOMPARE(hexOf(bytes).toStdString(), blocks[name + "_hex"].get<std::string>());
    QCOMPARE(decoded(type.type, bytes), blocks[name + "_dequant"].get<std::vector<float>>());
}

void TestBlockCodes::encodersGiveTheBytesOfGgml()
{
    QFETCH(int, index);
    const NamedType type = kTypes[static_cast<std::size_t>(index)];
    const json golden = goldens();
    QVERIFY(golden["encoded"].size() == 14);
    for (const auto& [name, row] : golden["encoded"].items()) {
        const std::vector<float> values = caseValues(name, golden["count"].get<int>());
        QCOMPARE(fnv(std::as_bytes(std::span(values))), row["input"].get<std::string>());

        const std::vector<std::byte> bytes = encoded(type.type, values);

        QVERIFY2(fnv(bytes) == row[type.name].get<std::string>(), name.c_str());
    }
}

void TestBlockCodes::decodersGiveTheNumbersOfGgml()
{
    QFETCH(int, index);
    const NamedType type = kTypes[static_cast<std::size_t>(index)];
    const json golden = goldens()["decoded"][type.name];
    const auto hex = golden["blocks"].get<std::string>();
    const QByteArray blocks = QByteArray::fromHex(QByteArray::fromStdString(hex));

    const std::vector<float> values =
        decoded(type.type, std::as_bytes(std::span(blocks.data(), std::size_t(blocks.size()))));

    for (std::size_t i = 0; i < 4; ++i)
        QCOMPARE(values[i], golden["first"][i].get<float>());
    QCOMPARE(fnv(std::as_bytes(std::span(values))), golden["values"].get<std::string>());
    if (canEncodeBlocks(type.type))
        QCOMPARE(hexOf(encoded(type.type, caseValues("gaussian", 256))).toStdString(), hex);
}

void TestBlockCodes::halvesRoundToTheNearestEven_data()
{
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    QTest::addColumn<float>("value");
    QTest::addColumn<int>("bits");
    QTest::newRow("1") << 1.0F << 0x3C00;
    QTest::newRow("a tie goes down to even") << 1.0F + 0x1p-11F << 0x3C00;
    QTest::newRow("a tie goes up to even") << 1.0F + 0x3p-11F << 0x3C02;
    QTest::newRow("above a tie") << 1.0F + 0x1.2p-11F << 0x3C01;
    QTest::newRow("the largest") << 65504.0F << 0x7BFF;
    QTest::newRow("rounds to the largest") << 65519.0F << 0x7BFF;
    QTest::newRow("rounds to infinity") << 65520.0F << 0x7C00;
    QTest::newRow("infinity") << -kInfinity << 0xFC00;
    QTest::newRow("NaN") << std::numeric_limits<float>::quiet_NaN() << 0x7E00;
    QTest::newRow("the least normal") << 0x1p-14F << 0x0400;
    QTest::newRow("the largest subnormal") << 0x1.ff8p-15F << 0x03FF;
    QTest::newRow("rounds up to a normal") << 0x1.ffcp-15F << 0x0400;
    QTest::newRow("the least subnormal") << 0x1p-24F << 0x0001;
    QTest::newRow("half of it, to even") << 0x1p-25F << 0x0000;
    QTest::newRow("above half of it") << -0x1.2p-25F << 0x8001;
    QTest::newRow("-0") << -0.0F << 0x8000;
}

void TestBlockCodes::halvesRoundToTheNearestEven()
{
    QFETCH(float, value);
    QFETCH(int, bits);
    QCOMPARE(int{halfBits(value)}, bits);
}

void TestBlockCodes::everyHalfComesBack()
{
    for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
        const float value = halfValue(static_cast<std::uint16_t>(bits));
        if (std::isnan(value))
            QVERIFY((bits & 0x7FFF) > 0x7C00);
        else
            QCOMPARE(std::uint32_t{halfBits(value)}, bits);
    }
}

void TestBlockCodes::bfloatsRoundToTheNearestEven()
{
    QCOMPARE(int{bfloatBits(1.0F)}, 0x3F80);
    QCOMPARE(int{bfloatBits(1.0F + 0x1p-8F)}, 0x3F80);
    QCOMPARE(int{bfloatBits(1.0F + 0x3p-8F)}, 0x3F82);
    QCOMPARE(int{bfloatBits(3.4e38F)}, 0x7F80);
    QVERIFY(std::isnan(bfloatValue(bfloatBits(std::bit_cast<float>(0x7F800001U)))));
}

// Others spoil nothing, and the sanitizers see no undefined conversion.
void TestBlockCodes::numbersThatAreNotFiniteStayInTheirBlock()
{
    QFETCH(int, index);
    const GgufType type = kTypes[static_cast<std::size_t>(index)].type;
    std::vector<float> values = caseValues("gaussian", 1024);
    const std::vector<std::byte> sound = encoded(type, values);
    for (const float strange : {std::numeric_limits<float>::quiet_NaN(),
             std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
             std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min()}) {
        values[300] = strange;

        const std::vector<std::byte> bytes = encoded(type, values);

        const std::size_t quarter = sound.size() / 4;
        QVERIFY(std::equal(bytes.begin(), bytes.begin() + std::ptrdiff_t(quarter), sound.begin()));
        QVERIFY(std::equal(bytes.begin() + std::ptrdiff_t(2 * quarter), bytes.end(),
            sound.begin() + std::ptrdiff_t(2 * quarter)));
    }
}

MR_TEST(TestBlockCodes)

} // namespace mr::test::tst_block_codes

#include "tst_block_codes.moc"
