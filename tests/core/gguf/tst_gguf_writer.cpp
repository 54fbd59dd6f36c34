// Written files: byte by byte, read back, stopped half-way, and within little memory.

#include "core/gguf/block_codes.h"
#include "core/gguf/gguf_writer.h"
#include "core/gguf/raw_gguf.h"
#include "support/test_room.h"

#include <QtTest>

#include <sys/resource.h>

namespace mr::test::tst_gguf_writer {

namespace {

std::int64_t peakKib()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

float valueAt(std::int64_t index)
{
    return static_cast<float>(index % 251 - 125) / 64.0F;
}

GgufSource counting(const std::string& name, const std::vector<std::int64_t>& ne, GgufType type)
{
    return {name, ne, type, [](std::int64_t first, std::span<float> out) {
                for (std::size_t i = 0; i < out.size(); ++i)
                    out[i] = valueAt(first + static_cast<std::int64_t>(i));
                return Status();
            }};
}

std::size_t filesIn(const std::filesystem::path& folder)
{
    return static_cast<std::size_t>(std::distance(
        std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

} // namespace

class TestGgufWriter : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theFileIsTheOneMadeByHand();
    void valuesComeBack();
    void everyTypeComesBackInWholeRows();
    void unsoundInputsAreRefused_data();
    void unsoundInputsAreRefused();
    void nothingIsLeftBehindBy_data();
    void nothingIsLeftBehindBy();
    void progressCountsEveryByteOfTheData();
    void aLargeTensorTakesLittleMemory();
};

void TestGgufWriter::theFileIsTheOneMadeByHand()
{
    RawGguf expected;
    expected.keys = {rawKey("general.name", 8, rawText("x")), rawKey("count", 4, raw(7U)),
        rawKey("rate", 6, raw(0.5F)), rawKey("on", 7, "\1"),
        rawKey("names", 9, raw(8U) + raw<std::uint64_t>(2) + rawText("a") + rawText("bc")),
        rawKey("kinds", 9, raw(5U) + raw<std::uint64_t>(2) + raw(-1) + raw(6))};
    expected.tensors = {rawTensor("a", {3, 2}, 0, 0), rawTensor("b", {2}, 1, 32)};
    for (int i = 0; i < 6; ++i)
        expected.data += raw(valueAt(i));
    expected.data.resize(32, '\0');
    expected.data += raw<std::uint16_t>(0xBFD0) + raw<std::uint16_t>(0xBFC0); // -125/64, -124/64
    expected.data.resize(64, '\0');
    const GgufOnDisk disk("");

    const Status status = writeGguf(disk.path(),
        {{"general.name", GgufValue::string("x")}, {"count", GgufValue::u32(7)},
            {"rate", GgufValue::f32(0.5F)}, {"on", GgufValue::boolean(true)},
            {"names", GgufValue::strings({"a", "bc"})}, {"kinds", GgufValue::i32s({-1, 6})}},
        {counting("a", {3, 2}, GgufType::F32), counting("b", {2}, GgufType::F16)});

    QVERIFY2(status.ok(), status.message().c_str());
    const std::string written = fileBytes(disk.path());
    QCOMPARE(QByteArray::fromStdString(written).toHex(),
        QByteArray::fromStdString(expected.bytes()).toHex());
    QCOMPARE(filesIn(disk.folder()), std::size_t{1});
}

void TestGgufWriter::valuesComeBack()
{
    using Type = GgufValueType;
    const GgufValues values = {{"i32", GgufValue::i32(-5)}, {"u64", GgufValue::u64(1ULL << 60)},
        {"u8", {Type::U8, {}, std::uint64_t{255}}}, {"i8", {Type::I8, {}, std::int64_t{-1}}},
        {"f64", {Type::F64, {}, 0.1}}, {"f32s", GgufValue::f32s({1.5F, -0.25F})},
        {"u32s", GgufValue::u32s({4'000'000'000, 1})}, {"bools", GgufValue::bools({true, false})},
        {"general.alignment", GgufValue::u32(128)},
        {"text", GgufValue::string(std::string("\0\xFF", 2))}};
    const GgufOnDisk disk("");
    QVERIFY(writeGguf(disk.path(), values, {counting("a", {3}, GgufType::F32)}).ok());

    Result<GgufFile> file = disk.open();

    QVERIFY2(file.ok(), file.status().message().c_str());
    QVERIFY(file.value().values() == values);
    QCOMPARE(file.value().tensors()[0].offset % 128, std::uint64_t{0});
    QCOMPARE(fileBytes(disk.path()).size() % 128, std::size_t{0});
}

// Three dimensions, more elements than a piece has.
void TestGgufWriter::everyTypeComesBackInWholeRows()
{
    const std::vector<std::int64_t> ne = {768, 500, 3};
    for (const GgufType type : {GgufType::F32, GgufType::F16, GgufType::BF16, GgufType::Q8_0,
             GgufType::Q5_0, GgufType::Q4_0}) {
        const GgufOnDisk disk("");
        GgufSource source = counting("a", ne, type);
        const auto fill = source.fill;
        source.fill = [&](std::int64_t first, std::span<float> out) {
            if (first % ne[0] != 0 || out.size() % 768 != 0)
                return Status::error(ErrorKind::Internal, "no whole rows");
            return fill(first, out);
        };
        std::vector<float> values(768 * 500 * 3);
        QVERIFY(fill(0, values).ok());
        const GgufTypeInfo& info = ggufTypeInfo(type);
        std::vector<std::byte> expected(
            values.size() / std::size_t(info.elements) * std::size_t(info.bytes));
        encodeBlocks(type, values, expected);

        const Status status = writeGguf(disk.path(), {}, {source});

        QVERIFY2(status.ok(), status.message().c_str());
        Result<GgufFile> file = disk.open();
        QVERIFY2(file.ok(), file.status().message().c_str());
        std::vector<std::byte> bytes(file.value().tensors()[0].bytes);
        QVERIFY(file.value().readBytes(file.value().tensors()[0], 0, bytes).ok());
        QVERIFY(bytes == expected);
    }
}

void TestGgufWriter::unsoundInputsAreRefused_data()
{
    QTest::addColumn<GgufValues>("values");
    QTest::addColumn<GgufSource>("tensor");
    QTest::addColumn<QByteArray>("message");
    using Type = GgufValueType;
    const GgufSource sound = counting("t", {256}, GgufType::F32);
    const auto row = [&](const char* name, const GgufValue& value, const char* message) {
        QTest::newRow(name) << GgufValues{{"key", value}} << sound << QByteArray(message);
    };
    const auto tensorRow = [](const char* name, const GgufSource& tensor, const char* message) {
        QTest::newRow(name) << GgufValues() << tensor << QByteArray(message);
    };
    row("an empty array", GgufValue::strings({}), "key \"key\" has no value of its type array");
    row("text as a number", {Type::U32, {}, std::string("x")},
        "key \"key\" has no value of its type u32");
    row("an array of arrays", {Type::Array, Type::Array, std::vector<std::int64_t>{1}},
        "key \"key\" has no value of its type array");
    QTest::newRow("a key twice") << GgufValues{{"a", GgufValue::u32(1)}, {"a", GgufValue::u32(2)}}
                                 << sound << QByteArray("key \"a\" appears twice");
    QTest::newRow("an alignment of 48")
        << GgufValues{{"general.alignment", GgufValue::u32(48)}} << sound
        << QByteArray("key \"general.alignment\" is not a power of two");
    tensorRow("a long name", counting(std::string(64, 'n'), {1}, GgufType::F32),
        "a name of more than 63");
    tensorRow("no dimensions", counting("t", {}, GgufType::F32), "has not 1 to 4 dimensions");
    tensorRow(
        "a dimension of 0", counting("t", {0}, GgufType::F32), "has the impossible dimension 0");
    tensorRow("rows of half a block", counting("t", {48}, GgufType::Q8_0),
        "has rows of 48 elements, but Q8_0 has blocks of 32");
    tensorRow("a type that is not written", counting("t", {256}, GgufType::Q2_K),
        "is to be Q2_K, which is not written");
}

void TestGgufWriter::unsoundInputsAreRefused()
{
    QFETCH(GgufValues, values);
    QFETCH(GgufSource, tensor);
    QFETCH(QByteArray, message);
    const GgufOnDisk disk("");
    std::filesystem::remove(disk.path());

    const Status status = writeGguf(disk.path(), values, {tensor});

    QVERIFY(!status.ok());
    QVERIFY2(status.message().find(message.toStdString()) != std::string::npos,
        status.message().c_str());
    QCOMPARE(filesIn(disk.folder()), std::size_t{0});
}

void TestGgufWriter::nothingIsLeftBehindBy_data()
{
    QTest::addColumn<bool>("byFill");
    QTest::newRow("a source that fails") << true;
    QTest::newRow("progress that says no") << false;
}

void TestGgufWriter::nothingIsLeftBehindBy()
{
    QFETCH(bool, byFill);
    const GgufOnDisk disk("");
    std::filesystem::remove(disk.path());
    const Status stop = Status::error(ErrorKind::Cancelled, "stopped");
    GgufSource source = counting("a", {1024, 3000}, GgufType::F16);
    const auto fill = source.fill;
    source.fill = [&](std::int64_t first, std::span<float> out) {
        return byFill && first > 0 ? stop : fill(first, out);
    };

    const Status status = writeGguf(disk.path(), {}, {source},
        [&](std::uint64_t done, std::uint64_t all) { return 2 * done > all ? stop : Status(); });

    QVERIFY(!status.ok());
    QVERIFY(status.kind() == ErrorKind::Cancelled);
    QCOMPARE(filesIn(disk.folder()), std::size_t{0});
}

void TestGgufWriter::progressCountsEveryByteOfTheData()
{
    const GgufOnDisk disk("");
    std::uint64_t last = 0;
    std::uint64_t total = 0;
    const auto progress = [&](std::uint64_t done, std::uint64_t all) {
        const bool rises = done > last;
        last = done;
        total = all;
        return rises ? Status() : Status::error(ErrorKind::Internal, "falls");
    };

    const Status status = writeGguf(disk.path(), {},
        {counting("a", {1024, 3000}, GgufType::F16), counting("b", {5}, GgufType::F32)}, progress);

    QVERIFY2(status.ok(), status.message().c_str());
    QCOMPARE(last, total);
    QCOMPARE(total, std::uint64_t{1024 * 3000 * 2 + 32});
}

// 272 MB of Q8_0 from 1 GB of F32.
void TestGgufWriter::aLargeTensorTakesLittleMemory()
{
    const GgufOnDisk disk("");
    GgufSource source = counting("a", {4096, 62'500}, GgufType::Q8_0);
    source.fill = [](std::int64_t, std::span<float> out) {
        std::fill(out.begin(), out.end(), 0.5F);
        return Status();
    };
    const std::int64_t before = peakKib();

    QVERIFY(writeGguf(disk.path(), {}, {source}).ok());

    const std::int64_t more = peakKib() - before;
    QCOMPARE(std::filesystem::file_size(disk.path()) / 1'000'000, std::uintmax_t{272});
    qInfo("%lld KiB", static_cast<long long>(more));
    QVERIFY(more < 32 << 10);
}

MR_TEST(TestGgufWriter)

} // namespace mr::test::tst_gguf_writer

#include "tst_gguf_writer.moc"
