// Sound GGUF files: values of every type, tensors of every type, any range of their elements.

#include "core/gguf/block_codes.h"
#include "core/gguf/raw_gguf.h"
#include "support/test_room.h"

#include <QtTest>

#include <random>

namespace mr::test::tst_gguf_file {

namespace {

// Every type of tensor, three rows of 512 elements of random bytes.
constexpr std::array kTypes = {GgufType::F32, GgufType::F16, GgufType::BF16, GgufType::Q4_0,
    GgufType::Q4_1, GgufType::Q5_0, GgufType::Q5_1, GgufType::Q8_0, GgufType::Q2_K, GgufType::Q3_K,
    GgufType::Q4_K, GgufType::Q5_K, GgufType::Q6_K};
constexpr std::int64_t kColumns = 512;
constexpr std::int64_t kRows = 3;

RawGguf everyType()
{
    RawGguf file;
    std::mt19937 random(3);
    for (const GgufType type : kTypes) {
        const GgufTypeInfo& info = ggufTypeInfo(type);
        file.tensors.push_back(rawTensor(std::string(info.name), {kColumns, kRows},
            static_cast<std::uint32_t>(type), file.data.size()));
        const auto bytes = static_cast<std::size_t>(kColumns * kRows / info.elements * info.bytes);
        for (std::size_t i = 0; i < bytes; ++i)
            file.data += static_cast<char>(random() & 0x3B); // no infinity, no NaN
        file.data.resize((file.data.size() + 31) / 32 * 32, '\0');
    }
    return file;
}

const GgufValue& valueOf(const Result<GgufFile>& file, std::string_view key)
{
    return *const_cast<Result<GgufFile>&>(file).value().find(key);
}

} // namespace

class TestGgufFile : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void valuesOfEveryTypeAreRead();
    void arraysAreRead();
    void tensorsLieAtTheRunningPaddedSum();
    void anyRangeEqualsTheWhole();
    void rangesOutsideATensorAreRefused();
    void theAlignmentOfTheFileCounts();
    void aLargeVocabularyLoadsQuickly();
};

