// Faults found by reading and fuzzing that no input in the corpus can show: too large, or in a kind
// of file that targets do not make.

#include "core/api/json_text.h"
#include "core/base/file.h"
#include "core/data/chat_template.h"
#include "core/data/conversation.h"
#include "core/data/documents.h"
#include "core/save/checkpoint_text.h"
#include "core/store/run_store.h"
#include "core/telemetry/run_folder.h"
#include "core/tokenizer/small_bpe.h"
#include "core/tokenizer/tokenizer.h"
#include "support/test_room.h"

#include <millrace/run_reader.h>

#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <string>

namespace mr::test::tst_hostile {

using nlohmann::json;

namespace {

constexpr std::size_t kDeep = 300'000; // followed by recursion, more than a stack holds

std::string nested(std::size_t levels)
{
    return std::string(levels, '[') + std::string(levels, ']');
}

std::string messageOf(const Status& status)
{
    return status.ok() ? std::string("it was accepted") : status.message();
}

json replacing(const std::string& pattern, const std::string& with)
{
    json step;
    step["type"] = "Replace";
    step["pattern"]["Regex"] = pattern;
    step["content"] = with;
    return step;
}

json sequence(const char* name, const json& step, int count)
{
    json out;
    out["type"] = "Sequence";
    for (int i = 0; i < count; ++i)
        out[name].push_back(step);
    return out;
}

} // namespace

class TestHostile : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void depthIsCountedOutsideTexts();
    void deepValuesInTokenizerFilesAreRefused_data();
    void deepValuesInTokenizerFilesAreRefused();
    void brokenTokenizerFilesNameThePlace();
    void replacementsThatFeedEachOtherAreStopped();
    void decodersThatFeedEachOtherAreStopped();
    void bytesAfterAPrefixDoNotEndBeforeIt();
    void partsOfAMessageMayHaveAnyType();
    void deepCallsOfToolsAreRefused();
    void manyColumnsAreNotAllNamed();
    void aPipeIsNoFile();
    void emptyConfigurationsAreKept();
    void deepConfigurationsAreRefused();
    void statesOfStrangersAreRefused_data();
    void statesOfStrangersAreRefused();

private:
    Folder m_folder;
};

void TestHostile::depthIsCountedOutsideTexts()
{
    QVERIFY(!nestsTooDeeply(nested(kJsonDepth)));
    QVERIFY(nestsTooDeeply(nested(kJsonDepth + 1)));
    QVERIFY(!nestsTooDeeply("\"" + std::string(1000, '[') + "\""));
    QVERIFY(!nestsTooDeeply("\"\\\"" + std::string(1000, '{') + "\""));
    QVERIFY(nestsTooDeeply("\"\\\\\"" + std::string(1000, '{')));
    QVERIFY(!nestsTooDeeply("[]]]]]]" + nested(kJsonDepth)));
}

void TestHostile::deepValuesInTokenizerFilesAreRefused_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("field");
    QTest::newRow("an id") << "tokenizer.json"
                           << "model";
    QTest::newRow("the normalizer") << "tokenizer.json"
                                    << "normalizer";
    QTest::newRow("a token") << "tokenizer_config.json"
                             << "bos_token";
    QTest::newRow("the class") << "tokenizer_config.json"
                               << "tokenizer_class";
}

void TestHostile::deepValuesInTokenizerFilesAreRefused()
{
    QFETCH(QString, file);
    QFETCH(QString, field);
    const Folder folder;
    writeSmallBpe(folder);
    folder.write(file.toStdString(), "{\"" + field.toStdString() + "\": " + nested(kDeep) + "}");

    const Status status = Tokenizer::open(folder.path()).status();

    QVERIFY(contains(messageOf(status), file.toStdString() + ": nested deeper than 64 levels"));
}

void TestHostile::brokenTokenizerFilesNameThePlace()
{
    const Folder folder;
    writeSmallBpe(folder);
    folder.write("tokenizer_config.json", "{\n  \"bos_token\": <s>\n}");

    const Status status = Tokenizer::open(folder.path()).status();

    QVERIFY(contains(messageOf(status), "tokenizer_config.json: not JSON: an error at line 2"));
}

