// Every rule of the format broken once: what is said, and of which byte.

#include "core/gguf/raw_gguf.h"
#include "support/test_room.h"

#include <QtTest>

#include <random>

namespace mr::test::tst_gguf_refusals {

namespace {

const std::string kCount = rawKey("count", 4, raw(1U)); // 21 bytes
const std::string kTensor = rawTensor("t", {4}, 0, 0);  // 33 bytes

RawGguf sound()
{
    RawGguf file;
    file.keys = {kCount};
    file.tensors = {kTensor};
    file.data.assign(32, '\0');
    return file;
}

RawGguf withKey(const std::string& key)
{
    RawGguf file = sound();
    file.keys = {key};
    return file;
}

RawGguf withTensor(const std::string& tensor)
{
    RawGguf file = sound();
    file.tensors = {tensor};
    return file;
}

RawGguf withVersion(std::uint32_t version)
{
    RawGguf file = sound();
    file.version = version;
    return file;
}

void row(const char* name, const std::string& bytes, int offset, const char* message)
{
    QTest::newRow(name) << QByteArray::fromStdString(bytes) << offset << QByteArray(message);
}

void startRows()
{
    const auto start = [](std::uint64_t tensors, std::uint64_t keys) {
        return "GGUF" + raw(3U) + raw(tensors) + raw(keys) + std::string(100, '\0');
    };
    row("empty", "", 0, "the file is empty; fetch it again");
    row("another magic", std::string(64, 'x'), 0, "not a GGUF file: it does not begin with GGUF");
    row("before GGUF", "lmgg" + std::string(60, '\1'), 0,
        "a GGML file from before GGUF, which is not read; convert the model anew");
    row("git-lfs", "version https://git-lfs.github.com/spec/v1\n", 0,
        "git-lfs pointer: run `git lfs pull` in the folder to fetch the file itself");
    row("big-endian", withVersion(0x03000000).bytes(), 4,
        "a big-endian GGUF file, which is not read; `gguf-convert-endian FILE little` of the "
        "Python "
        "package gguf turns it round");
    row("version 1", withVersion(1).bytes(), 4,
        "version 1 of GGUF; 2 and 3 are read, so convert the model anew");
    row("version 4", withVersion(4).bytes(), 4, "version 4 of GGUF; 2 and 3 are read");
    row("only the magic", "GGUF", 4,
        "4 bytes are missing, but the file ends after 0 more bytes; fetch it again");
    row("too many tensors", start(1ULL << 60, 0), 8,
        "1152921504606846976 tensors, but the file ends after 100 more bytes; fetch it again");
    row("too many keys", start(0, 8), 16,
        "8 keys, but the file ends after 100 more bytes; fetch it again");
}

void keyRows()
{
    const std::string huge = raw(~std::uint64_t{0});
    row("a long name", withKey(huge + std::string(100, 'x')).bytes(), 24,
        "a text of 18446744073709551615 bytes, but the file ends after");
    row("a name that is not UTF-8", withKey(rawKey("\xC0x", 4, raw(1U))).bytes(), 24,
        "the name \"\\xc0x\" of a key is not UTF-8");
    RawGguf twice = sound();
    twice.keys = {kCount, kCount};
    row("a key twice", twice.bytes(), 45, "key \"count\" appears twice");
    row("an unknown type", withKey(rawKey("count", 13, raw(1U))).bytes(), 37,
        "key \"count\" has the unknown value type 13; this program may be older than the file");
    row("a bool of 2", withKey(rawKey("count", 7, "\2")).bytes(), 41,
        "a bool of 2, where 0 or 1 is allowed");
    row("a long text", withKey(rawKey("count", 8, huge)).bytes(), 41,
        "a text of 18446744073709551615 bytes, but the file ends after");
    row("an array of arrays", withKey(rawKey("count", 9, raw(9U) + raw<std::uint64_t>(0))).bytes(),
        41, "key \"count\" holds an array of arrays, which is not read");
    row("a long array", withKey(rawKey("count", 9, raw(4U) + raw(1ULL << 62))).bytes(), 45,
        "key \"count\" holds 4611686018427387904 values of type u32, but the file ends after");
    row("an alignment of 24", withKey(rawKey("general.alignment", 4, raw(24U))).bytes(), 24,
        "general.alignment is 24, where a power of two of type u32 is allowed");
    row("an alignment of 0", withKey(rawKey("general.alignment", 4, raw(0U))).bytes(), 24,
        "general.alignment is 0, where a power of two of type u32 is allowed");
    row("an alignment of text", withKey(rawKey("general.alignment", 8, rawText("64"))).bytes(), 24,
        "general.alignment is of another type, where a power of two of type u32 is allowed");
    row("a part", withKey(rawKey("split.count", 2, raw<std::uint16_t>(3))).bytes(), 24,
        "one of 3 files of a split model, which is not read in parts; merge them with "
        "`llama-gguf-split --merge FIRST_PART WHOLE_FILE`");
}

void tensorRows()
{
    row("no dimensions", withTensor(rawTensor("t", {}, 0, 0)).bytes(), 54,
        "tensor \"t\" has 0 dimensions; 1 to 4 are allowed");
    row("five dimensions", withTensor(rawTensor("t", {1, 1, 1, 1, 1}, 0, 0)).bytes(), 54,
        "tensor \"t\" has 5 dimensions; 1 to 4 are allowed");
    row("a dimension of 0", withTensor(rawTensor("t", {4, 0}, 0, 0)).bytes(), 54,
        "tensor \"t\" has the impossible dimension 0");
    row("a dimension below 0", withTensor(rawTensor("t", {-4, -1}, 0, 0)).bytes(), 54,
        "tensor \"t\" has the impossible dimension -4");
    row("a shape that overflows", withTensor(rawTensor("t", {1LL << 32, 1LL << 32}, 0, 0)).bytes(),
        54, "tensor \"t\" has a shape whose size overflows");
    row("bytes that overflow", withTensor(rawTensor("t", {1LL << 62}, 0, 0)).bytes(), 54,
        "tensor \"t\" has a shape whose size overflows");
    row("rows of half a block", withTensor(rawTensor("t", {48, 2}, 8, 0)).bytes(), 54,
        "tensor \"t\" has rows of 48 elements, but Q8_0 has blocks of 32");
    row("a type that is not read", withTensor(rawTensor("t", {256}, 23, 0)).bytes(), 66,
        "tensor \"t\" is IQ4_XS (type 23); F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, "
        "Q4_K, "
        "Q5_K, Q6_K, BF16 are read, so take another quantisation of the model");
    row("an unknown type of tensor", withTensor(rawTensor("t", {256}, 999, 0)).bytes(), 66,
        "tensor \"t\" is type 999; F32, F16,");
    row("a name of 64 bytes", withTensor(rawTensor(std::string(64, 'n'), {4}, 0, 0)).bytes(), 45,
        ("tensor \"" + std::string(60, 'n') + "...\" has a name of 64 bytes; 63 are allowed")
            .c_str());
    row("a tensor's name that is not UTF-8", withTensor(rawTensor("\xFF", {4}, 0, 0)).bytes(), 45,
        "the name \"\\xff\" of a tensor is not UTF-8");
    RawGguf twice = sound();
    twice.tensors = {kTensor, kTensor};
    row("a tensor twice", twice.bytes(), 78, "tensor \"t\" appears twice");
}

void placeRows()
{
    row("an offset that is not 0", withTensor(rawTensor("t", {4}, 0, 32)).bytes(), 70,
        "tensor \"t\" begins at byte 32 of the data, but the one before it ends at 0");
    RawGguf gap = sound();
    gap.tensors.push_back(rawTensor("u", {4}, 0, 64));
    gap.data.assign(96, '\0');
    row("a gap", gap.bytes(), 103,
        "tensor \"u\" begins at byte 64 of the data, but the one before it ends at 32");
    RawGguf overlap = gap;
    overlap.tensors.back() = rawTensor("u", {4}, 0, 16);
    row("no padding", overlap.bytes(), 103,
        "tensor \"u\" begins at byte 16 of the data, but the one before it ends at 32");
    RawGguf cut = sound();
    cut.data.assign(15, '\0');
    row("data that ends early", cut.bytes(), 70,
        "tensor \"t\" has 16 bytes from byte 96 on, but the file only 111; fetch it again");
    row("data far beyond the end", withTensor(rawTensor("t", {1LL << 60}, 0, 0)).bytes(), 70,
        "tensor \"t\" has 4611686018427387904 bytes from byte 96 on, but the file only 128; fetch "
        "it "
        "again");
}

} // namespace

class TestGgufRefusals : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theSoundFileOpens() { QVERIFY(GgufOnDisk(sound().bytes()).open().ok()); }
    void brokenFilesNameByteAndRule_data();
    void brokenFilesNameByteAndRule();
    void everyCutIsRefused();
    void aHeaderWithoutEndIsRefused();
    void damageEndsInAnAnswer();
};

