// stories260K as llama.cpp's converter writes it: metadata, and every tensor byte for byte.
//
// The figures are those of the shared test data (adapters/gguf_manifest.json), made by
// convert_hf_to_gguf.py of llama.cpp.

// The engine's headers come before those of Qt.
// clang-format off
#include "core/gguf/gguf_file.h"
#include "core/run/golden_rig.h"
#include "core/save/gguf_export.h"
#include "support/test_room.h"
// clang-format on

#include <QCryptographicHash>
#include <QtTest>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace mr::test::tst_gguf_manifest {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const json& manifest()
{
    static const json read = [] {
        std::ifstream file(fs::path(sharedData()) / "adapters" / "gguf_manifest.json");
        return json::parse(file);
    }();
    return read;
}

ModelPlace stories()
{
    return {(fs::path(sharedData()) / "models" / "stories260K").string()};
}

// A scalar or a list as JSON.
json shownValue(const GgufValue& value)
{
    return std::visit([](const auto& data) { return json(data); }, value.data);
}

// The converter leaves these out; llama.cpp takes the same for granted.
bool isOurs(const std::string& key)
{
    return key == "general.name" || key == "tokenizer.ggml.add_bos_token" ||
           key == "tokenizer.ggml.add_eos_token" || key == "tokenizer.ggml.unknown_token_id";
}

QByteArray bytesOf(const GgufFile& file, const GgufTensor& tensor)
{
    QByteArray bytes(static_cast<qsizetype>(tensor.bytes), Qt::Uninitialized);
    if (!file.readBytes(tensor, 0,
                 std::as_writable_bytes(
                     std::span(bytes.data(), static_cast<std::size_t>(bytes.size()))))
             .ok())
        return {};
    return bytes;
}

} // namespace

class TestGgufManifest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void aFileIsWhatTheConverterWrites_data();
    void aFileIsWhatTheConverterWrites();
    void aCancelledExportLeavesNothing();
    void aFileThatIsThereStays();

private:
    static void compareValues(const GgufFile& file, const json& wanted);
    static void compareTensors(const GgufFile& file, const json& wanted);
};

void TestGgufManifest::initTestCase()
{
    if (fs::path(sharedData()).empty())
        QSKIP("the shared test data is not there");
}

void TestGgufManifest::aFileIsWhatTheConverterWrites_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("form");
    QTest::newRow("F32") << "s-f32" << static_cast<int>(GgufForm::F32);
    QTest::newRow("F16") << "s-f16" << static_cast<int>(GgufForm::F16);
    QTest::newRow("BF16") << "s-bf16" << static_cast<int>(GgufForm::BF16);
    QTest::newRow("Q8_0") << "s-q8_0" << static_cast<int>(GgufForm::Q8_0);
}

void TestGgufManifest::compareValues(const GgufFile& file, const json& wanted)
{
    for (const auto& [key, value] : wanted.items()) {
        const GgufValue* own = file.find(key);
        QVERIFY2(own != nullptr, key.c_str());
        const json& expected = value["value"];
        const json shown = shownValue(*own);
        if (expected.is_object()) { // a list: its length and beginning
            QCOMPARE(shown.size(), expected["count"].get<std::size_t>());
            for (std::size_t i = 0; i < expected["first"].size(); ++i)
                QVERIFY2(shown[i] == expected["first"][i], key.c_str());
        } else {
            QVERIFY2(shown == expected, qPrintable(QString::fromStdString(
                                            key + ": " + shown.dump() + ", " + expected.dump())));
        }
    }
    for (const auto& [key, value] : file.values())
        QVERIFY2(wanted.contains(key) || isOurs(key), key.c_str());
}

void TestGgufManifest::compareTensors(const GgufFile& file, const json& wanted)
{
    for (const json& expected : wanted) {
        const auto name = expected["name"].get<std::string>();
        const GgufTensor* own = file.tensor(name);
        QVERIFY2(own != nullptr, name.c_str());
        QCOMPARE(static_cast<int>(own->type), expected["type_id"].get<int>());
        QVERIFY(json(own->ne) == expected["ne"]);
        const QByteArray hash =
            QCryptographicHash::hash(bytesOf(file, *own), QCryptographicHash::Sha256).toHex();
        const QByteArray begin = QByteArray::fromStdString(expected["sha256"].get<std::string>());
        QVERIFY2(hash.startsWith(begin), name.c_str());
    }
}

void TestGgufManifest::aFileIsWhatTheConverterWrites()
{
    QFETCH(QString, name);
    QFETCH(int, form);
    const Folder folder;
    const std::string path = folder.path("model.gguf");
    GgufOptions options;
    options.form = static_cast<GgufForm>(form);
    const auto done = exportGguf(stories(), path, options);
    QVERIFY2(done.ok(), done.status().message().c_str());

    const auto file = GgufFile::open(path);
    QVERIFY2(file.ok(), file.status().message().c_str());
    const GgufFile opened = std::move(Result(GgufFile::open(path))).value();
    const json& wanted = manifest()["files"][name.toStdString()];
    compareValues(opened, wanted["kv"]);
    compareTensors(opened, wanted["tensors"]);
    constexpr std::size_t kTensors = 47; // 5 layers of 9, embedding and norm
    QCOMPARE(opened.tensors().size(), kTensors);
}

void TestGgufManifest::aCancelledExportLeavesNothing()
{
    const Folder folder;
    GgufOptions options;
    options.form = GgufForm::Q8_0;
    options.progress = [](std::uint64_t done, std::uint64_t all) -> Status {
        return done < all / 2 ? Status() : Status::error(ErrorKind::InvalidArgument, "stopped");
    };
    const auto done = exportGguf(stories(), folder.path("model.gguf"), options);
    QVERIFY(!done.ok());
    QCOMPARE(done.status().message(), std::string("stopped"));
    QVERIFY(fs::is_empty(folder.path()));
}

void TestGgufManifest::aFileThatIsThereStays()
{
    const Folder folder;
    folder.write("model.gguf", "precious");
    const auto done = exportGguf(stories(), folder.path("model.gguf"), {});
    QVERIFY(!done.ok());
    QVERIFY(done.status().message().find("is there already") != std::string::npos);
    QCOMPARE(readFile(folder.path("model.gguf")), std::string("precious"));
}

MR_TEST(TestGgufManifest)

} // namespace mr::test::tst_gguf_manifest

#include "tst_gguf_manifest.moc"
