// The safetensors format as hostile input: every rule broken once, and the published cases.

#include "core/model/model_folder.h"
#include "core/model/safetensors.h"
#include "support/test_room.h"

#include <QTest>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

namespace mr::test::tst_safetensors {

namespace {

const std::string kGood = R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})";

// The message of opening a file with these bytes; empty if it opens.
std::string verdict(const std::string& bytes)
{
    QTemporaryDir dir;
    const auto file = std::filesystem::path(dir.path().toStdString()) / "m.safetensors";
    put(file, bytes);
    return SafetensorsReader::open(file).status().message();
}

std::string headerVerdict(const std::string& header, std::size_t dataBytes = 16)
{
    return verdict(rawSafetensors(header, std::string(dataBytes, '\0')));
}

} // namespace

class TestSafetensors : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void soundFilesOpen()
    {
        QCOMPARE(headerVerdict(kGood), std::string());
        QCOMPARE(headerVerdict(kGood + "   \n"), std::string());
        QCOMPARE(headerVerdict("{}", 0), std::string());
        QCOMPARE(headerVerdict(R"({"a":{"dtype":"I8","shape":[],"data_offsets":[0,1]}})", 1),
            std::string());
        QCOMPARE(headerVerdict(R"({"a":{"dtype":"F32","shape":[3,0],"data_offsets":[0,0]}})", 0),
            std::string());
        QCOMPARE(
            headerVerdict(R"({"__metadata__":{"format":"pt"},)" + kGood.substr(1)), std::string());
    }

    void brokenHeadersAreRefused()
    {
        const std::string rest = R"(,"data_offsets":[0,16]}})";
        const std::vector<std::string> headers = {"[]", "  {}", "{", "{}x", R"({"a":1})",
            R"({"a":{}})", R"({"a":{"dtype":"F32","shape":[4]}})",
            R"({"a":{"dtype":"F99","shape":[4])" + rest, R"({"a":{"dtype":4,"shape":[4])" + rest,
            R"({"a":{"dtype":"F32","shape":4)" + rest, R"({"a":{"dtype":"F32","shape":[-4])" + rest,
            R"({"a":{"dtype":"F32","shape":[4.0])" + rest,
            R"({"a":{"dtype":"F32","shape":[[4]])" + rest,
            R"({"a":{"dtype":"F32","shape":[5])" + rest,
            R"({"a":{"dtype":"F32","shape":[4],"extra":"x")" + rest,
            R"({"a":{"dtype":"F32","dtype":"F32","shape":[4])" + rest,
            R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0]}})",
            R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}})",
            R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16,32]}})",
            R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[-1,15]}})",
            R"({"__metadata__":{"a":1},)" + kGood.substr(1),
            R"({"__metadata__":"x",)" + kGood.substr(1),
            R"({"__metadata__":{"a":{"b":"c"}},)" + kGood.substr(1),
            kGood.substr(0, kGood.size() - 1) + "," + kGood.substr(1), // a twice
            std::string(kGood) + std::string("\0x", 2)};
        for (const std::string& header : headers)
            QVERIFY2(!headerVerdict(header).empty(), header.c_str());
    }

    void spansMustTileTheData()
    {
        const auto two = [](int begin, int end) {
            return R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[)" +
                   std::to_string(end - begin) + R"(],"data_offsets":[)" + std::to_string(begin) +
                   "," + std::to_string(end) + "]}}";
        };
        QCOMPARE(headerVerdict(two(8, 16)), std::string());
        QVERIFY(has(headerVerdict(two(4, 16)), "overlap"));
        QVERIFY(has(headerVerdict(two(9, 16)), "hole"));
        QVERIFY(has(headerVerdict(two(8, 16), 17), "belong to nothing"));
        QVERIFY(has(
            headerVerdict(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[12,16]}})"), "hole"));
    }

    void sizesThatOverflowAreRefused()
    {
        for (const char* shape : {"2,18446744073709551614", "4294967296,4294967296",
                 "9223372036854775807,4", "99999999999999999999999"})
            QVERIFY2(!headerVerdict(R"({"a":{"dtype":"F32","shape":[)" + std::string(shape) +
                                    R"(],"data_offsets":[0,16]}})")
                          .empty(),
                shape);
        QVERIFY(!headerVerdict(
            R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[18446744073709551600,18446744073709551615]}})")
                     .empty());
    }

    void truncationSaysHowMuchIsThere()
    {
        const std::string whole = rawSafetensors(kGood, std::string(16, '\0'));

        const std::string message = verdict(whole.substr(0, whole.size() - 5));

        QVERIFY2(has(message, "ends early (" + std::to_string(whole.size() - 5) + " of " +
                                  std::to_string(whole.size()) + " bytes)"),
            message.c_str());
        for (std::size_t n = 0; n < whole.size(); ++n)
            QVERIFY(!verdict(whole.substr(0, n)).empty());
    }

    void whatIsNotSafetensorsIsRecognised()
    {
        QVERIFY(has(verdict(""), "empty"));
        QVERIFY(has(verdict("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
            "git-lfs pointer: run `git lfs pull`"));
        QVERIFY(has(verdict(std::string("PK\x03\x04") + std::string(40, '\0')), "pickle"));
        QVERIFY(has(verdict("\x80\x02}q\x01(X" + std::string(40, 'x')), "pickle"));
        QVERIFY(has(verdict("<!DOCTYPE html><html>"), "web page"));
        QVERIFY(has(verdict("GGUF" + std::string(40, '\3')), "GGUF"));
        QVERIFY(has(verdict("{\"error\":\"not found\"}"), "JSON"));
        QVERIFY(has(verdict(std::string(64, '\xff')), "header would have"));
    }

    void deepNestingIsRefusedNotFollowed()
    {
        QVERIFY(!headerVerdict("{\"a\":" + std::string(5'000'000, '[')).empty());
        std::string objects;
        for (int i = 0; i < 500'000; ++i)
            objects += "{\"a\":";
        QVERIFY(!headerVerdict(objects).empty());
    }

    void randomDamageNeverCrashesAndNeverReadsOutside()
    {
        const std::string whole = rawSafetensors(
            R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
            R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[16,24]}})",
            std::string(24, '\1'));
        QTemporaryDir dir;
        const auto file = std::filesystem::path(dir.path().toStdString()) / "m.safetensors";
        std::mt19937 random(7);
        for (int round = 0; round < 500; ++round) {
            std::string bytes = whole;
            for (int i = 0; i < 1 + round % 4; ++i)
                bytes[random() % bytes.size()] = static_cast<char>(random());
            put(file, bytes);
            Result<SafetensorsReader> reader = SafetensorsReader::open(file);
            if (!reader.ok())
                continue;
            for (const auto& [name, entry] : reader.value().entries()) {
                QVERIFY(entry.begin <= entry.end && entry.end <= bytes.size());
                std::vector<std::byte> all(entry.end - entry.begin);
                QVERIFY(reader.value().readBytes(name, 0, all).ok());
                QVERIFY(!reader.value().readBytes(name, 1, all).ok() || all.empty());
            }
        }
    }

    void halvesAreConvertedExactly()
    {
        // F16: 1, -2, 2^-24 (the least subnormal), 65504 (the largest), -0; BF16: 1, -2.
        const std::vector<std::uint16_t> half{0x3C00, 0xC000, 0x0001, 0x7BFF, 0x8000};
        const std::vector<std::uint16_t> bfloat{0x3F80, 0xC000};
        const auto bytes = [](const std::vector<std::uint16_t>& v) {
            return std::string(reinterpret_cast<const char*>(v.data()), v.size() * 2);
        };
        QTemporaryDir dir;
        const auto file = std::filesystem::path(dir.path().toStdString()) / "m.safetensors";
        put(file, safetensors({{"b", {"BF16", {2}, bytes(bfloat)}},
                      {"h", {"F16", {5}, bytes(half)}}, {"i", {"I16", {5}, bytes(half)}}}));
        Result<SafetensorsReader> reader = SafetensorsReader::open(file);
        QVERIFY(reader.ok());

        std::vector<float> h(5);
        std::vector<float> b(1);
        QVERIFY(reader.value().readFloats("h", 0, h).ok());
        QVERIFY(reader.value().readFloats("b", 1, b).ok());

        QVERIFY(h[0] == 1.0F && h[1] == -2.0F && h[2] == 0x1p-24F && h[3] == 65504.0F);
        QVERIFY(h[4] == 0.0F && std::signbit(h[4]));
        QVERIFY(b[0] == -2.0F);
        QVERIFY(has(reader.value().readFloats("i", 0, h).message(), "I16"));
        QVERIFY(!reader.value().readFloats("h", 1, h).ok());
        QVERIFY(!reader.value().readFloats("b", std::int64_t{1} << 62, b).ok());
        QVERIFY(!reader.value().readFloats("x", 0, h).ok());
    }

    void publishedCasesGetTheirVerdicts()
    {
        const auto folder = sharedData() / "malformed/safetensors";
        if (!std::filesystem::is_directory(folder)) {
            qInfo("skipped: no shared data (MILLRACE_SHARED)");
            return;
        }
        const auto expected = nlohmann::json::parse(contents(folder / "expected.json"));
        for (const auto& item : expected.items()) {
            const Status status = SafetensorsReader::open(folder / item.key()).status();
            QVERIFY2(status.ok() == (item.value() == "ok"), item.key().c_str());
        }
        for (const char* pointer : {"consolidated.safetensors", "model-00001-of-00003.safetensors"})
            QVERIFY(has(SafetensorsReader::open(sharedData() / "malformed/lfs_pointers" / pointer)
                            .status()
                            .message(),
                "git-lfs pointer: run `git lfs pull`"));
    }
};

MR_TEST(TestSafetensors)

} // namespace mr::test::tst_safetensors

#include "tst_safetensors.moc"