void TestGgufRefusals::brokenFilesNameByteAndRule_data()
{
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<int>("offset");
    QTest::addColumn<QByteArray>("message");
    startRows();
    keyRows();
    tensorRows();
    placeRows();
}

void TestGgufRefusals::brokenFilesNameByteAndRule()
{
    QFETCH(QByteArray, bytes);
    QFETCH(int, offset);
    QFETCH(QByteArray, message);
    const GgufOnDisk disk(bytes.toStdString());

    const Status status = disk.open().status();

    const std::string expected =
        disk.path().string() + ": byte " + std::to_string(offset) + ": " + message.toStdString();
    QVERIFY(!status.ok());
    QVERIFY2(status.message().find(expected) == 0, status.message().c_str());
    QVERIFY(status.kind() == ErrorKind::DataCorrupt);
}

void TestGgufRefusals::everyCutIsRefused()
{
    const std::string whole = sound().bytes();
    const std::size_t end = whole.size() - 16; // the last tensor's padding may be missing
    for (std::size_t n = 0; n < end; ++n)
        QVERIFY2(!GgufOnDisk(whole.substr(0, n)).open().ok(), std::to_string(n).c_str());
    QVERIFY(GgufOnDisk(whole.substr(0, end)).open().ok());
}

// Sparse, so that a length is one that the file holds.
void TestGgufRefusals::aHeaderWithoutEndIsRefused()
{
    const GgufOnDisk disk(
        withKey(rawText("text") + raw(8U) + raw<std::uint64_t>(1ULL << 32)).bytes());
    std::filesystem::resize_file(disk.path(), 1ULL << 33);

    const std::string message = disk.open().status().message();

    QVERIFY2(
        message.find("byte 40: a text of 4294967296 bytes do not fit into a header of 100000000 "
                     "bytes, the most that is read") != std::string::npos,
        message.c_str());
}

void TestGgufRefusals::damageEndsInAnAnswer()
{
    RawGguf file = sound();
    file.keys.push_back(
        rawKey("list", 9, raw(8U) + raw<std::uint64_t>(2) + rawText("a") + rawText("b")));
    const std::string whole = file.bytes();
    const GgufOnDisk disk("");
    std::mt19937 random(7);
    for (int i = 0; i < 2'000; ++i) {
        std::string damaged = whole;
        for (int changes = 0; changes <= i % 3; ++changes)
            damaged[random() % damaged.size()] = static_cast<char>(random());
        disk.replace(damaged);

        Result<GgufFile> opened = disk.open();

        QVERIFY(opened.ok() || !opened.status().message().empty());
        for (std::size_t t = 0; opened.ok() && t < opened.value().tensors().size(); ++t) {
            const GgufTensor& tensor = opened.value().tensors()[t];
            QVERIFY(tensor.offset + tensor.bytes <= damaged.size());
            std::vector<float> values(static_cast<std::size_t>(tensor.count()));
            QVERIFY(opened.value().readFloats(tensor, 0, values).ok());
        }
    }
}

MR_TEST(TestGgufRefusals)

} // namespace mr::test::tst_gguf_refusals

#include "tst_gguf_refusals.moc"
