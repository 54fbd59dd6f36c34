// Which column is the prompt, which the response: names, shapes, --map, refusals.

#include "core/data/columns.h"
#include "core/data/data_files.h"
#include "core/data/untrainable.h"
#include "support/test_room.h"

namespace mr::test::tst_columns {

namespace {

using Map = std::map<std::string, std::string>;

std::vector<ColumnFacts> factsOf(const std::vector<Record>& records)
{
    FactsCollector facts;
    for (const Record& record : records)
        facts.add(record);
    return facts.finish();
}

// A row of these cells; columns of texts hold "NAME holds words".
std::vector<ColumnFacts> columns(const std::vector<Cell>& cells)
{
    return factsOf({{1, 1, cells}});
}

std::vector<ColumnFacts> texts(const std::vector<std::string>& names)
{
    std::vector<Cell> cells;
    for (const std::string& name : names)
        cells.push_back({name, name + " holds words", CellKind::Text});
    return columns(cells);
}

Cell text(const char* name)
{
    return {name, std::string(name) + " holds words", CellKind::Text};
}

const Cell kChat{"messages", R"([{"role":"user","content":"hi"}])", CellKind::Nested};

Cell chat(const char* name)
{
    return {name, kChat.text, CellKind::Nested};
}

Map chosen(const std::vector<ColumnFacts>& facts, const Map& asked = {})
{
    const DataSource source{"x.jsonl", DataFormat::Auto, asked};
    Result<ColumnMap> map = chooseColumns(source, facts);
    return map.ok() ? map.value().asMap() : Map{{"error", map.status().message()}};
}

std::string refusal(const std::vector<ColumnFacts>& facts, const Map& asked = {})
{
    return chosen(facts, asked)["error"];
}

} // namespace

class TstColumns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void knownNamesArePairs();
    void unknownNamesAreAsked();
    void mapsOverrideNames();
    void mapsThatCannotBeMeantAreRefused();
    void conversationsAreFoundByName();
    void unclearColumnsAreListed();
    void preferencesAreRefusedInEveryForm_data();
    void preferencesAreRefusedInEveryForm();
    void answersMarkedAsBadAreRefused();
    void mediaAreRefused();
    void refusalsSayWhatTheyAre();
    void columnsThatAreNotUsedAreNamed();
};

void TstColumns::knownNamesArePairs()
{
    QCOMPARE(chosen(columns({{"id", "1", CellKind::Number}, text("question"), text("answer")})),
        (Map{{"prompt", "question"}, {"response", "answer"}}));
    QCOMPARE(chosen(texts({"Instruction", "INPUT", "Output"})),
        (Map{{"prompt", "Instruction"}, {"input", "INPUT"}, {"response", "Output"}}));
    QCOMPARE(
        chosen(texts({"input", "target"})), (Map{{"prompt", "input"}, {"response", "target"}}));
    QCOMPARE(chosen(texts({"title", "text"})), (Map{{"text", "text"}}));
    QCOMPARE(chosen(columns({text("question"), {"answer", "4", CellKind::Number}})),
        (Map{{"prompt", "question"}, {"response", "answer"}}));
    QCOMPARE(chosen(texts({"質問", "回答"})), (Map{{"prompt", "質問"}, {"response", "回答"}}));
    QCOMPARE(chosen(texts({"line"})), (Map{{"text", "line"}}));
}

void TstColumns::unknownNamesAreAsked()
{
    const std::string both = refusal(texts({"sentence_en", "sentence_ja"}));
    QVERIFY(contains(both, "--map prompt=sentence_en,response=sentence_ja"));
    QVERIFY(contains(both, "--map prompt=sentence_ja,response=sentence_en"));
    QVERIFY(contains(both, "--map text=sentence_en"));
    QVERIFY(contains(refusal(columns({{"id", "1", CellKind::Number}, text("left"), text("right")})),
        "--map prompt=left,response=right"));
}

void TstColumns::mapsOverrideNames()
{
    const auto facts = texts({"question", "answer", "rationale"});
    QCOMPARE(chosen(facts, {{"response", "rationale"}}),
        (Map{{"prompt", "question"}, {"response", "rationale"}}));
    QCOMPARE(chosen(facts, {{"text", "rationale"}}), (Map{{"text", "rationale"}}));
    QCOMPARE(chosen(columns({text("question"), {"label", "1", CellKind::Number}}),
                 {{"response", "label"}}),
        (Map{{"prompt", "question"}, {"response", "label"}}));
}

