// GGUF files of strangers as models: names without end in their metadata, and numbers that no model
// has, end in a refusal of one screen.

// The engine's headers come before those of Qt.
// clang-format off
#include "core/data/data_files.h"
#include "core/exchange/gguf_folder.h"
#include "core/gguf/gguf_writer.h"
#include "core/model/model_config.h"
#include "support/test_room.h"
// clang-format on

#include <QtTest>

#include <cmath>
#include <limits>

namespace mr::test::tst_gguf_strangers {

namespace {

constexpr std::size_t kScreen = 2000; // bytes of a message

GgufValue natural(std::uint64_t value)
{
    return {GgufValueType::U32, {}, value};
}

GgufValue negative(std::int64_t value)
{
    return {GgufValueType::I32, {}, value};
}

GgufValue real(double value)
{
    return {GgufValueType::F32, {}, value};
}

// Metadata of a small model of an architecture, with other values for some keys.
GgufValues smallModel(const std::string& architecture, const GgufValues& changes)
{
    GgufValues values{{"general.architecture", GgufValue::string(architecture)},
        {architecture + ".block_count", natural(1)},
        {architecture + ".context_length", natural(64)},
        {architecture + ".embedding_length", natural(8)},
        {architecture + ".feed_forward_length", natural(8)},
        {architecture + ".attention.head_count", natural(2)},
        {architecture + ".attention.head_count_kv", natural(1)},
        {"tokenizer.ggml.model", GgufValue::string("gpt2")},
        {"tokenizer.ggml.pre", GgufValue::string("gpt-2")},
        {"tokenizer.ggml.tokens", {GgufValueType::Array, GgufValueType::String,
                                      std::vector<std::string>{"a", "b", "c", "d"}}}};
    for (const auto& change : changes) {
        std::erase_if(values, [&change](const auto& each) { return each.first == change.first; });
        values.push_back(change);
    }
    return values;
}

} // namespace

class TestGgufStrangers : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { qputenv("XDG_CACHE_HOME", QByteArray::fromStdString(m_cache.path())); }
    void aSmallModelIsOpened();
    void longNamesAreCut_data();
    void longNamesAreCut();
    void oddNumbersAreRefused_data();
    void oddNumbersAreRefused();

private:
    // As far as the config of the model.
    static Status open(const Folder& folder, const GgufValues& values)
    {
        const std::string file = folder.path("model.gguf");
        const GgufSource source{"token_embd.weight", {8, 4}, GgufType::F32,
            [](std::int64_t, std::span<float>) { return Status(); }};
        const Status written = writeGguf(file, values, {source});
        if (!written.ok())
            qFatal("%s", written.message().c_str());
        MR_ASSIGN(const auto model, ggufFolder(file));
        return readModelConfig(model).status();
    }

    Folder m_cache;
};

void TestGgufStrangers::aSmallModelIsOpened()
{
    for (const char* architecture : {"llama", "phi3", "granite", "glm4"}) {
        const Folder folder;
        const Status status = open(folder, smallModel(architecture, {}));
        QVERIFY2(status.ok(), status.message().c_str());
    }
}

void TestGgufStrangers::longNamesAreCut_data()
{
    QTest::addColumn<QString>("key");
    QTest::addColumn<QString>("words");
    QTest::newRow("architecture") << "general.architecture"
                                  << "is not supported; supported: llama";
    QTest::newRow("tokenizer") << "tokenizer.ggml.model"
                               << "gpt2, llama and gemma4 are known";
    QTest::newRow("splitter") << "tokenizer.ggml.pre"
                              << "a splitter that is not known here";
}

void TestGgufStrangers::longNamesAreCut()
{
    QFETCH(QString, key);
    QFETCH(QString, words);
    const Folder folder;
    const std::string name(100'000, 'q');

    const Status status =
        open(folder, smallModel("llama", {{key.toStdString(), GgufValue::string(name)}}));

    QCOMPARE(status.kind(), ErrorKind::InvalidArgument);
    QVERIFY2(contains(status.message(), words.toStdString()), status.message().c_str());
    QVERIFY2(
        status.message().size() < kScreen, qPrintable(QString::number(status.message().size())));
}

void TestGgufStrangers::oddNumbersAreRefused_data()
{
    QTest::addColumn<QString>("architecture");
    QTest::addColumn<QString>("key");
    QTest::addColumn<QString>("value"); // a whole number, "nan" or "inf"
    for (const char* architecture : {"llama", "phi3", "granite", "glm4"})
        for (const auto& [key, value] :
            {std::pair{"attention.key_length", "0"}, {"attention.key_length", "-4"},
                {"attention.head_count", "0"}, {"embedding_length", "0"}, {"block_count", "0"},
                {"block_count", "10001"}, {"feed_forward_length", "-1"}, {"context_length", "0"},
                {"attention.layer_norm_rms_epsilon", "nan"}, {"rope.freq_base", "nan"},
                {"rope.freq_base", "inf"}, {"block_count", "2"}})
            QTest::newRow(qPrintable(QString("%1 %2 %3").arg(architecture, key, value)))
                << architecture << key << value;
}

void TestGgufStrangers::oddNumbersAreRefused()
{
    QFETCH(QString, architecture);
    QFETCH(QString, key);
    QFETCH(QString, value);
    const Folder folder;
    const std::string own = architecture.toStdString();
    GgufValue odd = natural(value.toULongLong());
    if (value.startsWith('-'))
        odd = negative(value.toLongLong());
    else if (value == "nan")
        odd = real(std::nan(""));
    else if (value == "inf")
        odd = real(std::numeric_limits<double>::infinity());

    const Status status = open(folder, smallModel(own, {{own + "." + key.toStdString(), odd}}));

    QVERIFY(!status.ok());
    QVERIFY2(status.message().size() < kScreen, status.message().c_str());
}

MR_TEST(TestGgufStrangers)

} // namespace mr::test::tst_gguf_strangers

#include "tst_gguf_strangers.moc"