// Eight times twentyfold: 25 GB of one letter.
void TestHostile::replacementsThatFeedEachOtherAreStopped()
{
    const Folder folder;
    json content = smallBpe();
    content["normalizer"] = sequence("normalizers", replacing("a", std::string(20, 'a')), 8);
    writeSmallBpe(folder, content);
    auto tokenizer = Tokenizer::open(folder.path());
    QVERIFY2(tokenizer.ok(), tokenizer.status().message().c_str());
    std::vector<TokenId> ids;

    const Status few = tokenizer.value()->encode("b", ids);
    const Status many = tokenizer.value()->encode("a", ids);

    QVERIFY2(few.ok(), few.message().c_str());
    QVERIFY(contains(messageOf(many), "replacements make"));
}

void TestHostile::decodersThatFeedEachOtherAreStopped()
{
    const Folder folder;
    json content = smallBpe();
    content["decoder"] = sequence("decoders", replacing("a", std::string(20, 'a')), 8);
    writeSmallBpe(folder, content);
    auto tokenizer = Tokenizer::open(folder.path());
    QVERIFY2(tokenizer.ok(), tokenizer.status().message().c_str());
    const std::vector<TokenId> ids = {'a'};

    QVERIFY(contains(messageOf(tokenizer.value()->decode(ids).status()), "replacements make"));
}

// The byte tokens of the first character, behind the prefix of a normalizer or Metaspace.
void TestHostile::bytesAfterAPrefixDoNotEndBeforeIt()
{
    json content = json::parse(R"({"model": {"type": "BPE", "byte_fallback": true,
        "unk_token": "<unk>", "vocab": {"<unk>": 0, "\u2581": 1}, "merges": []}})");
    for (int byte = 0; byte < 256; ++byte)
        content["model"]["vocab"][QString::asprintf("<0x%02X>", byte).toStdString()] = byte + 2;
    json prepend = json::parse(R"({"type": "Prepend", "prepend": "\u2581"})");
    json metaspace = json::parse(R"({"type": "Metaspace", "replacement": "\u2581"})");
    for (const auto& [stage, step] :
        {std::pair{"normalizer", prepend}, std::pair{"pre_tokenizer", metaspace}}) {
        const Folder folder;
        json with = content;
        with[stage] = step;
        auto tokenizer = Tokenizer::open(folder.write("tokenizer.json", with.dump()));
        QVERIFY2(tokenizer.ok(), tokenizer.status().message().c_str());
        const std::vector<TextPart> parts = {{"\xE6\x97\xA5x", false}};
        std::vector<TokenId> ids;
        std::vector<std::size_t> ends;

        const Status status = tokenizer.value()->encodeParts(parts, ids, ends);

        QVERIFY2(status.ok(), status.message().c_str());
        QVERIFY(ends == std::vector<std::size_t>({3, 3, 3, 3, 4}));
    }
}

void TestHostile::partsOfAMessageMayHaveAnyType()
{
    const std::string answer = R"(, {"role": "assistant", "content": "b"}])";
    const auto with = [&](const std::string& type) {
        return readConversation(
            {R"([{"role": "user", "content": [{"text": "a", "type": )" + type + "}]}" + answer, "",
                ""})
            .status();
    };

    QVERIFY(with("\"text\"").ok());
    for (const char* type : {"5", "null", "[\"text\"]", "\"image\""})
        QVERIFY(contains(messageOf(with(type)), "message 1 of the conversation"));
}

void TestHostile::deepCallsOfToolsAreRefused()
{
    const std::string deep = "{\\\"a\\\": " + nested(kDeep) + "}";
    const std::string call = R"([{"role": "user", "content": "a"}, {"role": "assistant",
        "content": "b", "tool_calls": [{"function": {"name": "f", "arguments": ")" +
                             deep + R"("}}]}])";
    const std::string shareGpt = R"([{"from": "human", "value": "a"}, {"from": "function_call",
        "value": "{\"name\": \"f\", \"arguments\": )" +
                                 nested(kDeep) + R"(}"}, {"from": "gpt", "value": "b"}])";

    auto asText = readConversation({call, "", ""}); // an unreadable value stays a text
    const auto refused = readConversation({shareGpt, "", ""});
    const auto tools = readConversation({R"([{"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"}])",
        nested(kDeep), ""});

    QVERIFY2(asText.ok(), asText.status().message().c_str());
    QVERIFY(asText.value()["messages"][1]["tool_calls"][0]["function"]["arguments"].is_string());
    QVERIFY(contains(messageOf(refused.status()), "should call a tool"));
    QVERIFY(contains(messageOf(tools.status()), "the tools of the conversation are not a list"));
}