void TstColumns::mapsThatCannotBeMeantAreRefused()
{
    const auto facts = texts({"question", "answer"});
    QVERIFY(contains(refusal(facts, {{"respond", "answer"}}), "not \"respond\""));
    QVERIFY(contains(refusal(facts, {{"response", "reply"}}),
        "the column \"reply\", which is not there; the columns are \"question\", \"answer\""));
    QVERIFY(contains(refusal(facts, {{"text", "answer"}, {"prompt", "question"}}), "stands alone"));
    QVERIFY(contains(refusal(facts, {{"prompt", "answer"}}), "leaves the response open"));
}

void TstColumns::conversationsAreFoundByName()
{
    QCOMPARE(chosen(columns({kChat})), (Map{{"messages", "messages"}}));
    QCOMPARE(chosen(columns({chat("talk")}), {{"messages", "talk"}}), (Map{{"messages", "talk"}}));
    const Map all{{"messages", "messages"}, {"tools", "tools"}, {"system", "system"}};
    const auto full =
        columns({kChat, {"tools", R"([{"name":"count"}])", CellKind::Nested}, text("system")});
    QCOMPARE(chosen(full), all);
    QCOMPARE(chosen(full, all), all);
    QVERIFY(
        contains(refusal(columns({kChat, chat("chosen"), chat("rejected")})), "holds preferences"));
    const auto both = columns({kChat, text("question"), text("answer")});
    QVERIFY(contains(
        refusal(both, {{"messages", "messages"}, {"prompt", "question"}}), "stands alone"));
    QCOMPARE(chosen(both, {{"prompt", "question"}, {"response", "answer"}}),
        (Map{{"prompt", "question"}, {"response", "answer"}}));
}

void TstColumns::unclearColumnsAreListed()
{
    const std::string message = refusal(texts({"one", "two", "three"}));
    QVERIFY(contains(message, "x.jsonl: cannot tell"));
    QVERIFY(contains(message, "\"one\", \"two\", \"three\""));
    QVERIFY(contains(message, "--map prompt="));
}

void TstColumns::preferencesAreRefusedInEveryForm_data()
{
    QTest::addColumn<QStringList>("columns");
    QTest::addColumn<QString>("wayOut");
    QTest::newRow("two texts") << QStringList{"chosen", "rejected"} << "--map text=chosen";
    QTest::newRow("with a prompt")
        << QStringList{"prompt", "chosen", "rejected"} << "--map prompt=prompt,response=chosen";
    QTest::newRow("other names") << QStringList{"Question", "Chosen_Response", "Rejected_Response"}
                                 << "--map prompt=Question,response=Chosen_Response";
    QTest::newRow("with an answer beside")
        << QStringList{"instruction", "output", "rejected", "chosen"} << "response=chosen";
}

void TstColumns::preferencesAreRefusedInEveryForm()
{
    QFETCH(const QStringList, columns);
    QFETCH(const QString, wayOut);
    std::vector<std::string> names;
    for (const QString& column : columns)
        names.push_back(column.toStdString());

    const std::string message = refusal(texts(names));

    QVERIFY2(contains(message, "holds preferences"), message.c_str());
    QVERIFY2(contains(message, wayOut.toStdString()), message.c_str());
    QCOMPARE(chosen(texts({"prompt", "chosen", "rejected"}),
                 {{"prompt", "prompt"}, {"response", "chosen"}}),
        (Map{{"prompt", "prompt"}, {"response", "chosen"}}));
}

namespace {

Record judged(std::int64_t row, const char* label, CellKind kind = CellKind::Number)
{
    return {row, row,
        {{"prompt", "q", CellKind::Text}, {"completion", "a", CellKind::Text},
            {"label", label, kind}}};
}

Record shown(std::int64_t row, const char* prompt, const char* images)
{
    return {row, row,
        {{"prompt", prompt, CellKind::Text}, {"response", "a", CellKind::Text},
            {"images", images, CellKind::Nested}}};
}

} // namespace

