// Strict JSON: the published test suite where it is present, and our refusals beyond it.

#include "core/api/json_text.h"
#include "support/test_room.h"

#include <QTest>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace mr::test::tst_json_text {

namespace {

std::filesystem::path sharedData()
{
    if (const char* shared = std::getenv("MILLRACE_SHARED"))
        return std::filesystem::path(shared) / "data";
    const char* source = std::getenv("MILLRACE_SOURCE");
    return std::filesystem::path(source == nullptr ? "." : source) / "../shared/data";
}

std::string contents(const std::filesystem::path& file)
{
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

class TestJsonText : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void wellFormedTextIsRead()
    {
        Result<nlohmann::json> value = parseJson(R"({"a":[1,2.5,"x",null,true]})", "t");

        QVERIFY(value.ok());
        QCOMPARE(value.value()["a"].size(), std::size_t{5});
    }

    void errorNamesSourceLineAndColumn()
    {
        const Status status = parseJson("{\n  \"a\": ?\n}", "conf.json").status();

        QCOMPARE(status.kind(), ErrorKind::DataCorrupt);
        QVERIFY2(status.message().starts_with("conf.json: "), status.message().c_str());
        QVERIFY2(status.message().find("line 2") != std::string::npos, status.message().c_str());
    }

    void duplicateKeyIsRefusedAtAnyDepth()
    {
        QVERIFY(!parseJson(R"({"a":1,"a":1})", "t").ok());
        QVERIFY(!parseJson(R"({"x":[{"a":1,"\u0061":1}]})", "t").ok());
        QVERIFY(parseJson(R"({"x":{"a":1},"a":1})", "t").ok());
    }

    void textAfterANulByteIsNotHidden()
    {
        QVERIFY(!parseJson(std::string_view("{}\0{", 4), "t").ok());
    }

    void nestingOfAMillionLevelsIsRefusedNotFollowed()
    {
        const std::string arrays(1'000'000, '[');
        std::string objects;
        for (int i = 0; i < 100'000; ++i)
            objects += "{\"a\":";

        QVERIFY(!parseJson(arrays, "t").ok());
        QVERIFY(!parseJson(objects, "t").ok());
    }

    void publishedSuiteGetsItsVerdicts()
    {
        const auto folder = sharedData() / "malformed/JSONTestSuite/test_parsing";
        if (!std::filesystem::is_directory(folder)) {
            qInfo("skipped: no shared data (MILLRACE_SHARED)");
            return;
        }
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            const std::string name = entry.path().filename().string();
            const bool accepted = parseJson(contents(entry.path()), name).ok();
            if (name.starts_with("n_"))
                QVERIFY2(!accepted, name.c_str());
            else if (name.starts_with("y_")) // duplicate keys are legal JSON; we refuse them
                QVERIFY2(accepted != name.starts_with("y_object_duplicated_key"), name.c_str());
        }
    }
};

MR_TEST(TestJsonText)

} // namespace mr::test::tst_json_text

#include "tst_json_text.moc"