void TestHostile::manyColumnsAreNotAllNamed()
{
    std::string header;
    std::string row;
    for (int i = 0; i < 500; ++i) {
        header += (i == 0 ? "c" : ",c") + std::to_string(i) + std::string(100, 'x');
        row += i == 0 ? "1" : ",1";
    }
    DataSource source;
    source.path = m_folder.write("many.csv", header + "\n" + row + "\n");
    DatasetShape shape;

    const Status status = findShape(source, shape);

    QVERIFY(contains(messageOf(status), "and 480 more"));
    QVERIFY(status.message().size() < 4000);
}

// The pipe has no writer: a plain open waits for ever.
void TestHostile::aPipeIsNoFile()
{
    const std::string pipe = m_folder.path("pipe.jsonl");
    QCOMPARE(::mkfifo(pipe.c_str(), 0600), 0);

    QVERIFY(contains(messageOf(File::openRead(pipe).status()), "name a regular file"));
    QVERIFY(contains(messageOf(File::openRead("/dev/zero").status()), "name a regular file"));
}

void TestHostile::emptyConfigurationsAreKept()
{
    auto store = RunStore::open(m_folder.path("empty.db"));
    QVERIFY2(store.ok(), store.status().message().c_str());
    m_folder.write("run.json", R"({"uuid": "u", "config": "{}"})");

    const auto run = rebuildFromRunFolder(*store.value(), m_folder.path());

    QVERIFY2(run.ok(), run.status().message().c_str());
}

void TestHostile::deepConfigurationsAreRefused()
{
    auto store = RunStore::open(m_folder.path("deep.db"));
    QVERIFY2(store.ok(), store.status().message().c_str());
    m_folder.write("run.json", R"({"uuid": "d", "config": "{\"a\": )" + nested(kDeep) + "}\"}");

    const auto run = rebuildFromRunFolder(*store.value(), m_folder.path());

    QVERIFY(!run.ok());
}

void TestHostile::statesOfStrangersAreRefused_data()
{
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("words");
    QTest::newRow("whole") << ""
                           << ""
                           << "";
    QTest::newRow("a step below zero") << "/step"
                                       << "-1"
                                       << "field \"step\" is -1";
    QTest::newRow("tiles below zero") << "/window/job/3"
                                      << "-1"
                                      << "field \"job\" holds -1";
    QTest::newRow("a window below zero") << "/window/job/0"
                                         << "-7"
                                         << "field \"job\" holds -7";
    QTest::newRow("tiles without number") << "/window/job/3"
                                          << "4294967297"
                                          << "field \"job\"";
    QTest::newRow("a place behind the last") << "/sampler/2"
                                             << "61"
                                             << "field \"sampler\"";
    QTest::newRow("banks") << "/window/banks"
                           << "[[1,1,1]]"
                           << "field \"banks\" is too short";
    QTest::newRow("a scale") << "/window/banks/0/2"
                             << "1e300"
                             << "field \"banks\"";
    QTest::newRow("a number as text") << "/tokens"
                                      << "\"5\""
                                      << "field \"tokens\" is \"5\"";
    QTest::newRow("too large") << "/update_count"
                               << "1e300"
                               << "field \"update_count\"";
    QTest::newRow("no object") << "/window"
                               << "[]"
                               << "a JSON object is expected";
}

void TestHostile::statesOfStrangersAreRefused()
{
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(QString, words);
    json state = json::parse(R"({"version": 1, "step": 7, "update_count": 7, "tokens": 100,
        "active_ms": 5, "bad_steps": 0, "last_grad_norm": 0.5, "last_loss": null,
        "sampler": [1, 0, 3, 60], "instruction_set": "avx2", "precision": "bf16",
        "weights_hash": "0", "data_hash": "1", "window": {"window": 1, "steps_into_window": 2,
        "landed": true, "ownership": 3, "device_updates": 7, "host_updates": 1,
        "banks": [[1, 2, 0.5], [0, 0, 1.0]], "scalars": [[0.5, 1.0, 1], [null, 1.0, 0]],
        "job": [0, 4, 8, 1, true, false]}})");
    if (!pointer.isEmpty())
        state[json::json_pointer(pointer.toStdString())] = json::parse(value.toStdString());

    const Status status = parseStateText(state.dump(), "state.json").status();

    QCOMPARE(status.ok(), pointer.isEmpty());
    QVERIFY(pointer.isEmpty() || contains(status.message(), words.toStdString()));
    QVERIFY(pointer.isEmpty() || contains(status.message(), "state.json"));
}

MR_TEST(TestHostile)

} // namespace mr::test::tst_hostile

#include "tst_hostile.moc"