void TestGgufFile::valuesOfEveryTypeAreRead()
{
    RawGguf raws;
    raws.version = 2;
    raws.keys = {rawKey("u8", 0, raw<std::uint8_t>(200)), rawKey("i8", 1, raw<std::int8_t>(-100)),
        rawKey("u16", 2, raw<std::uint16_t>(60000)), rawKey("i16", 3, raw<std::int16_t>(-30000)),
        rawKey("u32", 4, raw<std::uint32_t>(4'000'000'000)),
        rawKey("i32", 5, raw<std::int32_t>(-2'000'000'000)), rawKey("f32", 6, raw(0.5F)),
        rawKey("bool", 7, raw<std::uint8_t>(1)), rawKey("text", 8, rawText("\xFFnot UTF-8")),
        rawKey("u64", 10, raw(~std::uint64_t{0})), rawKey("i64", 11, raw(INT64_MIN)),
        rawKey("f64", 12, raw(0.1))};
    const GgufOnDisk disk(raws.bytes());

    const Result<GgufFile> file = disk.open();

    QVERIFY2(file.ok(), file.status().message().c_str());
    using Type = GgufValueType;
    QVERIFY(valueOf(file, "u8") == (GgufValue{Type::U8, {}, std::uint64_t{200}}));
    QVERIFY(valueOf(file, "i8") == (GgufValue{Type::I8, {}, std::int64_t{-100}}));
    QVERIFY(valueOf(file, "u16") == (GgufValue{Type::U16, {}, std::uint64_t{60000}}));
    QVERIFY(valueOf(file, "i16") == (GgufValue{Type::I16, {}, std::int64_t{-30000}}));
    QVERIFY(valueOf(file, "u32") == GgufValue::u32(4'000'000'000));
    QVERIFY(valueOf(file, "i32") == GgufValue::i32(-2'000'000'000));
    QVERIFY(valueOf(file, "f32") == GgufValue::f32(0.5F));
    QVERIFY(valueOf(file, "bool") == GgufValue::boolean(true));
    QVERIFY(valueOf(file, "text") == GgufValue::string("\xFFnot UTF-8"));
    QVERIFY(valueOf(file, "u64") == GgufValue::u64(~std::uint64_t{0}));
    QVERIFY(valueOf(file, "i64") == (GgufValue{Type::I64, {}, std::int64_t{INT64_MIN}}));
    QVERIFY(valueOf(file, "f64") == (GgufValue{Type::F64, {}, 0.1}));
}

void TestGgufFile::arraysAreRead()
{
    RawGguf raws;
    raws.keys = {rawKey("z", 9, raw(8U) + raw<std::uint64_t>(2) + rawText("one") + rawText("")),
        rawKey("a", 9, raw(5U) + raw<std::uint64_t>(2) + raw(-1) + raw(7)),
        rawKey("f", 9, raw(6U) + raw<std::uint64_t>(1) + raw(0.25F)),
        rawKey("b", 9, raw(7U) + raw<std::uint64_t>(3) + std::string("\0\1\1", 3)),
        rawKey("none", 9, raw(4U) + raw<std::uint64_t>(0))};
    const GgufOnDisk disk(raws.bytes());

    Result<GgufFile> file = disk.open();

    QVERIFY2(file.ok(), file.status().message().c_str());
    QVERIFY(valueOf(file, "z") == GgufValue::strings({"one", ""}));
    QVERIFY(valueOf(file, "a") == GgufValue::i32s({-1, 7}));
    QVERIFY(valueOf(file, "f") == GgufValue::f32s({0.25F}));
    QVERIFY(valueOf(file, "b") == GgufValue::bools({false, true, true}));
    QVERIFY(valueOf(file, "none") == GgufValue::u32s({}));
    QCOMPARE(file.value().values()[0].first, std::string("z"));
    QCOMPARE(file.value().values()[1].first, std::string("a"));
    QVERIFY(file.value().find("nothing") == nullptr);
}

void TestGgufFile::tensorsLieAtTheRunningPaddedSum()
{
    const RawGguf raws = everyType();
    const GgufOnDisk disk(raws.bytes());
    const std::size_t begin = raws.bytes().size() - raws.data.size();

    Result<GgufFile> file = disk.open();

    QVERIFY2(file.ok(), file.status().message().c_str());
    QCOMPARE(file.value().tensors().size(), kTypes.size());
    std::uint64_t expected = begin;
    for (const GgufTensor& tensor : file.value().tensors()) {
        const GgufTypeInfo& info = ggufTypeInfo(tensor.type);
        QCOMPARE(tensor.name, std::string(info.name));
        QCOMPARE(tensor.ne, (std::vector<std::int64_t>{kColumns, kRows}));
        QCOMPARE(tensor.offset, expected);
        QCOMPARE(tensor.bytes,
            static_cast<std::uint64_t>(kColumns * kRows / info.elements * info.bytes));
        QCOMPARE(file.value().tensor(tensor.name), &tensor);
        expected = (expected + tensor.bytes + 31) / 32 * 32;
    }
    QVERIFY(file.value().tensor("IQ4_XS") == nullptr);
}

void TestGgufFile::anyRangeEqualsTheWhole()
{
    const GgufOnDisk disk(everyType().bytes());
    Result<GgufFile> file = disk.open();
    QVERIFY(file.ok());
    std::mt19937 random(5);
    for (const GgufTensor& tensor : file.value().tensors()) {
        std::vector<std::byte> bytes(tensor.bytes);
        QVERIFY(file.value().readBytes(tensor, 0, bytes).ok());
        std::vector<float> whole(static_cast<std::size_t>(tensor.count()));
        decodeBlocks(tensor.type, bytes, whole);
        for (int i = 0; i < 200; ++i) {
            const std::size_t first = random() % (whole.size() + 1);
            const std::size_t most = whole.size() - first;
            std::vector<float> part(
                i % 2 == 0 ? random() % (most + 1) : std::min<std::size_t>(most, 5));

            QVERIFY(file.value().readFloats(tensor, std::int64_t(first), part).ok());

            QVERIFY(std::equal(part.begin(), part.end(), whole.begin() + std::ptrdiff_t(first)));
        }
    }
}

void TestGgufFile::rangesOutsideATensorAreRefused()
{
    const GgufOnDisk disk(everyType().bytes());
    Result<GgufFile> file = disk.open();
    const GgufTensor& tensor = *file.value().tensor("Q4_K");
    std::vector<float> two(2);
    std::vector<std::byte> bytes(2);
    for (const std::int64_t first : {std::int64_t{-1}, tensor.count() - 1, INT64_MAX, INT64_MIN})
        QVERIFY(!file.value().readFloats(tensor, first, two).ok());
    QVERIFY(file.value().readFloats(tensor, tensor.count() - 2, two).ok());
    QVERIFY(!file.value().readBytes(tensor, tensor.bytes - 1, bytes).ok());
    QVERIFY(!file.value().readBytes(tensor, UINT64_MAX, bytes).ok());
    QVERIFY(file.value().readBytes(tensor, tensor.bytes - 2, bytes).ok());
}

void TestGgufFile::theAlignmentOfTheFileCounts()
{
    RawGguf raws;
    raws.alignment = 64;
    raws.keys = {rawKey("general.alignment", 4, raw(64U))};
    raws.tensors = {rawTensor("a", {1}, 0, 0), rawTensor("b", {1}, 0, 64)};
    raws.data = raw(1.5F) + std::string(60, '\0') + raw(2.5F);
    const GgufOnDisk disk(raws.bytes());

    Result<GgufFile> file = disk.open();

    QVERIFY2(file.ok(), file.status().message().c_str());
    float value = 0;
    QVERIFY(file.value().readFloats(*file.value().tensor("b"), 0, {&value, 1}).ok());
    QCOMPARE(value, 2.5F);
}

// The vocabulary of a large model: 150,000 tokens, 300,000 merges.
void TestGgufFile::aLargeVocabularyLoadsQuickly()
{
    const auto texts = [](std::uint64_t count) {
        std::string list = raw(8U) + raw(count);
        for (std::uint64_t i = 0; i < count; ++i)
            list += rawText("token " + std::to_string(i));
        return list;
    };
    RawGguf raws;
    raws.keys = {rawKey("tokens", 9, texts(150'000)), rawKey("merges", 9, texts(300'000))};
    const GgufOnDisk disk(raws.bytes());
    QElapsedTimer timer;
    timer.start();

    Result<GgufFile> file = disk.open();

    const qint64 elapsedMs = timer.elapsed();
    QVERIFY2(file.ok(), file.status().message().c_str());
    const auto& merges = std::get<std::vector<std::string>>(valueOf(file, "merges").data);
    QCOMPARE(merges.back(), std::string("token 299999"));
    qInfo("%lld ms", static_cast<long long>(elapsedMs));
    QVERIFY(elapsedMs < 10'000); // a tenth of a second on an idle machine
}

MR_TEST(TestGgufFile)

} // namespace mr::test::tst_gguf_file

#include "tst_gguf_file.moc"