void TstColumns::answersMarkedAsBadAreRefused()
{
    QVERIFY(contains(refusal(factsOf({judged(1, "true"), judged(2, "false")})), "marked as bad"));
    QVERIFY(contains(
        refusal(factsOf({judged(1, "True", CellKind::Text), judged(2, "False", CellKind::Text)})),
        "column \"label\" is false"));
    QVERIFY(contains(
        refusal(factsOf({judged(1, "false")}), {{"prompt", "prompt"}, {"response", "completion"}}),
        "marked as bad")); // naming the columns does not make them good answers
    const Map pair{{"prompt", "prompt"}, {"response", "completion"}};
    QCOMPARE(chosen(factsOf({judged(1, "true")})), pair);
    QVERIFY(contains(refusal(factsOf({judged(1, "0"), judged(2, "1")})), "good or bad"));
    // One that comes after the rows that were looked at.
    const auto facts = factsOf({judged(1, "true")});
    const ColumnMap map = chooseColumns({"x.jsonl", DataFormat::Auto, {}}, facts).value();
    QVERIFY(refuseRow(map, judged(200, "true")).ok());
    QVERIFY(contains(refuseRow(map, judged(201, "false")).message(), "row 201 is marked as a bad"));
}

void TstColumns::mediaAreRefused()
{
    QVERIFY(contains(refusal(factsOf({shown(1, "q", R"(["a.jpg"])")})), "column \"images\""));
    const auto facts = factsOf({shown(1, "q", "[]")}); // as mixed sets have it
    const ColumnMap map = chooseColumns({"x.jsonl", DataFormat::Auto, {}}, facts).value();
    const auto refused = [&](const char* prompt, const char* images) {
        return refuseRow(map, shown(7, prompt, images)).message();
    };
    QVERIFY(contains(refused("q", R"(["a.jpg"])"), "row 7 comes with pictures"));
    QVERIFY(contains(refused("<image>Who are they?", "[]"), "holds \"<image>\""));
    QVERIFY(contains(refused("What is this?\n<image>", "[]"), "holds \"<image>\""));
    QVERIFY(refused("Write a feed: <item><image>x</image></item>.", "[]").empty());
    ColumnMap chat;
    chat.messages = "messages";
    const auto said = [&](const char* messages) {
        return refuseRow(chat, {3, 3, {{"messages", messages, CellKind::Nested}}}).message();
    };
    QVERIFY(contains(said(R"([{"role":"user","content":"<image>\nWhat?"}])"), "\"<image>\""));
    QVERIFY(contains(said(R"([{"role":"user","content":"What? <audio>"}])"), "\"<audio>\""));
    QVERIFY(said(R"([{"role":"user","content":"Is \"<image>\" a tag?"}])").empty());
}

void TstColumns::refusalsSayWhatTheyAre()
{
    const auto kind = [](const std::vector<ColumnFacts>& facts) {
        ColumnRefusal refusal;
        (void)chooseColumns({"x.jsonl", DataFormat::Auto, {}}, facts, &refusal).ok();
        return refusal.kind;
    };
    QCOMPARE(kind(texts({"one", "two", "three"})), DataRefusal::UnknownColumns);
    QCOMPARE(kind(texts({"chosen", "rejected"})), DataRefusal::Preferences);
    QCOMPARE(kind(factsOf({judged(1, "false")})), DataRefusal::BadAnswers);
    QCOMPARE(kind(factsOf({shown(1, "q", R"(["a.jpg"])")})), DataRefusal::Media);
    QCOMPARE(kind(texts({"question", "answer"})), DataRefusal::None);
}

void TstColumns::columnsThatAreNotUsedAreNamed()
{
    const auto facts =
        columns({{"id", "7", CellKind::Number}, text("question"), text("answer"), text("source")});
    const DataSource source{"x.jsonl", DataFormat::Auto, {}};

    const ColumnMap map = chooseColumns(source, facts).value();

    QCOMPARE(unusedColumns(facts, map), (std::vector<std::string>{"id", "source"}));
}

MR_TEST(TstColumns)

} // namespace mr::test::tst_columns

#include "tst_columns.moc"
